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
from rota.testing.conformance.factories import T0, at, change, new, want

SCHEDULES = [f"s{n}" for n in range(3)]
ENDS = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


async def test_runs_that_end_and_are_retried_at_once_are_counted_once_each(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    others = [store.for_another_loop() for _ in range(4)]
    for one in others:
        await one.open()
    # Every backend counts in one slot, as two with the same process number modulo 64 do, and takes its time.
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        row = connection.execute("SELECT pg_get_functiondef('rota.count_runs'::regproc)").fetchone()
        assert row is not None
        slow = row[0].replace("pg_backend_pid() % 64", "0").replace("\nEND", "\nPERFORM pg_sleep(0.01); END")
        assert slow.count("pg_sleep") == 1
        connection.execute(slow.encode())
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
    with psycopg.connect(migrated_postgres_url) as connection:
        assert connection.execute(DEADLOCKS).fetchone() == (0,)
