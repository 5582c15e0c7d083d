"""How many executions run at once, and which start first."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from rota import Rota
from rota.model import ClaimRequest
from rota.runtime.clock import monotonic
from rota.testing import drain
from service_fixtures import Until

STILL = {"heartbeat_thread": False, "upkeep": False}


async def test_exactly_as_many_coroutines_run_at_once_as_the_concurrency_allows(app: Rota) -> None:
    running = most = 0
    four = asyncio.Barrier(4)

    @app.task
    async def busy() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        async with asyncio.timeout(10):
            await four.wait()
        running -= 1

    await busy.enqueue_many({} for _ in range(40))
    assert await drain(app, concurrency=4) == 40
    assert most == 4


async def test_exactly_as_many_threads_run_at_once_as_the_concurrency_allows(app: Rota) -> None:
    lock = threading.Lock()
    running = most = 0
    three = threading.Barrier(3, timeout=10)

    @app.task
    def busy() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        three.wait()
        with lock:
            running -= 1

    await busy.enqueue_many({} for _ in range(21))
    assert await drain(app, concurrency=3) == 21
    assert most == 3


async def test_coroutines_and_threads_share_one_limit(app: Rota) -> None:
    running = most = 0
    lock = threading.Lock()

    def enter() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)

    def leave() -> None:
        nonlocal running
        with lock:
            running -= 1

    @app.task
    async def light() -> None:
        enter()
        await asyncio.sleep(0.001)
        leave()

    @app.task
    def heavy() -> None:
        enter()
        leave()

    for _ in range(20):
        await light.enqueue()
        await heavy.enqueue()
    assert await drain(app, concurrency=5) == 40
    assert most <= 5


async def test_a_slow_job_does_not_keep_the_free_slots_empty(app: Rota) -> None:
    free = asyncio.Event()

    @app.task
    async def slow() -> None:
        await free.wait()

    @app.task
    async def quick() -> None: ...

    await slow.enqueue()
    await quick.enqueue_many({} for _ in range(20))
    async with app.running(concurrency=2, **STILL):
        for job in (await app.jobs(task="quick", limit=50)).items:
            await job.result(timeout=10)
        assert [job.state for job in (await app.jobs(task="slow")).items] == ["running"]
        free.set()


async def test_of_jobs_that_wait_for_a_slot_those_with_a_key_come_first_within_their_priority(
    app: Rota, until: Until
) -> None:
    release = asyncio.Event()
    ran: list[str] = []

    @app.task
    async def work(name: str) -> None:
        ran.append(name)
        await release.wait()

    await work.enqueue("busy")
    async with app.running(concurrency=1, **STILL) as worker:
        await until(lambda: ran == ["busy"])
        given: dict[str, dict[str, Any]] = {
            "a": {}, "k": {"concurrency_key": "k"}, "b": {}, "k2": {"concurrency_key": "k2"},
            "low": {"concurrency_key": "k3", "priority": -1},
        }  # fmt: skip
        for name, options in given.items():
            await work.options(**options).enqueue(name)
            ahead = ClaimRequest(worker=worker.id, limit=1, lease_s=60)
            claimed = await (await app.stores.get()).turn([], ahead, app.clock.store_now)
            worker.slots.take(claimed.jobs, monotonic())
        assert (worker.slots.has_keyed(2), worker.slots.has_keyed(3)) == (True, False)
        release.set()
        await until(lambda: len(ran) == 6)
    assert ran == ["busy", "k", "k2", "a", "b", "low"]
