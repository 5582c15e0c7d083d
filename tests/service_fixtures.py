"""Fixtures for tests of workers and schedulers: a clock that does not move, and SQLite in memory."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from rota import Rota
from rota.testing import FakeClock

Until = Callable[..., Awaitable[None]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def app(clock: FakeClock) -> AsyncIterator[Rota]:
    app = Rota("sqlite://:memory:", clock=clock)
    yield app
    await app.close()


@pytest.fixture
def until() -> Until:
    """``await until(lambda: …)``: look again and again, and fail if it has not come true in time."""

    async def wait(condition: Callable[[], object], seconds: float = 10.0) -> None:
        deadline = time.monotonic() + seconds
        while True:
            answer = condition()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            assert time.monotonic() < deadline, "it did not happen in time"
            await asyncio.sleep(0.002)

    return wait


@pytest.fixture(autouse=True)
def no_thread_is_left_over() -> object:
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + 5
    while left := [
        thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("rota-")
    ]:
        assert time.monotonic() < deadline, f"threads left over: {left}"
        time.sleep(0.002)
