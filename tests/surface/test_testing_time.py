"""``drain``: schedules fire as the clock moves, and no call runs for ever."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rota import Rota, Snooze
from rota.testing import EndlessDrain, FakeClock, drain, drain_sync


async def test_drain_fires_declared_schedules_as_the_clock_advances(still_app: Rota) -> None:
    fired: list[str] = []

    @still_app.cron("0 3 * * *")
    async def nightly() -> None:
        fired.append(f"{still_app.clock.now():%d %H:%M}")

    assert await drain(still_app, advance="2d") == 2
    assert fired == ["02 03:00", "03 03:00"]
    assert f"{still_app.clock.now():%d %H:%M}" == "03 12:00"


async def test_drain_fires_schedules_that_became_due_since_the_last_call(
    still_app: Rota, clock: FakeClock
) -> None:
    @still_app.every("1h")
    async def hourly() -> None: ...

    assert await drain(still_app) == 0
    clock.advance(3600)
    assert await drain(still_app) == 1


async def test_drain_stops_at_fires_and_due_jobs_in_their_order(lite: Rota) -> None:
    seen: list[tuple[str, float]] = []
    began = lite.clock.now()

    def note(name: str) -> None:
        seen.append((name, (lite.clock.now() - began).total_seconds()))

    @lite.every("10m")
    async def tick() -> None:
        note("tick")

    @lite.task
    async def later() -> None:
        note("later")

    await later.options(delay=900).enqueue()
    assert await drain(lite, advance=timedelta(minutes=25)) == 3
    assert seen == [("tick", 600.0), ("later", 900.0), ("tick", 1200.0)]


async def test_drain_until_no_job_is_left_fires_only_what_is_due_on_the_way(lite: Rota) -> None:
    @lite.every("10m")
    async def tick() -> None: ...

    @lite.task
    async def later() -> None: ...

    await later.options(delay=1500).enqueue()
    assert await drain(lite, advance=True) == 3  # two ticks, and the job


@pytest.mark.parametrize("advance", [False, True, "1h"])
async def test_drain_ends_with_a_task_that_snoozes_for_ever(lite: Rota, advance: Any) -> None:
    @lite.task
    async def never(seconds: float) -> None:
        raise Snooze(seconds)

    await never.enqueue(0 if advance is False else 1)
    with pytest.raises(EndlessDrain, match="20 attempts and fires"):
        await drain(lite, advance=advance, limit=20)


async def test_drain_leaves_a_job_that_is_due_and_paused(lite: Rota) -> None:
    @lite.task(queue="mail")
    async def send() -> None: ...

    await send.enqueue()
    await lite.pause(queue="mail", reason="provider down")
    assert await drain(lite, advance=True) == 0
    assert await drain(lite, advance="1h") == 0


async def test_drain_refuses_a_duration_that_it_cannot_read(lite: Rota) -> None:
    with pytest.raises(Exception, match="advance='soon'"):
        await drain(lite, advance="soon")


async def test_drain_works_from_sync_tests(lite: Rota) -> None:
    @lite.cron("0 3 * * *")
    async def nightly() -> None: ...

    assert await asyncio.to_thread(drain_sync, lite, advance="1d") == 1


async def test_drain_advances_to_when_a_rate_admits_the_next_jobs() -> None:
    clock = FakeClock()
    app = Rota("sqlite://:memory:", clock=clock)

    @app.task(queue="mail")
    async def send() -> None: ...

    await app.limits.set("queue:mail", rate="1/10s")
    await send.enqueue_many({} for _ in range(4))
    began = clock.now()
    assert await drain(app) == 1
    assert await drain(app, advance="15s") == 1
    assert await drain(app, advance=True) == 2
    assert clock.now() - began == timedelta(seconds=30)
    await app.close()


async def test_drain_leaves_jobs_that_a_budget_never_admits() -> None:
    app = Rota("sqlite://:memory:", clock=FakeClock())

    @app.task(price=200)
    async def draw() -> None: ...

    await app.tenants.set("acme", budget="1.00/day")
    job = await draw.options(tenant="acme").enqueue()
    assert await drain(app, advance=True) == 0
    assert (await job.refresh()).state == "queued"
    await app.close()
