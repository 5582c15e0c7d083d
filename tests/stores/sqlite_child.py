"""What the child processes of the SQLite tests do; run as ``python sqlite_child.py VERB URL …``."""

from __future__ import annotations

import asyncio
import sys
from datetime import UTC, datetime

from rota.model import ClaimRequest, NewJob, State
from rota.runtime.clock import Ids
from rota.store.calls import settle
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import change

NOW = datetime(2030, 1, 1, tzinfo=UTC)


async def insert_until_killed(url: str) -> None:
    """Print each id only when the store has acknowledged it."""
    store, ids = SqliteStore(url), Ids()
    await store.open()

    async def producer() -> None:
        while True:
            job = NewJob(id=ids.new(datetime.now(UTC)), task="send")
            await store.insert([job], NOW)
            sys.stdout.write(job.id + "\n")
            sys.stdout.flush()

    await asyncio.gather(*(producer() for _ in range(8)))


async def work(url: str, count: str) -> None:
    """Insert ``count`` jobs one by one, from four producers, and run as many from anyone; print their ids."""
    store, ids, left = SqliteStore(url), Ids(), int(count)
    await store.open()

    async def producer() -> None:
        for _ in range(int(count) // 4):
            await store.insert([NewJob(id=ids.new(datetime.now(UTC)), task="send")], NOW)

    producers = asyncio.gather(*(producer() for _ in range(4)))
    while left:
        turn = await store.turn((), ClaimRequest(worker=url, limit=min(left, 10), lease_s=60), NOW)
        left -= len(turn.jobs)
        done = [change(job, State.SUCCEEDED) for job in turn.jobs]
        assert await settle(store, done, NOW) == frozenset()
        print(*(job.id for job in turn.jobs), sep="\n")
    await producers
    await store.close()


asyncio.run({"insert": insert_until_killed, "work": work}[sys.argv[1]](*sys.argv[2:]))
