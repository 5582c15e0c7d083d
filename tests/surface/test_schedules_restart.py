"""Programs that restart: an interval stays in step, whatever "now" the program says when it starts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from rota import Rota
from rota.model import JobFilter, PageRequest, Schedule, State
from rota.testing import FakeClock
from rota.worker.worker import Worker

STILL: dict[str, Any] = {"heartbeat_thread": False, "upkeep": False, "poll_s": 0.005}
HOUR = timedelta(hours=1)
STEP_M = 10
Arrange = Callable[[Rota, Callable[[], None]], Any]


def nothing() -> None: ...


async def run_due(app: Rota, worker: Worker) -> None:
    """Fire what is due and wait until nothing is left to run."""
    assert worker.scheduler is not None
    while await worker.scheduler.tick() == 0:
        pass
    store, deadline = await app.stores.get(), time.monotonic() + 20
    live = JobFilter(states=(State.QUEUED, State.RUNNING))
    while (await store.jobs(live, PageRequest(limit=1))).items:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.002)


async def from_now_on(app: Rota, work: Callable[[], None]) -> None:
    await app.register("acme", "rollup", work, start_at=app.clock.now(), every="1h")


async def from_a_moment_ago(app: Rota, work: Callable[[], None]) -> None:
    await app.register("acme", "rollup", work, start_at=app.clock.now() - timedelta(seconds=9), every="1h")


async def in_an_hour(app: Rota, work: Callable[[], None]) -> None:
    await app.register("acme", "rollup", work, start_at=app.clock.now() + HOUR, every="1h")


async def without_a_start(app: Rota, work: Callable[[], None]) -> None:
    await app.register("acme", "rollup", work, every="1h")


def declared_from_now_on(app: Rota, work: Callable[[], None]) -> None:
    app.every("1h", name="rollup", start_at=app.clock.now())(work)


def declared(app: Rota, work: Callable[[], None]) -> None:
    app.every("1h", name="rollup")(work)


@pytest.mark.parametrize(
    ("arrange", "minutes"),
    [
        (from_now_on, [0, 60, 120, 180, 240, 300, 360]),
        (from_a_moment_ago, [0, 60, 120, 180, 240, 300, 360]),
        (in_an_hour, [60, 110, 160, 210, 260, 310, 360]),
        (without_a_start, [60, 120, 180, 240, 300, 360]),
        (declared_from_now_on, [0, 60, 120, 180, 240, 300, 360]),
        (declared, [60, 120, 180, 240, 300, 360]),
    ],
)
async def test_an_hourly_job_of_a_program_restarted_every_50_minutes_runs_every_hour(
    app_url: str, clock: FakeClock, arrange: Arrange, minutes: list[int]
) -> None:
    began, ran = clock.now(), list[int]()

    def work() -> None:
        ran.append(round((clock.now() - began).total_seconds() / 60))

    for _ in range(400 // 50):
        app = Rota(app_url, name="shop", clock=clock)
        if arrange in (declared, declared_from_now_on):
            arrange(app, work)
        async with app.running(**STILL) as worker:
            if arrange not in (declared, declared_from_now_on):
                await arrange(app, work)
            for _ in range(50 // STEP_M):
                await run_due(app, worker)
                clock.advance(STEP_M * 60)
        await app.close()
    assert ran == minutes


async def test_a_new_start_of_the_same_interval_is_taken_and_takes_no_run_away(
    lite: Rota, clock: FakeClock
) -> None:
    app, began = lite, clock.now()

    async def register(start_at: datetime) -> Schedule:
        async with app.worker():
            return await app.register("acme", "rollup", nothing, start_at=start_at, every="1d")

    await register(began + 3 * HOUR)
    later = await register(began + 4 * HOUR)
    assert (later.start_at, later.next_run_at) == (began + 4 * HOUR, began + 3 * HOUR)
    break_ = await register(began + timedelta(days=7))
    assert break_.next_run_at == began + timedelta(days=7)
    old = await register(began - timedelta(days=100) + HOUR)
    assert old.next_run_at == began + HOUR


async def test_a_new_schedule_that_starts_now_fires_at_once_and_an_old_start_does_not(
    lite: Rota, clock: FakeClock
) -> None:
    app, now = lite, clock.now()
    made = await app.schedules.create(name="now", task="t", every="1h", start_at=now)
    old = await app.schedules.create(name="old", task="t", every="1h", start_at=now - timedelta(minutes=90))
    moved = await app.schedules.update("old", start_at=now - timedelta(seconds=3))
    assert made.next_run_at == now
    assert old.next_run_at == now + timedelta(minutes=30)
    assert moved.next_run_at == now - timedelta(seconds=3)


async def test_unregistering_cancels_the_job_that_has_not_started_and_no_other(
    still_app: Rota, clock: FakeClock
) -> None:
    app = still_app
    async with app.worker() as worker:
        assert worker.scheduler is not None
        for tenant in ("acme", "globex"):
            await app.register(tenant, "rollup", nothing, start_at=clock.now(), every="1h")
        while await worker.scheduler.tick() == 0:
            pass
        await app.unregister("acme", "rollup")
    jobs = {job.tenant: job for job in (await app.jobs()).items}
    assert (jobs["acme"].state, jobs["globex"].state) == (State.CANCELLED, State.QUEUED)
    assert jobs["acme"].error["message"] == "rollup was unregistered"


async def test_a_registration_chooses_queue_priority_and_time_limit(
    still_app: Rota, clock: FakeClock
) -> None:
    app = still_app
    async with app.worker() as worker:
        assert worker.scheduler is not None
        now = clock.now()
        await app.register(
            "acme", "rollup", nothing, start_at=now, every="1h", queue="slow", priority=3, timeout="5m"
        )
        await worker.scheduler.tick()
    (job,) = (await app.jobs()).items
    assert (job.queue, job.priority, job.timeout) == ("slow", 3, 300.0)
    async with app.worker():
        again = await app.register("acme", "rollup", nothing, every="1h", queue="slow")
    assert (again.queue, again.priority, again.timeout) == ("slow", None, None)
