"""``python -m bench``: run scenarios, store their results as JSON and show them as tables."""

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

from . import peers, report, servers, tables
from .catalogue import BY_NAME, SCENARIOS
from .errors import MeasurementFailed, PeerUnavailable
from .scenario import Entry, RunContext, Scenario

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".bench"
RESULTS_FILE = Path(__file__).resolve().parent / "results" / "full.json"
SERVER_SETTINGS = (
    "server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers",
    "max_wal_size",
)  # fmt: skip


def main() -> None:
    given = _arguments()
    if given.list:
        print("\n".join(f"{m.name:16} {'short' if m.short else 'full ':6} {m.title}" for m in SCENARIOS))
        return
    if given.scenarios == ["report"]:
        report.write(json.loads(RESULTS_FILE.read_text(encoding="utf-8")))
        return
    found = _run(given, _select(given.scenarios))
    print(tables.plain_table(tables.target_rows(found)))
    for name, why in found["left_out"].items():
        print(f"left out: {name}: {why}")
    print(f"\nresults stored in {os.path.relpath(given.out)}")


def _run(given: argparse.Namespace, chosen: Sequence[Scenario]) -> dict[str, Any]:
    """Run the scenarios and save after each, so that an interrupted run keeps its results."""
    HOME.mkdir(exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # stop the server and the workers too
    everyone = peers.load(given.peers.resolve())
    with ExitStack() as stack:
        server = given.server or stack.enter_context(servers.postgres(HOME))
        folder = stack.enter_context(TemporaryDirectory(prefix="run-", dir=HOME))
        context = RunContext(everyone, server, Path(folder), given.scale)
        found = _load_results(given.out, server)
        found["left_out"] |= _prepare(everyone, chosen, given.without, found["versions"])
        for scenario in chosen:
            stored = found["scenarios"].get(scenario.name, {}).get("entries", {}) if given.add else {}
            measured = _run_scenario(context, scenario, given.repeat, found["left_out"])
            found["scenarios"][scenario.name] = {
                "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "scale": given.scale,
                "entries": {label: [*stored.get(label, ()), *rounds] for label, rounds in measured.items()},
            }
            _save(given.out, found)
            print("\n" + tables.plain_table(tables.scenario_rows(found, scenario)) + "\n", flush=True)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "scenarios", nargs="*", default=["short"],
        help="short, full, names of scenarios, or report: write docs/performance.md again. [default: short]",
    )  # fmt: skip
    option = parser.add_argument
    option("--repeat", type=int, default=3, help="Number of rounds; tables show medians. [default: 3]")
    option(
        "--out",
        type=Path,
        default=HOME / "results.json",
        help="Result file. Replaces the same scenarios. [default: .bench/results.json]",
    )
    option(
        "--peers",
        type=Path,
        default=HOME / "peers",
        help="Environments of the peers. [default: .bench/peers]",
    )
    option("--add", action="store_true", help="Add rounds to stored results instead of replacing them.")
    option("--without", default="", help="Peers to leave out, separated by commas.")
    option("--server", help="URL of a PostgreSQL server to use instead of an embedded one.")
    option("--scale", type=float, default=1.0, help="Multiply all sizes, such as 0.01. [default: 1]")
    option("--list", action="store_true", help="List the scenarios.")
    return parser.parse_args()


def _select(names: Sequence[str]) -> list[Scenario]:
    wanted: list[Scenario] = []
    for name in names:
        if name in ("short", "full"):
            wanted += [scenario for scenario in SCENARIOS if scenario.short or name == "full"]
        elif name in BY_NAME:
            wanted.append(BY_NAME[name])
        else:
            sys.exit(f"bench: no scenario is called {name!r}; --list shows them")
    return wanted


def _prepare(
    everyone: Mapping[str, peers.Peer], chosen: Sequence[Scenario], without: str, versions: dict[str, Any]
) -> dict[str, str]:
    """Create the environments and return the peers to leave out, with the reasons."""
    left_out = {}
    for name in dict.fromkeys(entry.peer for scenario in chosen for entry in scenario.entries):
        try:
            if name in without.split(","):
                raise PeerUnavailable("excluded with --without")
            everyone[name].prepare()
            versions[name] = everyone[name].versions()
        except PeerUnavailable as why:
            left_out[name] = str(why)
            print(f"left out: {name}: {why}", flush=True)
    return left_out


def _run_scenario(
    context: RunContext, scenario: Scenario, repeat: int, left_out: Mapping[str, str]
) -> dict[str, Any]:
    """Run every entry once per round, in turn."""
    print(f"{scenario.title}", flush=True)
    participants = [entry for entry in scenario.entries if entry.peer not in left_out]
    entries: dict[str, list[dict[str, Any]]] = {entry.label: [] for entry in participants}
    for number in range(repeat):
        for entry in participants:
            if entry.rounds is None or number < entry.rounds:
                entries[entry.label].append(_run_entry(context, scenario, entry))
    return entries


def _run_entry(context: RunContext, scenario: Scenario, entry: Entry) -> dict[str, Any]:
    started = time.monotonic()
    try:
        found = {name: _rounded(value) for name, value in scenario.run(context, entry).items()}
        text = ", ".join(f"{tables.METRICS[f][0]} {tables.shown(f, found[f])}" for f in scenario.shown)
    except Exception as error:  # this entry has no result; the run continues
        found = {"error": str(error) if isinstance(error, MeasurementFailed) else repr(error)}
        text = f"failed: {found['error'].splitlines()[-1]}"
    print(f"  {entry.label:24} {text}  [{time.monotonic() - started:.0f} s]", flush=True)
    return found


def _rounded(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value


# --- storing ---------------------------------------------------------------------------------------


def _load_results(out: Path, server: str) -> dict[str, Any]:
    stored = (
        json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"versions": {}, "scenarios": {}}
    )
    return {**stored, "machine": _machine(server), "left_out": {}}


def _save(out: Path, found: Mapping[str, Any]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    ordered = {m.name: found["scenarios"][m.name] for m in SCENARIOS if m.name in found["scenarios"]}
    out.write_text(json.dumps({**found, "scenarios": ordered}, indent=1) + "\n", encoding="utf-8")


def _machine(server: str) -> dict[str, Any]:
    with psycopg.connect(server, autocommit=True) as connection:
        settings = {
            name: connection.execute(f"SHOW {name}".encode()).fetchone()[0]  # type: ignore[index]
            for name in SERVER_SETTINGS
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
