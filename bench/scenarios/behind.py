"""Drains and pickup behind jobs that may not run: of a full limit, of a paused or an unknown task."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator

from ..errors import MeasurementFailed
from ..scenario import Entry, Metrics, RunContext
from ..trial import Trial
from .drain import drain_stored
from .latency import pick_up

MEET_S = 300.0
LOOK_S = 0.5
QUIET_LOOKS = 6  # without a change: the worker has met all that it will
IN_LINE = "SELECT count(*) FROM rota.queued WHERE due AND task = 'blocked'"
IN_LINE_SQLITE = "SELECT count(*) FROM rota_jobs WHERE state = 'queued' AND due = 1 AND task = 'blocked'"


def drain_behind(context: RunContext, entry: Entry) -> Metrics:
    """Drain jobs that come after those that may not run, once a worker has met these."""
    n = context.size(entry.options.get("n") or context.peers[entry.peer].drain)
    with _behind(context, entry) as (trial, met_s):
        trial.run_role("bulk", n=n)
        trial.vacuum_and_checkpoint()
        return {**drain_stored(context, trial, n), "meet_s": met_s}


def pickup_behind(context: RunContext, entry: Entry) -> Metrics:
    """One job every 50 ms for an idle worker that has met those that may not run."""
    with _behind(context, entry) as (trial, met_s):
        return {**pick_up(context, trial), "meet_s": met_s}


@contextlib.contextmanager
def _behind(context: RunContext, entry: Entry) -> Iterator[tuple[Trial, float]]:
    """A store with ``blocked`` jobs that a worker has met, and the seconds that took."""
    count = context.size(entry.options["blocked"])
    with context.trial(entry) as trial:
        met_s = 0.0
        if count:
            trial.options["enqueue_blocked"] = True
            trial.run_role("bulk", n=count)
            del trial.options["enqueue_blocked"]
            trial.vacuum_and_checkpoint()
            met_s = _meet(context, trial)
            trial.vacuum_and_checkpoint()
        yield trial, met_s


def _meet(context: RunContext, trial: Trial) -> float:
    """Run a worker until it no longer changes which of the blocked jobs are in the line."""
    started = time.monotonic()
    before, quiet = -1, 0
    with trial.workers(1, context.execution_log(100)) as workers:
        while quiet < QUIET_LOOKS:
            time.sleep(LOOK_S)
            found = _in_line(trial)
            quiet = quiet + 1 if found == before else 0
            before = found
            if time.monotonic() - started > MEET_S or workers[0].poll() is not None:
                raise MeasurementFailed(f"{found} blocked jobs are in the line still")
    return time.monotonic() - started - QUIET_LOOKS * LOOK_S


def _in_line(trial: Trial) -> int:
    if trial.on_postgres:
        return int(trial.server.number(IN_LINE))
    with contextlib.closing(sqlite3.connect(trial.file, timeout=30)) as connection:
        (count,) = connection.execute(IN_LINE_SQLITE).fetchone()
        return int(count)
