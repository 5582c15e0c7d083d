"""``override`` and ``reset``: a module's app on a store of the test's own."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rota import Backoff, Rota
from rota.errors import AlreadyRunning, ConfigError
from rota.testing import FakeClock, assert_enqueued, drain, drain_sync, inline, override, reset, reset_sync


@pytest.fixture
def shop(make_app: Callable[..., Rota], sqlite_url: str) -> Rota:
    """An app as a module defines it: on its own store, by the real clock."""
    return make_app(sqlite_url)


async def test_an_app_in_a_test_keeps_the_options_of_its_tasks(shop: Rota) -> None:
    @shop.task(queue="mail", max_attempts=2, backoff=Backoff(base=7, jitter=0))
    async def send() -> None:
        raise RuntimeError("no")

    clock = FakeClock()
    async with override(shop, clock=clock) as app:
        job = await send.enqueue()
        assert await drain(app) == 1
        found = await job.refresh()
        assert (found.queue, found.state, found.run_at) == ("mail", "queued", clock.advance(7))
    assert (await shop.stats())["queued"] == 0
    assert shop.clock is not clock


def test_a_sync_test_sees_its_own_store_and_leaves_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'shop.db'}"
    shop, before = Rota(url), set(threading.enumerate())

    @shop.task
    def send(order_id: int) -> int:
        return order_id

    with override(shop, clock=FakeClock()):
        job = send.enqueue_sync(order_id=42)
        assert assert_enqueued(send, order_id=42).id == job.id
        assert drain_sync(shop) == 1
        assert job.result_sync(timeout=5) == 42
    assert shop.settings.url == url
    assert not (tmp_path / "shop.db").exists()
    left = {thread for thread in set(threading.enumerate()) - before if thread.name.startswith("rota-")}
    for thread in left:
        thread.join(5)
    assert not [thread for thread in left if thread.is_alive()]


async def test_a_connection_to_another_store_is_refused_in_memory(shop: Rota, sqlite_url: str) -> None:
    @shop.task
    async def send() -> None: ...

    await shop.migrate()
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    async with override(shop):
        with pytest.raises(ConfigError, match=r"leads to another database than sqlite://:memory:.*override"):
            send.options(connection=connection).enqueue_sync()
        with pytest.raises(ConfigError, match="leads to another database"):
            await shop.schedules.create(name="s", task="send", every=60, connection=connection)
    connection.commit()
    connection.close()
    assert (await shop.stats())["queued"] == 0


async def test_overrides_nest_and_take_settings(shop: Rota) -> None:
    @shop.task
    async def work() -> None: ...

    async with override(shop, max_attempts=7):
        assert (await work.enqueue()).max_attempts == 7
        async with override(shop, max_attempts=2):
            assert (await work.enqueue()).max_attempts == 2
            assert (await shop.stats())["queued"] == 1
        assert (await shop.stats())["queued"] == 1
    assert (await work.enqueue()).max_attempts == 3


async def test_an_app_that_runs_a_worker_is_not_rebound(shop: Rota) -> None:
    async with shop.running():
        with pytest.raises(AlreadyRunning, match="override"):
            async with override(shop):
                pass
        with pytest.raises(AlreadyRunning, match="reset"):
            await reset(shop)


async def test_reset_deletes_everything(still_app: Rota) -> None:
    @still_app.cron("0 3 * * *")
    async def nightly() -> None: ...

    await nightly.enqueue()
    await still_app.pause(reason="down")
    await still_app.resume()
    assert await drain(still_app, advance="1d") == 2
    await reset(still_app, any_store=True)
    assert (await still_app.stats())["succeeded"] == 0
    assert (await still_app.schedules.list()).items == []
    assert await drain(still_app) == 0
    assert (await nightly.enqueue()).state == "queued"


async def test_reset_works_from_sync_tests(app: Rota) -> None:
    await app.enqueue("work", {})
    await app.close()
    await asyncio.to_thread(reset_sync, app, any_store=True)
    assert (await app.stats())["queued"] == 0


async def test_reset_refuses_a_store_that_may_not_be_a_test_store() -> None:
    app = Rota("sqlite:///shop.db")
    with pytest.raises(ConfigError, match=r"shop\.db.*any_store=True"):
        await reset(app)


async def test_inline_runs_a_job_of_the_callers_transaction_once_it_is_committed(
    shop: Rota, tmp_path: Path
) -> None:
    @shop.task
    async def send(order_id: int) -> int:
        return order_id

    await shop.migrate()
    connection = sqlite3.connect(tmp_path / "rota.db")
    try:
        async with inline(shop):
            with connection:
                connection.execute("CREATE TABLE orders (id)")
                job = await send.options(connection=connection).enqueue(order_id=1)
            assert (await job.refresh()).output == 1
            with connection:
                job = await send.options(connection=connection).enqueue(order_id=2)
            assert await job.result(timeout=5) == 2
            with connection:
                job = await send.options(connection=connection).enqueue(order_id=4)
            assert (await shop.job(job.id)).output == 4  # as a view does that has only the id
            with connection:
                job = await send.options(connection=connection).enqueue(order_id=3)
        assert (await shop.job(job.id)).output == 3
    finally:
        connection.close()


def test_inline_runs_committed_jobs_in_sync_tests(tmp_path: Path) -> None:
    shop = Rota(f"sqlite:///{tmp_path / 'rota.db'}")

    @shop.task
    def send(order_id: int) -> int:
        return order_id

    reset_sync(shop, any_store=True)
    connection = sqlite3.connect(tmp_path / "rota.db")
    try:
        with inline(shop):
            with connection:
                connection.execute("CREATE TABLE orders (id)")
                job = send.options(connection=connection).enqueue_sync(order_id=1)
            assert send.enqueue_sync(order_id=2).output == 2
        assert job.result_sync(timeout=5) == 1
    finally:
        connection.close()
        shop.portal.close()
