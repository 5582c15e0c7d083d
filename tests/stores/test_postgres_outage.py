"""PostgreSQL: restarts, cut connections, and wake-ups between processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import psycopg
import pytest

from rota.errors import StoreUnavailable
from rota.model import State
from rota.store.calls import claim, settle
from rota.store.postgres import listener
from rota.store.postgres.connections import Connection
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, change, new, running, want
from servers import Postgres

pytestmark = pytest.mark.crash

WITHIN_S = 30.0
CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rota' AND datname = %s
"""
INSERT = """
import asyncio, sys
from datetime import UTC, datetime
from rota.runtime.clock import Ids
from rota.model import NewJob
from rota.store.postgres.store import PostgresStore

async def main():
    store, now = PostgresStore(sys.argv[1]), datetime.now(UTC)
    await store.open()
    await store.insert([NewJob(id=Ids().new(now), task="work", queue=sys.argv[2])], now)
    await store.close()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server of its own: the others must not notice that it goes away."""
    with Postgres() as private:
        yield private


@pytest.fixture
async def store(server: Postgres) -> AsyncIterator[PostgresStore]:
    server.drop_database("outage")
    opened = PostgresStore(server.create_database("outage"))
    await opened.schema.migrate()
    await opened.open()
    yield opened
    await opened.close()


async def eventually(ask: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await ask():  # noqa: ASYNC110 - what happens in a server sets no event here
            await asyncio.sleep(0.02)


async def insert_elsewhere(url: str, queue: str) -> None:
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", INSERT, url, queue)
    assert await child.wait() == 0


async def test_a_restart_between_two_calls_is_not_noticed(store: PostgresStore, server: Postgres) -> None:
    await store.insert([new()], T0)
    await asyncio.to_thread(server.restart)
    assert len(await claim(store, want(), T0)) == 1
    await asyncio.to_thread(server.restart)
    assert (await store.insert([new()], T0))[0].outcome == "created"


async def test_while_the_server_is_down_every_verb_raises_and_then_recovers(
    store: PostgresStore, server: Postgres
) -> None:
    job = await running(store)
    await asyncio.to_thread(server.stop)
    try:
        for call in (
            store.clock(),
            store.insert([new()], T0),
            claim(store, want(), T0),
            store.documents("worker"),
        ):
            with pytest.raises(StoreUnavailable):
                await call
    finally:
        await asyncio.to_thread(server.start)
    assert not await settle(store, [change(job, State.SUCCEEDED)], T0)


async def test_cut_connections_in_the_middle_of_work_surface_as_unavailable_only(
    store: PostgresStore, server: Postgres
) -> None:
    jobs = [new() for _ in range(300)]
    stored: set[str] = set()

    async def produce(mine: list[str]) -> None:
        for id in mine:
            job, again = next(one for one in jobs if one.id == id), False
            while id not in stored:
                try:
                    await store.insert([job], T0, retrying=again)
                    stored.add(id)
                except StoreUnavailable:
                    again = True

    async def cut() -> None:
        async with await psycopg.AsyncConnection.connect(server.url("outage"), autocommit=True) as other:
            for reached in range(0, len(jobs), 30):
                while len(stored) < reached:  # noqa: ASYNC110
                    await asyncio.sleep(0)
                await other.execute(CUT, ("outage",))

    ids = [job.id for job in jobs]
    await asyncio.gather(cut(), *(produce(ids[n::6]) for n in range(6)))
    taken = [job.id for job in await claim(store, want(1000), T0)]
    assert sorted(taken) == sorted(ids)


async def test_an_insert_in_another_process_wakes_a_waiting_worker(
    store: PostgresStore, server: Postgres
) -> None:
    waker = store.waker()
    await listening(store)
    await waker.wait(["mail"], 0)  # what was heard so far
    waiting = asyncio.ensure_future(waker.wait(["mail"], WITHIN_S))
    await insert_elsewhere(server.url("outage"), "other")
    assert not waiting.done()
    started = asyncio.get_running_loop().time()
    await insert_elsewhere(server.url("outage"), "mail")
    await waiting
    assert asyncio.get_running_loop().time() - started < WITHIN_S
    await waker.close()


async def test_the_end_of_a_job_in_another_store_wakes_who_waits_for_it(store: PostgresStore) -> None:
    job, other = await running(store), store.for_another_loop()
    await other.open()
    waker = other.waker()
    await listening(other)
    waiting = asyncio.ensure_future(waker.wait_finished(job.id, WITHIN_S))

    async def is_registered() -> bool:
        return bool(await store._connections.rows("SELECT 1 FROM rota.waiters WHERE id = %s", (job.id,)))

    await eventually(is_registered)
    await settle(store, [change(job, State.SUCCEEDED)], T0)
    async with asyncio.timeout(WITHIN_S):
        await waiting
    assert not await is_registered()
    await waker.wait_finished(job.id, WITHIN_S)  # it has ended: nothing to wait for
    await other.close()


async def test_the_listener_comes_back_after_a_restart(store: PostgresStore, server: Postgres) -> None:
    waker = store.waker()
    await listening(store)
    await asyncio.to_thread(server.restart)
    await listening(store)
    await waker.wait(["mail"], 0)
    waiting = asyncio.ensure_future(waker.wait(["mail"], WITHIN_S))
    await insert_elsewhere(server.url("outage"), "mail")
    async with asyncio.timeout(WITHIN_S):
        await waiting
    await waker.close()


async def test_without_listening_a_wait_ends_at_its_timeout(store: PostgresStore, server: Postgres) -> None:
    deaf = PostgresStore(server.url("outage") + "?listen=off")
    await deaf.open()
    waker = deaf.waker()
    await waker.wait(None, 0.05)
    assert not await listeners(deaf)
    await deaf.insert([new()], T0)
    await waker.wait(None, WITHIN_S)  # hints of its own process still arrive
    await deaf.close()


async def listeners(store: PostgresStore) -> bool:
    """Whether a listener is connected: seen from outside, so that the store needs no test hook."""
    rows = await store._connections.rows(
        "SELECT 1 FROM pg_stat_activity "
        "WHERE datname = current_database() AND query LIKE 'LISTEN rota_probe%%'"
    )
    return bool(rows)


async def listening(store: PostgresStore) -> None:
    async def ask() -> bool:
        try:
            return await listeners(store)
        except StoreUnavailable:
            return False

    await eventually(ask)


async def test_a_busy_listener_does_not_count_as_deaf(
    migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connects = 0
    connect = listener.connect

    async def counted(*given: str) -> Connection:
        nonlocal connects
        connects += 1
        return await connect(*given)

    monkeypatch.setattr(listener, "connect", counted)
    monkeypatch.setattr(listener, "PROBE_EVERY_S", 0.01)
    monkeypatch.setattr(listener, "PROBE_WITHIN_S", 2.0)
    store = PostgresStore(migrated_postgres_url)
    await store.open()
    waker = store.waker()
    try:
        async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as other:
            for _ in range(400):  # some in one packet, beside the listener's own probes
                await other.execute("SELECT pg_notify('rota_wake', 'q' || n) FROM generate_series(1, 5) AS n")
            await waker.wait(None, 5)
            await other.execute("SELECT pg_notify('rota_wake', 'the last')")
            async with asyncio.timeout(10):
                await waker.wait(["the last"], 60)
        assert connects == 1
    finally:
        await waker.close()
        await store.close()
