"""Gates and workers: what a worker skips while something is paused, and until when."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Rota, StoreError
from rota.model import ClaimRequest
from rota.runtime.clock import monotonic
from rota.runtime.gate_watch import GateWatch, load
from rota.store.calls import claim
from rota.store.open import open_store
from rota.testing import FakeClock, drain

Until = Callable[..., Awaitable[None]]
QUICK: dict[str, Any] = {"heartbeat_thread": False, "upkeep": False, "scheduler": False, "poll_s": 0.01}
COVERED = {"queue": "mail", "task": "send", "tenant": "acme"}


@pytest.fixture
def ran(app: Rota) -> list[str]:
    """Tasks ``send`` and ``other`` note their runs here."""
    done: list[str] = []

    @app.task
    async def send() -> None:
        done.append("send")

    @app.task
    async def other() -> None:
        done.append("other")

    return done


async def both(app: Rota) -> None:
    """A job that all the gates cover, and one that none does but the one over everything."""
    await app.enqueue("send", queue="mail", tenant="acme")
    await app.enqueue("other")


# --- workers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["queue", "task", "tenant"])
async def test_a_worker_skips_what_a_gate_covers_and_runs_the_rest(
    app: Rota, ran: list[str], scope: str
) -> None:
    await both(app)
    await app.pause(**{scope: COVERED[scope]}, reason="provider down")
    await drain(app)
    assert ran == ["other"]
    await app.resume(**{scope: COVERED[scope]})
    await drain(app)
    assert ran == ["other", "send"]


async def test_a_burst_with_everything_paused_ends_without_running_anything(
    app: Rota, ran: list[str]
) -> None:
    await both(app)
    await app.pause(reason="offline")
    assert await drain(app) == 0
    assert ran == []


async def test_a_burst_whose_only_queue_is_paused_ends(app: Rota, ran: list[str]) -> None:
    await both(app)
    await app.pause(queue="mail")
    async with app.worker(burst=True, queues=["mail"], **QUICK) as worker:
        await worker.run()
    assert ran == []


async def test_a_running_worker_follows_a_gate_and_its_end(app: Rota, ran: list[str], until: Until) -> None:
    async with app.running(**QUICK) as worker:
        await app.pause(reason="offline")
        await until(lambda: worker.state == "paused")
        await both(app)
        await app.resume()
        await until(lambda: worker.state == "running" and sorted(ran) == ["other", "send"])


async def test_a_gate_opens_by_the_clock_when_its_end_comes(
    app: Rota, clock: FakeClock, ran: list[str], until: Until
) -> None:
    await app.pause(until=clock.now() + timedelta(minutes=10))
    await both(app)
    async with app.running(**QUICK) as worker:
        await until(lambda: worker.state == "paused")
        clock.advance(599)
        assert (worker.state, ran) == ("paused", [])
        clock.advance(1)
        assert worker.state == "running"
        await until(lambda: sorted(ran) == ["other", "send"])


async def test_running_jobs_finish_while_everything_is_paused(app: Rota, until: Until) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> str:
        began.set()
        await go_on.wait()
        return "done"

    job = await slow.enqueue()
    async with app.running(**QUICK) as worker:
        await began.wait()
        await app.pause()
        await until(lambda: worker.state == "paused")
        go_on.set()
        assert await job.result(timeout=10) == "done"


async def test_claimed_jobs_that_have_not_started_are_released_when_a_gate_closes(
    app: Rota, until: Until
) -> None:
    go_on, ran = asyncio.Event(), []

    @app.task
    async def slow(n: int) -> None:
        ran.append(n)
        await go_on.wait()

    jobs = [await slow.enqueue(n) for n in range(3)]
    async with app.running(concurrency=1, **QUICK) as worker:
        await until(lambda: ran == [0])
        store = await app.stores.get()
        want = ClaimRequest(worker=worker.id, limit=2, lease_s=30, tasks=app.registry.names)
        worker.slots.take(await claim(store, want, app.clock.now()), monotonic())
        assert len(worker.slots.waiting) == 2
        await app.pause()
        await until(lambda: worker.state == "paused" and not len(worker.turns))
        go_on.set()
        await jobs[0].result(timeout=10)
    assert ran == [0]
    assert [((await job.refresh()).state, (await job.refresh()).attempt) for job in jobs[1:]] == [
        ("queued", 0), ("queued", 0),
    ]  # fmt: skip


async def test_the_last_known_gates_hold_while_the_store_is_unavailable(app: Rota, clock: FakeClock) -> None:
    await app.pause(queue="mail", until=clock.now() + timedelta(minutes=1))
    gate = (await load(await app.stores.get()))[0]
    away = open_store("sqlite://:memory:")
    await away.schema.migrate()
    await away.open()
    await away.put_document("gate", gate.id, msgspec.json.encode(gate).decode(), 0, clock.now())
    watch = GateWatch(away, clock)
    assert await watch.refresh()
    assert not await watch.refresh()
    await away.close()
    with pytest.raises(StoreError):
        await watch.refresh()
    assert [one.id for one in watch.active()] == ["queue:mail"]
    clock.advance(60)
    assert list(watch.active()) == []


async def test_an_unreadable_gate_hides_no_other(app: Rota, ran: list[str]) -> None:
    store = await app.stores.get()
    await store.put_document("gate", "queue:a", "[1, 2", None, app.clock.now())
    await store.put_document("gate", "queue:b", '{"scope": "planet"}', None, app.clock.now())
    await app.pause(queue="mail")
    await both(app)
    await drain(app)
    assert ran == ["other"]


# --- schedules -----------------------------------------------------------------------------------
