"""The async executor: isolation between jobs, timeouts and task groups inside a task."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

import pytest

from rota import Rota
from rota.testing import drain

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


async def test_context_variables_of_a_coroutine_are_not_seen_by_the_next(app: Rota) -> None:
    seen = []

    @app.task
    async def paint(colour: str) -> None:
        seen.append(COLOUR.get())
        COLOUR.set(colour)
        await asyncio.sleep(0)
        assert COLOUR.get() == colour

    for colour in ("red", "green", "blue"):
        await paint.enqueue(colour)
    await drain(app, concurrency=1)
    assert seen == ["none"] * 3


async def test_timeouts_and_task_groups_work_inside_a_task(app: Rota) -> None:
    async def square(n: int) -> int:
        await asyncio.sleep(0)
        return n * n

    @app.task
    async def modern() -> list[int]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(square(n)) for n in range(4)]
        return [task.result() for task in tasks]

    job = await modern.enqueue()
    await drain(app)
    assert (await job.refresh()).output == [0, 1, 4, 9]


async def test_a_coroutine_past_its_timeout_is_stopped_and_its_attempt_counted(app: Rota) -> None:
    stopped = False

    @app.task(timeout=0.02, max_attempts=1)
    async def endless() -> None:
        nonlocal stopped
        try:
            await asyncio.Event().wait()
        finally:
            stopped = True

    job = await endless.enqueue()
    await drain(app)
    job = await job.refresh()
    assert stopped
    assert (job.state, job.attempt, job.error["type"]) == ("failed", 1, "Timeout")
    assert "0.02 s" in job.error["message"]


async def test_a_timeout_does_not_affect_the_next_job_of_its_runner(app: Rota) -> None:
    @app.task(timeout=0.02, max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    @app.task
    async def fine() -> str:
        await asyncio.sleep(0)
        current = asyncio.current_task()
        return f"{current.cancelling() if current else None} cancellations"

    await endless.options(priority=1).enqueue()
    job = await fine.enqueue()
    await drain(app, concurrency=1)
    assert (await job.refresh()).output == "0 cancellations"
