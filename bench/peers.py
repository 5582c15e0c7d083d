"""Peers, the queues in the comparison (peers.toml): their environments, and commands that run adapters."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import PeerUnavailable

HERE = Path(__file__).resolve().parent
ADAPTERS = HERE / "adapters"


@dataclass(frozen=True)
class Peer:
    """One queue on one kind of store. ``homes``: the folder with the environments."""

    name: str
    homes: Path
    adapter: str
    store: str
    here: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    node: int = 0
    drain: int = 10_000
    bulk: int = 10_000

    @property
    def packages(self) -> Path:
        """The folder with the packages of all Node peers."""
        return self.homes / "node"

    @property
    def command(self) -> list[str]:
        """The command that runs the adapter; it needs ``prepare`` first."""
        return [str(self._interpreter), str(ADAPTERS / self.adapter)]

    @property
    def _interpreter(self) -> Path:
        if self.here:
            return Path(sys.executable)
        return _node(self.homes, self.node) if self.npm else self.homes / self.name / "bin" / "python"

    def prepare(self) -> None:
        """Create the environment unless it exists; PeerUnavailable says why that is impossible."""
        if self.here:
            return
        try:
            self._prepare_node() if self.npm else self._prepare_python()
        except (OSError, subprocess.SubprocessError) as error:
            text = getattr(error, "stderr", None) or str(error)
            raise PeerUnavailable(f"its environment could not be created: {text.strip()[-300:]}") from error

    def _prepare_python(self) -> None:
        home = self.homes / self.name
        if not (home / "bin" / "python").exists():
            _run(sys.executable, "-m", "venv", str(home))
        if _missing(self.versions().values()):
            pip = (str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
            _run(*pip, *self.pip)

    def _prepare_node(self) -> None:
        if shutil.which("npm") is None:
            raise PeerUnavailable("node and npm are not installed here")
        if _missing(self.versions().values()):
            self.packages.mkdir(parents=True, exist_ok=True)
            _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(self.packages), *self.npm)
        if not _node(self.homes, self.node).exists():
            home = self.homes / f"node{self.node}"
            home.mkdir(parents=True, exist_ok=True)
            name = f"{_node_package()}@{self.node}"
            _run("npm", "install", "--no-audit", "--no-fund", "--prefix", str(home), name)

    def versions(self) -> dict[str, str]:
        """The installed versions of the packages; an empty string if missing."""
        names = [re.split(r"[@=\[<>]", name)[0] for name in self.here or self.pip or self.npm]
        if self.npm:
            return {name: _npm_version(self.packages, name) for name in names}
        if not self._interpreter.exists():
            return dict.fromkeys(names, "")
        done = _run(str(self._interpreter), "-c", _PRINT_VERSIONS, *names)
        versions: dict[str, str] = json.loads(done)
        return versions


def load(homes: Path) -> dict[str, Peer]:
    """All peers of peers.toml by name."""
    text = (HERE / "peers.toml").read_text(encoding="utf-8")
    return {name: _peer(name, homes, table) for name, table in tomllib.loads(text).items()}


def _peer(name: str, homes: Path, table: dict[str, Any]) -> Peer:
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    return Peer(name=name, homes=homes, **given)


_PRINT_VERSIONS = """
import importlib.metadata as m, json, sys
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return ""
print(json.dumps({name: version(name) for name in sys.argv[1:]}))
"""


def _missing(versions: Any) -> bool:
    return not all(versions)


def _npm_version(packages: Path, name: str) -> str:
    file = packages / "node_modules" / name / "package.json"
    return str(json.loads(file.read_text())["version"]) if file.exists() else ""


def _node(homes: Path, at_least: int) -> Path:
    """The machine's Node if it is new enough, otherwise the one from npm."""
    own = shutil.which("node")
    if own is not None:
        text = subprocess.run([own, "--version"], capture_output=True, text=True, check=False).stdout
        if (match := re.match(r"v(\d+)", text)) and int(match[1]) >= at_least:
            return Path(own)
    return homes / f"node{at_least}" / "node_modules" / _node_package() / "bin" / "node"


def _node_package() -> str:
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), "x64")
    return f"node-{platform.system().lower()}-{machine}"


def _run(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=900, env={**os.environ, "CI": "1"}
    )
    return done.stdout
