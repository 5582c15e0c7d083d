"""PostgreSQL: workers that end runs of the same schedules at once neither deadlock nor miscount."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import psycopg

from rota.core.jobs import lifecycle
from rota.model import Job, RetentionCutoffs, RunCounts, State
from rota.store.calls import claim
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import ERROR, T0, at, change, new, want

SCHEDULES = [f"s{n}" for n in range(3)]
ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


def count_slowly(url: str, seconds: float) -> None:
    """Every backend counts in one slot, as two of the same process number modulo 64 do, and slowly."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute("SELECT pg_get_functiondef('rota.count_runs'::regproc)").fetchone()
        assert row is not None
        slow = row[0].replace("pg_backend_pid() % 64", "0")
        slow = slow.replace("\nEND", f"\nPERFORM pg_sleep({seconds}); END")
        assert slow.count("pg_sleep") == 1
        assert "pg_backend_pid" not in slow
        connection.execute(slow.encode())


def deadlocks(url: str) -> int:
    """How many the server has found in this database; a session may report its own only when it ends."""
    with psycopg.connect(url) as connection:
        row = connection.execute(DEADLOCKS).fetchone()
        assert row is not None
        return int(row[0])


async def test_runs_that_end_and_are_retried_at_once_are_counted_once_each(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    others = [store.for_another_loop() for _ in range(4)]
    for one in others:
        await one.open()
    count_slowly(migrated_postgres_url, 0.01)
    await store.insert([new(schedule=random.choice(SCHEDULES)) for _ in range(100)], T0)

    async def work(one: PostgresStore) -> list[Job]:
        mine: list[Job] = []
        while jobs := await claim(one, want(3), T0):
            ends = [change(job, random.choice(ENDS)) for job in jobs]
            assert not (await one.turn(ends, None, at(1))).refused
            retried = await one.edit([job.id for job in jobs[:1]], lifecycle.retry(at(900)), at(2))
            mine += [job for job in jobs if job.id not in retried]
        await one.close()
        return mine

    done = [job for mine in await asyncio.gather(*map(work, others)) for job in mine]
    await store.maintain(RetentionCutoffs(), 1, at(3 * 86_400))  # sums up the slots
    counts = await store.survey(RunCounts([("default", name) for name in SCHEDULES], T0.date()))
    found = {one.schedule: one.succeeded + one.failed + one.cancelled for one in counts}
    assert found == Counter(job.schedule for job in done)
    assert deadlocks(migrated_postgres_url) == 0


async def test_turns_that_end_runs_of_two_schedules_crosswise_do_not_wait_for_each_other(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    """One fails a run of a and completes one of b, the other the reverse, both in the same slot."""
    others = [store.for_another_loop() for _ in range(2)]
    for one in others:
        await one.open()
    count_slowly(migrated_postgres_url, 0.2)
    await store.insert([new(schedule=name) for name in "aabb"], T0)
    held = await claim(store, want(4), T0)
    a, b = ([job for job in held if job.schedule == name] for name in "ab")

    async def turn(one: PostgresStore, failed: Job, succeeded: Job) -> None:
        ends = [change(failed, State.FAILED, error_json=ERROR), change(succeeded, State.SUCCEEDED)]
        assert not (await one.turn(ends, None, at(1))).refused
        await one.close()

    await asyncio.gather(turn(others[0], a[0], b[0]), turn(others[1], b[1], a[1]))
    assert deadlocks(migrated_postgres_url) == 0
    counts = await store.survey(RunCounts([("default", "a"), ("default", "b")], T0.date()))
    assert [(one.succeeded, one.failed) for one in counts] == [(1, 1), (1, 1)]


async def test_days_that_are_over_are_found_without_reading_the_others(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO rota.run_counts "
            "SELECT 'default', 's' || n % 50, date '2030-01-01' - n / 50, 0, 1, 0, 0, 0, 0, 0 "
            "FROM generate_series(0, 9999) AS n"
        )
        connection.execute("ANALYZE rota.run_counts")
        for where, index in (
            ("day < '2029-06-20'", "run_counts_day"),
            ("day < '2029-12-30' AND slot <> 0", "spread"),
        ):
            rows = connection.execute(
                f"EXPLAIN DELETE FROM rota.run_counts WHERE {where}".encode()
            ).fetchall()
            assert index in str(rows), rows
