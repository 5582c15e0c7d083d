"""``python -m bench``: take figures, keep them as JSON, tell them as tables."""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg

from . import peers, report, servers, words
from .catalogue import BY_NAME, MEASURES
from .errors import Absent, Failed
from .setting import Entry, Measure, Setting

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".bench"
KEPT = Path(__file__).resolve().parent / "results" / "full.json"
TOLD = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers",
    "max_wal_size",
)  # fmt: skip


def main() -> None:
    given = _arguments()
    if given.list:
        print("\n".join(f"{m.name:16} {'short' if m.short else 'full ':6} {m.title}" for m in MEASURES))
        return
    if given.what == ["report"]:
        report.write(json.loads(KEPT.read_text(encoding="utf-8")))
        return
    found = _run(given, _chosen(given.what))
    print(words.plain_table(words.bar_rows(found)))
    for name, why in found["absent"].items():
        print(f"left out: {name}: {why}")
    print(f"\nkept in {os.path.relpath(given.out)}")


def _run(given: argparse.Namespace, chosen: Sequence[Measure]) -> dict[str, Any]:
    """Take the measures, keeping what there is after each: a run that is ended early is not lost."""
    HOME.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that server and workers end with us
    everyone = peers.load(given.peers.resolve())
    with ExitStack() as stack:
        server = given.server or stack.enter_context(servers.postgres(HOME))
        folder = stack.enter_context(TemporaryDirectory(prefix="run-", dir=HOME))
        setting = Setting(everyone, server, Path(folder), given.scale)
        found = _begin(given.out, server)
        found["absent"] |= _prepare(everyone, chosen, given.without, found["versions"])
        for measure in chosen:
            kept = found["measures"].get(measure.name, {}).get("entries", {}) if given.add else {}
            taken = _take(setting, measure, given.repeat, found["absent"])
            found["measures"][measure.name] = {
                "taken_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "scale": given.scale,
                "entries": {label: [*kept.get(label, ()), *rounds] for label, rounds in taken.items()},
            }
            _keep(given.out, found)
            print("\n" + words.plain_table(words.measure_rows(found, measure)) + "\n", flush=True)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "what", nargs="*", default=["short"],
        help="short (minutes; the default), full, names of measures, or report: write the page again",
    )  # fmt: skip
    say = parser.add_argument
    say("--repeat", type=int, default=3, help="rounds; tables show medians")
    say("--out", type=Path, default=HOME / "results.json", help="measures taken again replace theirs")
    say("--peers", type=Path, default=HOME / "peers", help="where the peers' environments are made")
    say("--add", action="store_true", help="add rounds to those that are kept instead of replacing them")
    say("--without", default="", help="peers to leave out, by commas")
    say("--server", help="URL of a PostgreSQL to use instead of one of our own")
    say("--scale", type=float, default=1.0, help="make all sizes smaller, to try things out")
    say("--list", action="store_true", help="name the measures")
    return parser.parse_args()


def _chosen(names: Sequence[str]) -> list[Measure]:
    wanted: list[Measure] = []
    for name in names:
        if name in ("short", "full"):
            wanted += [measure for measure in MEASURES if measure.short or name == "full"]
        elif name in BY_NAME:
            wanted.append(BY_NAME[name])
        else:
            sys.exit(f"bench: there is no measure {name!r}; --list names them")
    return wanted


def _prepare(
    everyone: Mapping[str, peers.Peer], chosen: Sequence[Measure], without: str, versions: dict[str, Any]
) -> dict[str, str]:
    """Make the environments; who cannot take part, and why."""
    absent = {}
    for name in dict.fromkeys(entry.peer for measure in chosen for entry in measure.entries):
        try:
            if name in without.split(","):
                raise Absent("not asked for")
            everyone[name].prepare()
            versions[name] = everyone[name].versions()
        except Absent as why:
            absent[name] = str(why)
            print(f"left out: {name}: {why}", flush=True)
    return absent


def _take(setting: Setting, measure: Measure, repeat: int, absent: Mapping[str, str]) -> dict[str, Any]:
    """Round by round, each entry in its turn."""
    print(f"{measure.title}", flush=True)
    taking = [entry for entry in measure.entries if entry.peer not in absent]
    entries: dict[str, list[dict[str, Any]]] = {entry.label: [] for entry in taking}
    for number in range(repeat):
        for entry in taking:
            if entry.rounds is None or number < entry.rounds:
                entries[entry.label].append(_figures(setting, measure, entry))
    return entries


def _figures(setting: Setting, measure: Measure, entry: Entry) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        found = {name: _rounded(value) for name, value in measure.take(setting, entry).items()}
        said = ", ".join(f"{words.FIGURES[f][0]} {words.shown(f, found[f])}" for f in measure.shown)
    except Exception as error:  # one figure less; the run goes on
        found = {"error": str(error) if isinstance(error, Failed) else repr(error)}
        said = f"failed: {found['error'].splitlines()[-1]}"
    print(f"  {entry.label:24} {said}  [{time.monotonic() - begun:.0f} s]", flush=True)
    return found


def _rounded(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


# --- keeping ---------------------------------------------------------------------------------------


def _begin(out: Path, server: str) -> dict[str, Any]:
    kept = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"versions": {}, "measures": {}}
    return {**kept, "machine": _machine(server), "absent": {}}


def _keep(out: Path, found: Mapping[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    ordered = {m.name: found["measures"][m.name] for m in MEASURES if m.name in found["measures"]}
    out.write_text(json.dumps({**found, "measures": ordered}, indent=1) + "\n", encoding="utf-8")


def _machine(server: str) -> dict[str, Any]:
    with psycopg.connect(server, autocommit=True) as connection:
        settings = {
            name: connection.execute(f"SHOW {name}".encode()).fetchone()[0]  # type: ignore[index]
            for name in TOLD
        }
    return {
        "cpus": os.cpu_count(),
        "processor": platform.machine(),
        "memory_gb": psutil.virtual_memory().total / 1e9,
        "system": platform.system(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgres": settings,
    }


if __name__ == "__main__":
    main()
