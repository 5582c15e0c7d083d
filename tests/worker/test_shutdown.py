"""How a worker stops: what it finishes, what it releases, and which attempts count."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rota import Context, Rota, operate
from rota.testing import FakeClock, drain

STILL = {"heartbeat_thread": False, "upkeep": False}


async def test_an_unfinished_coroutine_is_released_with_its_attempt_refunded(app: Rota) -> None:
    began = asyncio.Event()
    patient = True

    @app.task(max_attempts=1)
    async def slow() -> str:
        began.set()
        if patient:
            await asyncio.Event().wait()
        return "in the end"

    job = await slow.enqueue()
    async with app.running(shutdown_timeout=0, **STILL):
        await began.wait()
    job = await job.refresh()
    assert (job.state, job.attempt, job.error) == ("queued", 0, None)
    recorded = await operate.attempts(await app.stores.get(), job)
    assert [attempt.outcome for attempt in recorded] == ["released"]
    patient = False
    assert await drain(app) == 1
    job = await job.refresh()
    assert (job.state, job.attempt, job.output) == ("succeeded", 1, "in the end")


async def test_a_job_that_was_released_keeps_its_place_in_the_line(app: Rota, clock: FakeClock) -> None:
    began = asyncio.Event()
    order: list[int] = []

    @app.task
    async def work(n: int) -> None:
        order.append(n)
        if not began.is_set():
            began.set()
            await asyncio.Event().wait()

    for n in (1, 2):
        await work.enqueue(n)
        clock.advance(1)
    async with app.running(concurrency=1, shutdown_timeout=0, **STILL):
        await began.wait()
    await drain(app, concurrency=1)
    assert order == [1, 1, 2]


async def test_an_unfinished_thread_is_released_with_its_attempt_refunded(app: Rota) -> None:
    began = threading.Event()

    @app.task(max_attempts=1)
    def slow(ctx: Context) -> None:
        began.set()
        while True:
            ctx.cancelled  # noqa: B018

    job = await slow.enqueue()
    async with app.running(shutdown_timeout=0, **STILL):
        assert await asyncio.to_thread(began.wait, 10)
    job = await job.refresh()
    assert (job.state, job.attempt) == ("queued", 0)


async def test_a_task_that_returns_early_on_a_stop_keeps_its_outcome(app: Rota) -> None:
    began = asyncio.Event()

    @app.task
    async def polite() -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as far as I came"
        return "never"

    job = await polite.enqueue()
    async with app.running(shutdown_timeout=0, **STILL):
        await began.wait()
    job = await job.refresh()
    assert (job.state, job.output) == ("succeeded", "as far as I came")


async def test_drain_finishes_running_jobs_and_claims_nothing(app: Rota) -> None:
    began, free = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> str:
        began.set()
        await free.wait()
        return "finished"

    running = await slow.enqueue()
    async with app.running(concurrency=1, **STILL) as worker:
        await began.wait()
        worker.drain()
        late = await slow.enqueue()
        free.set()
    assert (await running.refresh()).output == "finished"
    assert ((await late.refresh()).state, (await late.refresh()).attempt) == ("queued", 0)


async def test_force_releases_everything_at_once(app: Rota) -> None:
    began = asyncio.Event()

    @app.task
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    job = await slow.enqueue()
    async with app.running(shutdown_timeout=3600, **STILL) as worker:
        await began.wait()
        worker.force()
    assert worker.was_forced
    assert ((await job.refresh()).state, (await job.refresh()).attempt) == ("queued", 0)


async def test_cleanup_code_of_a_stopped_task_runs_before_its_job_is_released(app: Rota) -> None:
    began = asyncio.Event()
    cleaned = False

    @app.task
    async def careful() -> None:
        nonlocal cleaned
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned = True

    await careful.enqueue()
    async with app.running(shutdown_timeout=0, **STILL):
        await began.wait()
    assert cleaned
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("rota-")]


async def test_a_worker_whose_own_task_is_cancelled_ends(app: Rota) -> None:
    began = asyncio.Event()

    @app.task
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    await slow.enqueue()
    async with app.worker(**STILL) as worker:
        running = asyncio.create_task(worker.run())
        await began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(20):
                await running
