"""One open store for each event loop, closed with it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from rota import Rota
from rota.runtime import stores
from rota.runtime.clock import Clock
from rota.store.protocol import Store
from rota.store.sqlite.store import SqliteStore


@pytest.fixture(autouse=True)
def no_resource_warnings() -> Iterator[None]:
    """An object that is dropped while it is open says so, at the latest when the test ends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(one.message) for one in caught if one.category is ResourceWarning] == []


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    app = Rota(store_url)
    yield app
    app.portal.close()
    asyncio.run(app.close())


@pytest.fixture
def postgres_app(migrated_postgres_url: str) -> Iterator[Rota]:
    app = Rota(migrated_postgres_url)
    yield app
    app.portal.close()
    asyncio.run(app.close())


def connections(server: Any, app: Rota) -> int:
    """Those that the server still has: one that was closed takes a moment to go."""
    database = app.settings.url.rpartition("/")[2]
    statement = (
        "SELECT count(*) FROM pg_stat_activity "
        f"WHERE datname = '{database}' AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    found: int = server.execute(statement)[0][0]
    return found


def assert_connections(server: Any, app: Rota, most: int) -> None:
    deadline = time.monotonic() + 30
    while (found := connections(server, app)) > most:
        assert time.monotonic() < deadline, f"{found} connections are open"
        time.sleep(0.01)


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_two_loops_that_open_at_once_do_not_share_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Barrier(2)
    url = f"sqlite:///{tmp_path / 'rota.db'}"

    async def migrate() -> None:
        store = SqliteStore(url)
        await store.schema.migrate()
        await store.close()

    asyncio.run(migrate())

    class Slow(SqliteStore):
        async def open(self) -> None:
            await asyncio.to_thread(both.wait, 30)
            await super().open()

        def for_another_loop(self) -> SqliteStore:
            return Slow(url, engine=self._engine)

    monkeypatch.setattr(stores, "open_store", Slow)
    per_loop = stores.StorePerLoop(url, Clock())

    async def use() -> Store:
        store = await per_loop.get()
        await asyncio.to_thread(both.wait, 30)
        await per_loop.close()
        return store

    with ThreadPoolExecutor(2) as pool:
        first, second = (future.result() for future in [pool.submit(asyncio.run, use()) for _ in range(2)])
    assert first is not second


def test_a_loop_per_call_leaves_no_connection_behind(postgres_app: Rota, postgres_server: Any) -> None:
    job = postgres_app.enqueue_sync("work")
    postgres_app.portal.close()
    for _ in range(60):
        assert asyncio.run(postgres_app.job(job.id)).state == "queued"
    assert_connections(postgres_server, postgres_app, 0)


def test_a_loop_that_ends_while_a_call_waits_leaves_no_connection_behind(
    postgres_app: Rota, postgres_server: Any
) -> None:
    job = postgres_app.enqueue_sync("work")
    postgres_app.portal.close()

    async def wait_in_vain() -> None:
        waiting = asyncio.create_task(job.result())  # listens, too
        await asyncio.wait([waiting], timeout=0.2)

    for _ in range(3):
        asyncio.run(wait_in_vain())
    assert_connections(postgres_server, postgres_app, 0)


def test_loops_that_are_closed_without_ceremony_leave_a_few_connections_at_most(
    postgres_app: Rota, postgres_server: Any
) -> None:
    job = postgres_app.enqueue_sync("work")
    postgres_app.portal.close()
    for _ in range(20):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(postgres_app.job(job.id))
        loop.close()
    assert_connections(postgres_server, postgres_app, 1)
    assert postgres_app.stores.loops == 0
    assert_connections(postgres_server, postgres_app, 0)


def test_a_loop_per_call_opens_no_further_threads_or_files(tmp_path: Path) -> None:
    app = Rota(f"sqlite:///{tmp_path / 'rota.db'}")
    job = asyncio.run(app.enqueue("work"))
    before = threading.active_count() + handles()
    for _ in range(100):
        asyncio.run(app.job(job.id))
    assert threading.active_count() + handles() < before + 20
    asyncio.run(app.close())
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("rota")]


def test_a_database_in_memory_outlives_the_loops_that_use_it() -> None:
    app = Rota("sqlite://:memory:")
    job = asyncio.run(app.enqueue("work"))
    asyncio.run(app.migrate())
    assert asyncio.run(app.job(job.id)).task == "work"
    assert app.stores._last is not None
    app.stores._last.abandon()  # once more
    asyncio.run(app.migrate())
    assert asyncio.run(app.job(job.id)).task == "work"
    asyncio.run(app.close())
    assert asyncio.run(app.stats())["queued"] == 0
    asyncio.run(app.close())


def test_the_number_of_connections_is_bounded_however_many_loops_run_at_once(
    postgres_app: Rota, postgres_server: Any
) -> None:
    many = 24
    job = postgres_app.enqueue_sync("work")
    all_here = Barrier(many, timeout=60)
    seen: list[int] = []

    async def use() -> str:
        found = await postgres_app.job(job.id)
        if await asyncio.to_thread(all_here.wait) == 0:
            seen.append(connections(postgres_server, postgres_app))
        await asyncio.to_thread(all_here.wait)
        return (await found.refresh()).task

    with ThreadPoolExecutor(many) as pool:
        found = [future.result() for future in [pool.submit(asyncio.run, use()) for _ in range(many)]]
    assert found == ["work"] * many
    assert seen[0] <= (stores.MOST_LOOPS + 1) * 4
    assert_connections(postgres_server, postgres_app, 4)


def test_a_loop_beyond_the_bound_can_do_all_that_others_can(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "MOST_LOOPS", 0)

    @app.task
    async def work(n: int) -> int:
        return n + 1

    async def use() -> tuple[int, list[str], int]:
        await app.migrate()
        job = await work.enqueue(n=1)
        with pytest.raises(TimeoutError):
            await job.result(timeout=0.2)
        page = await app.jobs(task="work")
        pending = await (await app.stores.get()).schema.pending()
        async with app.running():  # a worker has connections of its own
            return await job.result(timeout=30), [one.id for one in page.items], len(pending)

    result, found, pending = asyncio.run(use())
    assert (result, len(found), pending) == (2, 1, 0)
