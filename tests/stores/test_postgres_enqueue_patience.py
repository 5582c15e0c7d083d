"""PostgreSQL: enqueueing waits through a short outage, once for each job and no longer than it may."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from rota import Rota
from rota.errors import StoreUnavailable
from servers import Postgres

pytestmark = pytest.mark.crash

OUTAGE_S = 2.0
WITHIN_S = 60.0
ENDLESS_S = 3600.0


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A server of its own: the others must not notice that it goes away."""
    with Postgres() as private:
        yield private


@pytest.fixture
async def url(server: Postgres) -> AsyncIterator[str]:
    server.drop_database("patience")
    url = server.create_database("patience")
    app = Rota(url)
    await app.stores.root().schema.migrate()
    await app.close()
    yield url
    if server.pid is None:
        server.start()


def stored(server: Postgres) -> list[str]:
    return sorted(str(row[0]) for row in server.execute("SELECT id FROM rota.queued", "patience"))


async def test_no_enqueue_is_refused_while_the_server_restarts(url: str, server: Postgres) -> None:
    app = Rota(url)
    over = asyncio.Event()
    acknowledged: list[str] = []

    async def single(n: int) -> None:
        for nth in itertools.count():
            job = await app.enqueue("work", {"n": n}, key=f"key-{n}-{nth}" if n % 2 else None)
            acknowledged.append(job.id)
            if over.is_set():
                return
            await asyncio.sleep(0.02)

    async def many() -> None:
        while not over.is_set():
            jobs = await app.enqueue_many("work", [{"n": n} for n in range(60)])
            acknowledged.extend(job.id for job in jobs)
            await asyncio.sleep(0.1)

    def from_a_thread() -> None:
        while not over.is_set():
            jobs = [app.enqueue_sync("work", {}), *app.enqueue_many_sync("work", [{}, {}])]
            acknowledged.extend(job.id for job in jobs)

    async def outage() -> None:
        await asyncio.sleep(0.2)
        await asyncio.to_thread(server.stop)
        await asyncio.sleep(OUTAGE_S)
        await asyncio.to_thread(server.start)
        over.set()

    async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as group:
        for n in range(8):
            group.create_task(single(n))
        group.create_task(many())
        group.create_task(asyncio.to_thread(from_a_thread))
        group.create_task(outage())
    await app.close()
    assert stored(server) == sorted(acknowledged)


async def test_the_first_enqueue_of_a_program_waits_too(url: str, server: Postgres) -> None:
    app = Rota(url)
    await asyncio.to_thread(server.stop)
    waiting = asyncio.ensure_future(app.enqueue("work", {}))
    await asyncio.sleep(0.5)
    assert not waiting.done()
    await asyncio.to_thread(server.start)
    await asyncio.wait_for(waiting, WITHIN_S)
    await app.close()
    assert len(stored(server)) == 1


async def test_patience_that_ends_is_told(url: str, server: Postgres) -> None:
    app = Rota(url, enqueue_patience_s=0.3)
    await app.enqueue("work", {})
    await asyncio.to_thread(server.stop)
    with pytest.raises(StoreUnavailable, match=r"waited for \d+\.\d s"):
        await asyncio.wait_for(app.enqueue("work", {}), WITHIN_S)
    await app.close()


async def test_no_patience_means_being_told_at_once(url: str, server: Postgres) -> None:
    app = Rota(url, enqueue_patience_s=0)
    await app.enqueue("work", {})
    await asyncio.to_thread(server.stop)
    with pytest.raises(StoreUnavailable, match="not available"):
        await asyncio.wait_for(app.enqueue("work", {}), WITHIN_S)
    await app.close()


async def test_closing_ends_the_wait(url: str, server: Postgres) -> None:
    app = Rota(url, enqueue_patience_s=ENDLESS_S)
    await app.enqueue("work", {})
    await asyncio.to_thread(server.stop)
    waiting = asyncio.ensure_future(app.enqueue("work", {}))
    await asyncio.sleep(0.3)
    assert not waiting.done()
    await app.close()
    with pytest.raises(StoreUnavailable, match="waited"):
        await asyncio.wait_for(waiting, WITHIN_S)


async def test_closing_ends_the_wait_of_a_thread(url: str, server: Postgres) -> None:
    app = Rota(url, enqueue_patience_s=ENDLESS_S)
    await asyncio.to_thread(app.enqueue_sync, "work", {})
    await asyncio.to_thread(server.stop)
    errors: list[BaseException] = []

    def enqueue() -> None:
        try:
            app.enqueue_sync("work", {})
        except StoreUnavailable as error:
            errors.append(error)

    waiting = threading.Thread(target=enqueue)
    waiting.start()
    await asyncio.sleep(0.3)
    assert waiting.is_alive()
    await asyncio.to_thread(app.portal.close)
    await asyncio.to_thread(waiting.join, WITHIN_S)
    assert len(errors) == 1


async def test_a_cancelled_caller_waits_no_longer(url: str, server: Postgres) -> None:
    app = Rota(url, enqueue_patience_s=ENDLESS_S)
    await app.enqueue("work", {})
    await asyncio.to_thread(server.stop)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(app.enqueue("work", {}), 0.3)
    await app.close()
