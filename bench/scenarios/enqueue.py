"""Enqueueing: one by one, by many callers at once, in bulk. No worker runs."""

from __future__ import annotations

from typing import Any

from ..errors import MeasurementFailed
from ..scenario import Entry, Metrics, RunContext
from ..trial import Trial

SECONDS = 3.0


def single(context: RunContext, entry: Entry) -> Metrics:
    """One producer that awaits each job before the next."""
    with context.trial(entry) as trial:
        return _checked(trial, trial.run_role("single", seconds=SECONDS))


def callers(context: RunContext, entry: Entry) -> Metrics:
    """Several callers at once in one process, each awaiting its job; ``callers`` in the options."""
    with context.trial(entry) as trial:
        return _checked(trial, trial.run_role("callers", k=entry.options["callers"], seconds=SECONDS))


def bulk(context: RunContext, entry: Entry) -> Metrics:
    """The peer's fastest bulk call, until the jobs are durable."""
    n = context.size(entry.options.get("n") or context.peers[entry.peer].bulk)
    with context.trial(entry) as trial:
        wal = trial.server.wal_bytes()
        found = trial.run_role("bulk", n=n)
        wal = trial.server.wal_bytes() - wal
        return {**_checked(trial, {**found, "stored": n}), "wal_bytes": wal / n}


def _checked(trial: Trial, found: dict[str, Any]) -> Metrics:
    stored = trial.run_role("left")["left"]
    if stored != found["stored"]:
        raise MeasurementFailed(f"{found['stored']} jobs were stored, but the store has {stored}")
    return {"jobs_s": found["n"] / found["seconds"], "n": found["n"]}
