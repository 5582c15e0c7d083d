"""Tasks that block the event loop are named while they do, and late successes are reported."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from rota import Rota, operate
from rota.testing import FakeClock, drain
from rota.worker.loop_watch import LoopWatch, running_in


def hold(until: threading.Event) -> None:
    until.wait(30)  # as a driver that is not async would


def hold_until_named(caplog: pytest.LogCaptureFixture) -> None:
    deadline = time.monotonic() + 20
    while not any("blocks the event loop" in one.getMessage() for one in caplog.records):
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


async def test_a_task_that_blocks_the_loop_is_named_with_its_line(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    inside, free = threading.Event(), threading.Event()
    watch = LoopWatch(asyncio.get_running_loop(), "w1", 1.0)

    @app.task(queue="slow")
    async def blocks() -> None:
        await asyncio.sleep(0)  # in a later step of the coroutine as well
        inside.set()
        hold(free)

    def watching() -> None:
        assert inside.wait(30)
        watch.check()
        for late_s in (0.0, 0.6, 0.6, 5.0):
            watch._looked_at = time.monotonic() - late_s
            watch.check()
        free.set()

    job = await blocks.enqueue()
    looking = threading.Thread(target=watching)
    looking.start()
    await drain(app)
    await asyncio.to_thread(looking.join)
    (record,) = [one for one in caplog.records if "blocks the event loop" in one.getMessage()]
    assert record.levelname == "WARNING" and job.id in record.getMessage()
    assert "hold(free)" in record.getMessage() and "executors" not in record.getMessage()
    assert {name: getattr(record, name) for name in ("task", "queue")} == {"task": "blocks", "queue": "slow"}


async def test_a_loop_that_answers_or_runs_no_task_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    watch = LoopWatch(asyncio.get_running_loop(), "w1", 1.0)
    for _ in range(3):  # blocked by this test, which is no task
        watch._looked_at = time.monotonic() - 2
        watch.check()
    await asyncio.sleep(0)
    assert not watch._is_waiting and not caplog.records
    assert running_in(None) is None


async def test_a_worker_watches_its_loop(app: Rota, caplog: pytest.LogCaptureFixture, until: Any) -> None:
    seen = threading.Event()

    @app.task
    async def blocks() -> None:
        hold_until_named(caplog)
        seen.set()

    await blocks.enqueue()
    async with app.running(upkeep=False):
        await until(seen.is_set, 30.0)


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_a_success_after_its_timeout_is_reported_and_recorded(
    app: Rota, clock: FakeClock, caplog: pytest.LogCaptureFixture, auto_remove: bool
) -> None:
    @app.task(timeout=60, auto_remove=auto_remove)
    async def blocks() -> str:
        clock.advance(90)  # the loop serves no timer meanwhile
        return "done"

    job = await blocks.enqueue()
    await drain(app)
    (record,) = [one for one in caplog.records if "longer than its timeout" in one.getMessage()]
    assert "took 90.0 s, longer than its timeout of 60 s: it blocked the event loop" in record.getMessage()
    if not auto_remove:
        assert (await job.refresh()).output == "done"
        (attempt,) = await operate.attempts(await app.stores.get(), await job.refresh())
        (line,) = attempt.logs
        assert attempt.outcome == "succeeded"
        assert line.level == "warning" and line.message in record.getMessage()


async def test_a_task_that_ignores_its_cancellation_is_reported_too(
    app: Rota, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    @app.task(timeout=0.01)
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            clock.advance(2)
        return "done"

    job = await stubborn.enqueue()
    await drain(app)
    assert (await job.refresh()).output == "done"
    assert "it was asked to stop, and returned all the same" in caplog.text


async def test_a_success_in_time_leaves_no_record(app: Rota, clock: FakeClock) -> None:
    @app.task(timeout=60)
    async def quick() -> None:
        clock.advance(59)

    job = await quick.enqueue()
    await drain(app)
    assert not await (await app.stores.get()).attempts(job.id)
