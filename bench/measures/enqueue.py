"""Storing jobs: one by one, by many callers at once, in bulk. No worker runs."""

from __future__ import annotations

from typing import Any

from ..errors import Failed
from ..setting import Entry, Figures, Setting
from ..stage import Stage

SECONDS = 3.0


def single(setting: Setting, entry: Entry) -> Figures:
    """One producer that awaits each job before the next."""
    with setting.stage(entry) as stage:
        return _checked(stage, stage.role("single", seconds=SECONDS))


def callers(setting: Setting, entry: Entry) -> Figures:
    """As many callers at once as the options say, in one process, each awaiting its job."""
    with setting.stage(entry) as stage:
        return _checked(stage, stage.role("callers", k=entry.options["callers"], seconds=SECONDS))


def bulk(setting: Setting, entry: Entry) -> Figures:
    """The peer's best call for many jobs, until they are durable."""
    n = setting.size(entry.options.get("n") or setting.peers[entry.peer].bulk)
    with setting.stage(entry) as stage:
        wal = stage.server.wal_bytes()
        found = stage.role("bulk", n=n)
        wal = stage.server.wal_bytes() - wal
        return {**_checked(stage, {**found, "stored": n}), "wal_bytes": wal / n}


def _checked(stage: Stage, found: dict[str, Any]) -> Figures:
    held = stage.role("left")["left"]
    if held != found["stored"]:
        raise Failed(f"{found['stored']} jobs were stored, but the store holds {held}")
    return {"jobs_s": found["n"] / found["seconds"], "n": found["n"]}
