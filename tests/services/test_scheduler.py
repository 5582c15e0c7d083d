"""The scheduler on a stopped clock: fires, missed fires, calendars, and years in seconds."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from ticks import Ticks, fires_of, jobs_of, stored

from rota import Rota
from rota.model import Firing
from rota.runtime.events import Event

HOUR, DAY, WEEK = 3600.0, 86400.0, 7 * 86400.0


@pytest.fixture
async def ticks(app: Rota) -> Ticks:
    return await Ticks.of(app)


# --- firing ----------------------------------------------------------------------------------------


async def test_a_due_schedule_makes_one_job_and_moves_on(app: Rota, ticks: Ticks) -> None:
    """Q6: the due tick advances and enqueues together; S3: the run says what it was scheduled for."""
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *", payload={"n": 1}, max_attempts=7)
    await ticks.after(HOUR)
    (job,) = await jobs_of(app)
    assert (job.task, job.payload, job.origin, job.schedule) == ("t", {"n": 1}, "scheduler", "hourly")
    assert (job.scheduled_for, job.max_attempts) == (datetime(2030, 1, 1, 13, tzinfo=UTC), 7)
    after = await stored(app, "hourly")
    assert (after.last_fire_at, after.next_run_at) == (
        job.scheduled_for, job.scheduled_for + timedelta(hours=1))  # fmt: skip


async def test_nothing_fires_before_its_time(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *")
    await ticks.after(HOUR - 0.001)
    assert await jobs_of(app) == []


async def test_a_job_takes_what_the_schedule_leaves_open_from_its_task(app: Rota, ticks: Ticks) -> None:
    @app.task(queue="mail", priority=5, max_attempts=9, tags=["nightly"], auto_remove=True)
    async def send() -> None: ...

    await app.schedules.create(name="open", task="send", every=60)
    await app.schedules.create(name="own", task="send", every=60, queue="slow", priority=0, max_attempts=1)
    await ticks.after(60)
    jobs = {job.schedule: job for job in await jobs_of(app)}
    assert (jobs["open"].queue, jobs["open"].priority, jobs["open"].max_attempts) == ("mail", 5, 9)
    assert (jobs["open"].tags, jobs["open"].auto_remove) == (("nightly",), True)
    assert (jobs["own"].queue, jobs["own"].priority, jobs["own"].max_attempts) == ("slow", 0, 1)


async def test_the_scheduler_sleeps_until_the_next_fire_but_no_longer_than_a_tick(app: Rota) -> None:
    """R7: sleep is dynamic."""
    ticks = await Ticks.of(app, tick_s=10)
    assert await ticks.scheduler.tick() == 10
    await app.schedules.create(name="soon", task="t", every=60)
    ticks.clock.advance(45)
    assert await ticks.scheduler.tick() == 10
    ticks.clock.advance(12)
    assert await ticks.scheduler.tick() == 3


async def test_a_schedule_that_is_over_lets_the_scheduler_rest(app: Rota, ticks: Ticks) -> None:
    """D4: a one-time schedule has no next time after it ran."""
    await app.schedules.create(name="once", task="t", at=ticks.clock.now() + timedelta(minutes=1))
    await app.schedules.create(name="few", task="t", every=60, until=ticks.clock.now() + timedelta(minutes=3))
    await ticks.through(ticks.clock.now() + timedelta(days=30))
    assert Counter(job.schedule for job in await jobs_of(app)) == {"once": 1, "few": 3}
    assert (await stored(app, "once")).next_run_at is None
    assert await ticks.scheduler.tick() == 1.0


async def test_hooks_are_called_for_every_fire(app: Rota) -> None:
    heard: list[Event] = []
    app.on("schedule.fired")(heard.append)
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *")
    async with app.worker() as worker:
        assert worker.scheduler is not None
        await Ticks(app, worker.scheduler).after(HOUR)
    (event,) = heard
    (job,) = await jobs_of(app)
    assert event.job is not None
    assert (event.schedule, event.job.id, event.job.scheduled_for) == ("hourly", job.id, job.scheduled_for)


async def test_a_scheduler_that_came_too_late_calls_no_hook(app: Rota) -> None:
    heard: list[Event] = []
    app.on("schedule.fired")(heard.append)
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *")
    one, other = await Ticks.of(app), await Ticks.of(app)
    one.clock.advance(HOUR)
    async with app.worker():
        await asyncio.gather(one.scheduler.tick(), other.scheduler.tick())
    assert len(heard) == 1


# --- missed fires ----------------------------------------------------------------------------------


async def test_each_policy_after_a_day_of_downtime(app: Rota, ticks: Ticks) -> None:
    """S4: a time missed while no worker ran is caught up when one does; S3: triggered_by is catchup."""
    for policy in ("skip", "latest", "all"):
        await app.schedules.create(name=policy, task="t", cron="0 */6 * * *", missed=policy)
    await ticks.after(DAY + 60)
    assert await fires_of(app, "skip") == []
    assert await fires_of(app, "latest") == [("01-02 12:00", "catchup")]
    assert await fires_of(app, "all") == [
        ("01-01 18:00", "catchup"), ("01-02 00:00", "catchup"),
        ("01-02 06:00", "catchup"), ("01-02 12:00", "catchup")]  # fmt: skip
    for policy in ("skip", "latest", "all"):
        assert (await stored(app, policy)).next_run_at == datetime(2030, 1, 2, 18, tzinfo=UTC)


async def test_a_cap_and_a_window_bound_what_is_caught_up(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="cap", task="t", every="1h", missed="all", missed_cap=3)
    await app.schedules.create(name="window", task="t", every="1h", missed="all", missed_window="2h30m")
    await app.schedules.create(name="late", task="t", every="1h", missed="latest", missed_window=60)
    await ticks.after(10 * HOUR + 600)
    assert [at for at, _ in await fires_of(app, "cap")] == ["01-01 20:00", "01-01 21:00", "01-01 22:00"]
    assert [at for at, _ in await fires_of(app, "window")] == ["01-01 20:00", "01-01 21:00", "01-01 22:00"]
    assert await fires_of(app, "late") == []


async def test_two_weeks_of_downtime_do_not_flood(
    app: Rota, ticks: Ticks, caplog: pytest.LogCaptureFixture
) -> None:
    """R6: missed intervals are not replayed."""
    await app.schedules.create(name="latest", task="t", every=60)
    await app.schedules.create(name="all", task="t", every=60, missed="all")
    with caplog.at_level(logging.WARNING, "rota.scheduler"):
        await ticks.after(2 * WEEK + 30)
    assert len(await fires_of(app, "latest")) == 1
    assert len(await fires_of(app, "all")) == 100
    assert "schedule default/latest: 20159 missed fires are not caught up (missed=latest)" in caplog.text


async def test_a_weekly_job_in_a_system_restarted_daily_runs_weekly(app: Rota) -> None:
    """S4. Each day a new scheduler starts, works for a minute, and is gone."""
    await app.schedules.create(name="weekly", task="t", cron="0 3 * * MON")
    for _ in range(10 * 7):
        await (await Ticks.of(app)).after(60)
        app.clock.advance(DAY - 60)  # type: ignore[attr-defined]
    jobs = await jobs_of(app, "weekly")
    assert len(jobs) == 10
    assert {job.scheduled_for.weekday() for job in jobs if job.scheduled_for} == {0}
    assert len({job.scheduled_for for job in jobs}) == 10


async def test_an_interval_never_drifts_however_late_the_scheduler_is(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="every", task="t", every="10m", start_at="2030-01-01T12:03:00Z")
    for seconds in (183, 777, 1234, 599, 3601):
        await ticks.after(seconds)
    assert {job.scheduled_for.minute % 10 for job in await jobs_of(app) if job.scheduled_for} == {3}


# --- between reading and firing --------------------------------------------------------------------


async def test_a_schedule_disabled_between_read_and_fire_does_not_fire(app: Rota, ticks: Ticks) -> None:
    """Q6: the due tick re-checks enabled; zero rows means that another writer was first."""
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *")
    now, store = ticks.clock.advance(HOUR), await app.stores.get()
    (read,) = (await store.due_schedules(now, 10)).schedules
    await app.schedules.disable("hourly")
    assert await store.fire([Firing(schedule=read, expected=read.version)], now) == {read.id}
    await ticks.after()
    assert await jobs_of(app) == []
    assert not (await stored(app, "hourly")).enabled


async def test_a_schedule_deleted_between_read_and_fire_does_not_come_back(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *")
    now, store = ticks.clock.advance(HOUR), await app.stores.get()
    (read,) = (await store.due_schedules(now, 10)).schedules
    await app.schedules.delete("hourly")
    assert await store.fire([Firing(schedule=read, expected=read.version)], now) == {read.id}
    assert (await app.schedules.list()).items == []


async def test_enabling_counts_from_now_and_keeps_history(app: Rota, ticks: Ticks) -> None:
    """Q6: pause keeps history; resume recomputes from now."""
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *", missed="all")
    await ticks.after(HOUR)
    await app.schedules.disable("hourly", reason="holiday")
    await ticks.after(5 * HOUR + 60)
    assert (await stored(app, "hourly")).reason == "holiday"
    after = await app.schedules.enable("hourly")
    assert (after.reason, after.next_run_at) == (None, datetime(2030, 1, 1, 19, tzinfo=UTC))
    await ticks.after()
    assert await fires_of(app, "hourly") == [("01-01 13:00", "scheduler")]
    await ticks.after(HOUR)
    assert len(await fires_of(app, "hourly")) == 2


async def test_trigger_does_not_disturb_the_next_fire(app: Rota, ticks: Ticks) -> None:
    """S3: triggered_by is manual."""
    before = await app.schedules.create(name="hourly", task="t", cron="0 * * * *", payload={"n": 1})
    ticks.clock.advance(600)
    job = await app.schedules.trigger("hourly")
    assert (job.origin, job.schedule, job.payload) == ("manual", "hourly", {"n": 1})
    assert await stored(app, "hourly") == before
    await ticks.after(3000)
    assert [origin for _, origin in await fires_of(app, "hourly")] == ["manual", "scheduler"]


async def test_a_fire_that_was_backfilled_is_not_made_again(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="hourly", task="t", cron="0 * * * *", missed="all")
    since, until = ticks.clock.now(), ticks.clock.advance(3 * HOUR + 60)
    assert len(await app.schedules.backfill("hourly", since, until, dry_run=False)) == 4
    await ticks.after()
    assert len(await fires_of(app, "hourly")) == 4


# --- calendars -------------------------------------------------------------------------------------


async def test_calendars_skip_or_move_a_fire(app: Rota, ticks: Ticks) -> None:
    await app.calendars.put("holidays", [date(2030, 1, 2), date(2030, 1, 3)])  # Wednesday and Thursday
    daily = {"task": "t", "cron": "0 8 * * *", "calendar": "holidays"}
    await app.schedules.create(name="skip", **daily)  # type: ignore[arg-type]
    await app.schedules.create(name="move", calendar_mode="next_working_day", **daily)  # type: ignore[arg-type]
    await ticks.through(datetime(2030, 1, 8, tzinfo=UTC))
    assert [at for at, _ in await fires_of(app, "skip")] == [
        "01-04 08:00", "01-05 08:00", "01-06 08:00", "01-07 08:00"]  # fmt: skip
    assert [at for at, _ in await fires_of(app, "move")] == ["01-04 08:00", "01-07 08:00"]


async def test_a_day_that_becomes_a_holiday_does_not_fire(app: Rota, ticks: Ticks) -> None:
    await app.calendars.put("holidays", [])
    await app.schedules.create(name="daily", task="t", cron="0 8 * * *", calendar="holidays")
    await app.calendars.put("holidays", [date(2030, 1, 2)])
    await ticks.through(datetime(2030, 1, 4, tzinfo=UTC))
    assert [at for at, _ in await fires_of(app, "daily")] == ["01-03 08:00"]


@pytest.mark.parametrize("how", ["deleted", "broken"])
async def test_a_lost_calendar_disables_its_schedules_and_harms_no_other(
    app: Rota, ticks: Ticks, how: str
) -> None:
    await app.calendars.put("holidays", [date(2030, 1, 2)])
    await app.schedules.create(name="bound", task="t", cron="0 * * * *", calendar="holidays")
    await app.schedules.create(name="free", task="t", cron="0 * * * *")
    if how == "deleted":
        await app.calendars.delete("holidays")
    else:
        store = await app.stores.get()
        await store.put_document("calendar", "holidays", '{"dates": "soon"}', None, ticks.clock.now())
    await ticks.after(HOUR)
    bound = await stored(app, "bound")
    assert (bound.enabled, await fires_of(app, "bound")) == (False, [])
    assert bound.reason is not None
    assert "no calendar named 'holidays'" in bound.reason
    assert len(await fires_of(app, "free")) == 1


# --- years -----------------------------------------------------------------------------------------


async def test_ten_years_of_schedules_pass_in_seconds(app: Rota, ticks: Ticks) -> None:
    make: dict[str, tuple[int, dict[str, Any]]] = {
        "yearly": (10, {"cron": "0 12 24 12 *"}),
        "leap": (2, {"cron": "0 0 29 2 *"}),
        "month end": (120, {"cron": "0 23 L * *"}),
        "weekly": (521, {"every": "1w"}),
        "quarterly": (40, {"cron": "0 6 1 1,4,7,10 *"}),
        "nightly": (
            365,
            {"cron": "30 2 * * *", "timezone": "Europe/Berlin", "until": "2031-01-01T12:00:00Z"},
        ),
    }
    for name, (_, rule) in make.items():
        await app.schedules.create(name=name, task="t", **rule)
    await ticks.through(datetime(2040, 1, 1, 12, tzinfo=UTC))
    jobs = await jobs_of(app)
    assert Counter(job.schedule for job in jobs) == {name: count for name, (count, _) in make.items()}
    assert {job.origin for job in jobs} == {"scheduler"}
    assert len({(job.schedule, job.scheduled_for) for job in jobs}) == len(jobs)
