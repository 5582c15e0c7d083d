"""PostgreSQL: turns, heartbeats and cancels lock jobs in one order, so that no two wait for each other."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import psycopg
import pytest

from rota.core.jobs import lifecycle
from rota.model import Job, ProgressUpdate, State
from rota.store.calls import claim
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, lease, new, pulse, want

pytestmark = pytest.mark.crash

LONG = os.environ.get("ROTA_CRASH") == "long"
WITHIN_S = 30.0
FAULT = '{"type":"ValueError","message":"no luck"}'

WAITING = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"

Call = Callable[[PostgresStore, Job, Job], Awaitable[Any]]


@pytest.fixture
async def other(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(migrated_postgres_url)
    await opened.open()
    yield opened
    await opened.close()


async def settle_both(store: PostgresStore, low: Job, high: Job) -> None:
    """A failure of the later job and a success of the earlier one."""
    ends = [change(high, State.QUEUED, run_at=at(900), error_json=FAULT), change(low, State.SUCCEEDED)]
    assert (await store.turn(ends, None, T0)).refused == frozenset()


async def succeed_both(store: PostgresStore, low: Job, high: Job) -> None:
    assert (
        await store.turn([change(one, State.SUCCEEDED) for one in (low, high)], None, T0)
    ).refused == set()


async def renew_both(store: PostgresStore, low: Job, high: Job) -> None:
    await store.heartbeat(pulse([lease(low), lease(high)]), T0)


async def renew_and_note(store: PostgresStore, low: Job, high: Job) -> None:
    """The lease of the later job, the progress of the earlier one."""
    note = ProgressUpdate(id=low.id, lease_token=low.lease_token, progress_json="{}")
    await store.heartbeat(pulse([lease(high)], notes=[note]), T0)


async def cancel_both(store: PostgresStore, low: Job, high: Job) -> None:
    assert len(await store.edit([low.id, high.id], lifecycle.cancel("enough", T0), T0)) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [(settle_both, renew_both), (renew_and_note, succeed_both), (cancel_both, renew_both)],
    ids=["turn beside heartbeat", "heartbeat beside turn", "cancel beside heartbeat"],
)
async def test_two_calls_that_meet_at_one_lock_both_go_on(
    store: PostgresStore, other: PostgresStore, migrated_postgres_url: str, first: Call, second: Call
) -> None:
    """Both wait for the later job. Whichever gets it must not need what the other has locked by then."""
    low, high = await two_jobs(store)
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url) as holder:
        await holder.execute("SELECT FROM rota.running WHERE id = %s FOR UPDATE", (high.id,))
        calls = []
        for number, (call, through) in enumerate([(first, store), (second, other)], 1):
            calls.append(asyncio.ensure_future(call(through, low, high)))
            await waiting(migrated_postgres_url, number)
        await holder.commit()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*calls)
    await store.close()
    await other.close()
    assert await deadlocks(migrated_postgres_url) == 0


async def two_jobs(store: PostgresStore) -> tuple[Job, Job]:
    """The later job is claimed first, so it is the first in the table."""
    jobs = [new(), new()]
    await store.insert(jobs[1:], T0)
    (high,) = await claim(store, want(1), T0)
    await store.insert(jobs[:1], T0)
    (low,) = await claim(store, want(1), T0)
    assert low.id < high.id
    return low, high


async def waiting(url: str, count: int) -> None:
    """Until this many sessions wait for a lock."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as watcher:
        deadline = time.monotonic() + WITHIN_S
        while await number(watcher, WAITING) < count:
            assert time.monotonic() < deadline, f"{count} sessions do not wait"
            await asyncio.sleep(0.005)


async def number(connection: psycopg.AsyncConnection[Any], statement: str) -> int:
    row = await (await connection.execute(statement.encode())).fetchone()
    assert row is not None
    return int(row[0])


async def deadlocks(url: str) -> int:
    """How many the server has found in this database. A session may report its own only when it ends."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as watcher:
        return await number(watcher, DEADLOCKS)


@pytest.mark.timeout(300)
async def test_heartbeats_without_a_pause_beside_turns_with_mixed_ends(
    store: PostgresStore, other: PostgresStore, migrated_postgres_url: str
) -> None:
    """A thousand leases are renewed again and again while sixty jobs a turn end, half of them badly."""
    await store.insert([new() for _ in range(1000)], T0)
    held = list(await claim(store, want(1000, lease_s=3600), T0))
    chance = random.Random(1)
    over = asyncio.Event()
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while not over.is_set():
            jobs = list(held)
            notes = [
                ProgressUpdate(id=job.id, lease_token=job.lease_token, progress_json="{}")
                for job in chance.sample(jobs, 20)
            ]
            renewed = [lease(job) for job in jobs if chance.random() < 0.9]
            await other.heartbeat(pulse(renewed, notes=notes, lease_s=3600), T0)
            beats += 1

    beating = asyncio.ensure_future(beat())
    until = time.monotonic() + (60.0 if LONG else 4.0)
    turns = 0
    try:
        while time.monotonic() < until and not beating.done():
            ended = chance.sample(held, 60)
            result = await store.turn(ends(ended), want(60, lease_s=3600), T0)
            assert result.refused == frozenset()
            gone = {job.id for job in ended}
            held = [job for job in held if job.id not in gone] + list(result.jobs)
            await store.insert([new() for _ in range(30)], T0)
            turns += 1
    finally:
        over.set()
        await beating
    await store.close()
    await other.close()
    assert turns > 5 and beats > 5
    assert await deadlocks(migrated_postgres_url) == 0


def ends(jobs: Sequence[Job]) -> list[Any]:
    middle = len(jobs) // 2
    bad = [change(job, State.QUEUED, attempt=0, error_json=FAULT) for job in jobs[:middle]]
    return bad + [change(job, State.SUCCEEDED) for job in jobs[middle:]]
