"""500 jobs a second while another transaction stays open in the database for minutes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from ..execution_log import check, first_starts
from ..scenario import Entry, Metrics, RunContext, percentile
from ..trial import Trial
from .latency import GRACE_S, SETTLE_S, wait_percentiles

RATE = 500
DEAD = "SELECT sum(n_dead_tup) FROM pg_stat_all_tables WHERE schemaname = 'rota'"
VACUUM_S = 150.0  # autovacuum runs once a minute


def open_transaction(context: RunContext, entry: Entry) -> Metrics:
    """Measure the last third, where the effect is largest. ``hold``: whether there is such a transaction."""
    seconds = max(entry.options["seconds"] * context.scale, 3)
    with context.trial(entry) as trial:
        log = context.execution_log(int(RATE * seconds))
        with trial.workers(1, log) as workers:
            time.sleep(SETTLE_S)
            with _open_transaction(trial if entry.options["hold"] else None):
                found = trial.run_role("paced", rate=RATE, seconds=seconds)
                trial.wait_for_executions(found["n"], log, workers, GRACE_S)
                time.sleep(1.0)  # until the server's statistics are up to date
                dead = trial.server.number(DEAD)
            dead_after = _wait_for_vacuum(trial, dead) if entry.options["hold"] else dead
        records = log.records()
        claims = json.loads((log.folder / "claims.json").read_text())
    check(records, found["n"])
    starts = first_starts(records)
    late = range(found["n"] * 2 // 3, found["n"])
    lasted = (max(starts[i] for i in late) - min(found["requested_at"][i] for i in late)) / 1e9
    return {
        **wait_percentiles(found["requested_at"], starts, late.start),
        "jobs_s": len(late) / lasted,
        "claim_p99_ms": percentile(claims[len(claims) * 2 // 3 :], 0.99),
        "dead_tuples": dead,
        "dead_tuples_after": dead_after,
        "n": found["n"],
    }


@contextmanager
def _open_transaction(trial: Trial | None) -> Iterator[None]:
    """Hold a snapshot open, so that vacuum cannot remove rows that die during the block."""
    if trial is None:
        yield
        return
    with psycopg.connect(trial.url) as connection:
        connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(b"SELECT count(*) FROM pg_class")
        yield
        connection.rollback()


def _wait_for_vacuum(trial: Trial, dead: float) -> float:
    """Wait for autovacuum and return how many dead tuples are left."""
    deadline = time.monotonic() + VACUUM_S
    while (left := trial.server.number(DEAD)) > dead / 10 and time.monotonic() < deadline:
        time.sleep(2)
    return left
