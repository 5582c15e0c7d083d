"""A transaction that stays open for minutes elsewhere in the database, while 500 jobs a second go on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from ..ledger import check, first_starts
from ..setting import Entry, Figures, Setting, percentile
from ..stage import Stage
from .latency import GRACE_S, SETTLE_S, waits_of

RATE = 500
DEAD = "SELECT sum(n_dead_tup) FROM pg_stat_all_tables WHERE schemaname = 'rota'"
FALL_BACK_S = 150.0  # autovacuum looks once a minute


def held(setting: Setting, entry: Entry) -> Figures:
    """``hold``: whether the transaction is there. Rate and latency of the last third, when it hurts most."""
    seconds = max(entry.options["seconds"] * setting.scale, 3)
    with setting.stage(entry) as stage:
        ledger = setting.ledger(int(RATE * seconds))
        with stage.workers(1, ledger) as workers:
            time.sleep(SETTLE_S)
            with _open_transaction(stage if entry.options["hold"] else None):
                found = stage.role("paced", rate=RATE, seconds=seconds)
                stage.until(found["n"], ledger, workers, GRACE_S)
                time.sleep(1.0)  # until the counters have been told
                dead = stage.server.number(DEAD)
            fallen = _wait_for_vacuum(stage, dead) if entry.options["hold"] else dead
        records = ledger.records()
        claims = json.loads((ledger.folder / "claims.json").read_text())
    check(records, found["n"])
    starts = first_starts(records)
    late = range(found["n"] * 2 // 3, found["n"])
    lasted = (max(starts[i] for i in late) - min(found["asked"][i] for i in late)) / 1e9
    return {
        **waits_of(found["asked"], starts, late.start),
        "jobs_s": len(late) / lasted,
        "claim_p99_ms": percentile(claims[len(claims) * 2 // 3 :], 0.99),
        "dead_tuples": dead,
        "dead_tuples_after": fallen,
        "n": found["n"],
    }


@contextmanager
def _open_transaction(stage: Stage | None) -> Iterator[None]:
    """A snapshot, held: nothing that dies meanwhile may be vacuumed away."""
    if stage is None:
        yield
        return
    with psycopg.connect(stage.url) as connection:
        connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(b"SELECT count(*) FROM pg_class")
        yield
        connection.rollback()


def _wait_for_vacuum(stage: Stage, dead: float) -> float:
    """How many dead tuples are left once autovacuum has been there."""
    abandon_all = time.monotonic() + FALL_BACK_S
    while (left := stage.server.number(DEAD)) > dead / 10 and time.monotonic() < abandon_all:
        time.sleep(2)
    return left
