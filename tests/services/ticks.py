"""A scheduler that is stepped by hand, with a stopped clock."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import Any

from rota import Rota
from rota.model import Job, JobFilter, PageRequest, Schedule, State
from rota.schedules.scheduler import Scheduler
from rota.testing import FakeClock

MOST_STEPS = 10_000


async def scheduler_of(app: Rota, **options: Any) -> Scheduler:
    """A scheduler of the app as its worker would have it, without the worker."""
    async with app.worker(**options) as worker:
        assert worker.scheduler is not None
        return worker.scheduler


class Ticks:
    """Moves the clock and lets a scheduler look."""

    def __init__(self, app: Rota, scheduler: Scheduler) -> None:
        assert isinstance(app.clock, FakeClock)
        self.app, self.clock, self.scheduler = app, app.clock, scheduler

    @classmethod
    async def of(cls, app: Rota, **options: Any) -> Ticks:
        return cls(app, await scheduler_of(app, **options))

    async def after(self, seconds: float = 0.0) -> None:
        """Move on, then step until nothing is due."""
        self.clock.advance(seconds)
        for _ in range(MOST_STEPS):
            if await self.scheduler.tick() > 0:
                return
        raise AssertionError("the scheduler never comes to rest")

    async def at(self, instant: datetime) -> None:
        await self.after((instant - self.clock.now()).total_seconds())

    async def through(self, end: datetime) -> None:
        """Look whenever a schedule asks for it, as a scheduler that never stops, until the end."""
        store = await self.app.stores.get()
        while True:
            await self.after()
            following = (await store.due_schedules(self.clock.now(), 1)).next_check_at
            if following is None or following > end:
                self.clock.advance((end - self.clock.now()).total_seconds())
                return
            self.clock.advance((following - self.clock.now()).total_seconds())


async def jobs_of(app: Rota, schedule: str | None = None, *states: State) -> list[Job]:
    """The jobs that schedules have made, oldest fire first."""
    store, found, cursor = await app.stores.get(), [], None
    while True:
        where = JobFilter(schedule=schedule, from_schedule=True, states=states or None)
        page = await store.jobs(where, PageRequest(limit=1000, cursor=cursor))
        found += page.items
        if (cursor := page.next) is None:
            return sorted(found, key=lambda job: (job.scheduled_for or job.created_at, job.id))


async def ended(app: Rota, count: int, seconds: float = 10.0) -> list[Job]:
    """The jobs that schedules have created, as soon as ``count`` have ended."""
    deadline = time.monotonic() + seconds
    while True:
        jobs = await jobs_of(app)
        if sum(job.is_final for job in jobs) >= count:
            return jobs
        assert time.monotonic() < deadline, f"{count} jobs have not ended in time: {jobs}"
        await asyncio.sleep(0.002)


async def fires_of(app: Rota, schedule: str) -> list[tuple[str, str]]:
    """(scheduled for, origin) of the jobs of a schedule."""
    jobs = await jobs_of(app, schedule)
    return [(f"{job.scheduled_for:%m-%d %H:%M}", job.origin) for job in jobs]


async def stored(app: Rota, name: str) -> Schedule:
    return await app.schedules.get(name)
