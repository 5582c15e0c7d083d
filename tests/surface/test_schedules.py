"""``app.schedules`` on each store: making, changing, looking, firing by hand, and what was run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from rota import Rota
from rota.errors import AlreadyRegistered, InvalidSchedule, NotFound, OptionError
from rota.model import JobFilter, PageRequest, RetentionCutoffs, State
from rota.testing import FakeClock, drain

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
ICS = """BEGIN:VCALENDAR
BEGIN:VEVENT
DTSTART;VALUE=DATE:20300102
DTEND;VALUE=DATE:20300104
SUMMARY:Closed
END:VEVENT
END:VCALENDAR
"""


async def tick(app: Rota, seconds: float = 0) -> None:
    """Move on, and let a scheduler of the app step until nothing is due."""
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(seconds)
    async with app.worker() as worker:
        assert worker.scheduler is not None
        while await worker.scheduler.tick() == 0:
            pass


async def made(app: Rota, name: str) -> list[tuple[datetime | None, str]]:
    page = await app.schedules.runs(name, limit=500)
    return sorted((run.scheduled_for or NOON, run.triggered_by) for run in page.items)


# --- making and changing ---------------------------------------------------------------------------


async def test_a_schedule_keeps_all_that_it_was_given(still_app: Rota) -> None:
    given: dict[str, Any] = {
        "task": "cleanup", "cron": "0 3 * * *", "timezone": "Europe/Berlin", "payload": {"n": 30, "ö": 1.5},
        "queue": "slow", "priority": -4, "max_attempts": 9, "timeout": 12.5, "description": "tidy up ☂",
        "start_at": datetime(2030, 2, 1, tzinfo=UTC), "until": datetime(2031, 1, 1, tzinfo=UTC),
        "missed": "all", "missed_cap": 7, "missed_window": 3600.0, "overlap": "queue", "jitter": 30.0,
    }  # fmt: skip
    told = await still_app.schedules.create(name="nightly", tenant="acme", **given)
    read = await still_app.schedules.get("nightly", tenant="acme")
    assert read == told
    assert {name: getattr(read, name) for name in given} == given
    assert (read.tenant, read.enabled, read.source, read.version) == ("acme", True, "user", 1)
    assert read.next_run_at == datetime(2030, 2, 1, 2, tzinfo=UTC)


async def test_names_are_unique_per_tenant(still_app: Rota) -> None:
    """Q6: unique name."""
    before = await still_app.schedules.create(name="nightly", task="t", every=60)
    with pytest.raises(AlreadyRegistered, match="tenant 'default' already has a schedule named 'nightly'"):
        await still_app.schedules.create(name="nightly", task="other", every=90)
    assert await still_app.schedules.get("nightly") == before
    await still_app.schedules.create(name="nightly", tenant="acme", task="t", every=60)


async def test_an_update_changes_what_is_given_and_keeps_the_rest(still_app: Rota) -> None:
    await still_app.schedules.create(name="s", task="t", cron="0 3 * * *", payload={"n": 1}, description="a")
    after = await still_app.schedules.update("s", description="b", priority=3)
    assert (after.description, after.priority, after.cron, after.payload) == ("b", 3, "0 3 * * *", {"n": 1})
    assert (after.version, after.next_run_at) == (2, datetime(2030, 1, 2, 3, tzinfo=UTC))


async def test_new_timing_counts_from_now_and_replaces_the_rule(still_app: Rota, clock: FakeClock) -> None:
    await still_app.schedules.create(name="s", task="t", cron="0 3 * * *", timezone="Asia/Tokyo")
    clock.advance(3600)
    after = await still_app.schedules.update("s", every="2h")
    assert (after.cron, after.every, after.timezone) == (None, 7200, "Asia/Tokyo")
    assert after.next_run_at == NOON + timedelta(hours=2)


async def test_updating_a_disabled_schedule_to_enabled_counts_from_now(
    still_app: Rota, clock: FakeClock
) -> None:
    """Q6: updating a disabled schedule to enabled recomputes too."""
    await still_app.schedules.create(name="s", task="t", cron="0 * * * *")
    await still_app.schedules.disable("s", reason="quiet")
    clock.advance(5 * 3600)
    after = await still_app.schedules.update("s", enabled=True)
    assert (after.enabled, after.reason, after.next_run_at) == (True, None, NOON + timedelta(hours=6))


async def test_a_schedule_made_disabled_fires_only_once_enabled(still_app: Rota) -> None:
    await still_app.schedules.create(name="s", task="t", cron="0 * * * *", enabled=False)
    await tick(still_app, 2 * 3600)
    assert await made(still_app, "s") == []
    await still_app.schedules.enable("s")
    await tick(still_app, 3600)
    assert await made(still_app, "s") == [(NOON + timedelta(hours=3), "scheduler")]


async def test_disabling_twice_and_enabling_twice_is_harmless(still_app: Rota) -> None:
    await still_app.schedules.create(name="s", task="t", cron="0 * * * *")
    await still_app.schedules.disable("s", reason="a")
    assert (await still_app.schedules.disable("s", reason="b")).reason == "b"
    await still_app.schedules.enable("s")
    assert (await still_app.schedules.enable("s")).enabled


async def test_a_deleted_schedule_is_gone_and_its_runs_stay(still_app: Rota) -> None:
    await still_app.schedules.create(name="s", task="t", cron="0 * * * *")
    await tick(still_app, 3600)
    await still_app.schedules.delete("s")
    with pytest.raises(NotFound, match="tenant 'default' has no schedule named 's'"):
        await still_app.schedules.get("s")
    await tick(still_app, 3600)
    assert len(await made(still_app, "s")) == 1
    again = await still_app.schedules.create(name="s", task="t", cron="0 * * * *")
    await tick(still_app, 3600)
    assert len(await made(still_app, "s")) == 2
    assert again.last_fire_at is None


@pytest.mark.parametrize("verb", ["get", "update", "enable", "disable", "delete", "trigger", "preview"])
async def test_an_unknown_name_is_reported(lite: Rota, verb: str) -> None:
    given = {"description": "x"} if verb == "update" else {}
    with pytest.raises(NotFound, match="tenant 'acme' has no schedule named 'nope'"):
        await getattr(lite.schedules, verb)("nope", tenant="acme", **given)


# --- looking ---------------------------------------------------------------------------------------


async def test_schedules_are_listed_by_tenant_and_name_in_pages(still_app: Rota) -> None:
    for tenant in ("beta", "acme"):
        for name in ("c", "a", "b"):
            await still_app.schedules.create(name=name, tenant=tenant, task=f"t{name}", every=60)
    await still_app.schedules.disable("b", tenant="acme")
    seen, cursor = [], None
    while True:
        page = await still_app.schedules.list(limit=4, cursor=cursor)
        seen += [(schedule.tenant, schedule.name) for schedule in page.items]
        if (cursor := page.next) is None:
            break
    assert seen == [(tenant, name) for tenant in ("acme", "beta") for name in "abc"]
    assert [s.name for s in (await still_app.schedules.list(tenant="acme")).items] == ["a", "b", "c"]
    assert [s.tenant for s in (await still_app.schedules.list(task="tb")).items] == ["acme", "beta"]
    assert [s.name for s in (await still_app.schedules.list(enabled=False)).items] == ["b"]


async def test_a_preview_lists_the_next_fires_and_notes_clock_changes(still_app: Rota) -> None:
    await still_app.schedules.create(
        name="s", task="t", cron="30 2 * * *", timezone="Europe/Berlin", start_at="2030-03-30T00:00:00Z"
    )
    fires = await still_app.schedules.preview("s", 3)
    assert [fire.at for fire in fires] == [
        datetime(2030, 3, 30, 1, 30, tzinfo=UTC),
        datetime(2030, 3, 31, 1, 0, tzinfo=UTC),
        datetime(2030, 4, 1, 0, 30, tzinfo=UTC),
    ]
    assert fires[0].note is None
    assert "does not exist" in (fires[1].note or "")
    with pytest.raises(InvalidSchedule, match="at most 1000"):
        await still_app.schedules.preview("s", 1001)


async def test_a_preview_matches_what_the_schedule_then_does(still_app: Rota, clock: FakeClock) -> None:
    await still_app.calendars.put("holidays", [date(2030, 1, 3)])
    await still_app.schedules.create(
        name="s", task="t", cron="0 8 * * *", calendar="holidays", calendar_mode="next_working_day"
    )
    told = [fire.at for fire in await still_app.schedules.preview("s", 4)]
    for _ in range(8):
        await tick(still_app, 86400)
    assert [at for at, _ in await made(still_app, "s")][:4] == told


async def test_validate_returns_a_summary_or_the_mistake(lite: Rota) -> None:
    words, fires = lite.schedules.validate(cron="0 8 * * 1-5", timezone="America/New_York", n=2)
    assert "08:00" in words
    assert [fire.at.hour for fire in fires] == [13, 13]
    with pytest.raises(InvalidSchedule, match=r"61"):
        lite.schedules.validate(cron="61 * * * *")


async def test_calendars_are_imported_listed_and_deleted(still_app: Rota) -> None:
    told = await still_app.calendars.import_ics("closed", ICS)
    assert told.dates == {date(2030, 1, 2), date(2030, 1, 3)}
    assert await still_app.calendars.get("closed") == told
    assert [calendar.name for calendar in await still_app.calendars.list()] == ["closed"]
    await still_app.schedules.create(name="s", task="t", cron="0 8 * * *", calendar="closed")
    assert (await still_app.schedules.get("s")).next_run_at == datetime(2030, 1, 4, 8, tzinfo=UTC)
    await still_app.calendars.delete("closed")
    with pytest.raises(NotFound, match="no calendar named 'closed'"):
        await still_app.calendars.get("closed")
    with pytest.raises(NotFound, match="no calendar named 'closed'"):
        await still_app.calendars.delete("closed")


# --- firing by hand --------------------------------------------------------------------------------


async def test_a_trigger_runs_now_and_leaves_the_next_fire(still_app: Rota, clock: FakeClock) -> None:
    """S3: triggered_by is manual."""
    app = still_app

    @app.task(queue="mail")
    async def send(to: str) -> str:
        return to

    before = await app.schedules.create(name="s", task="send", cron="0 * * * *", payload={"to": "ada"})
    clock.advance(60)
    job = await app.schedules.trigger("s")
    assert (job.origin, job.schedule, job.queue, job.scheduled_for) == ("manual", "s", "mail", clock.now())
    assert await app.schedules.get("s") == before
    await drain(app)
    assert await job.result(timeout=5) == "ada"
    await app.schedules.disable("s")
    assert (await app.schedules.trigger("s")).origin == "manual"
    assert not (await app.schedules.get("s")).enabled


async def test_a_backfill_is_counted_first_and_then_made_once(still_app: Rota, clock: FakeClock) -> None:
    app = still_app
    await app.schedules.create(name="s", task="t", cron="0 * * * *", missed="skip")
    await tick(app, 3600)
    await tick(app, 4 * 3600 + 60)
    since, until = NOON, clock.now()
    hours = [NOON + timedelta(hours=n) for n in (0, 2, 3, 4, 5)]
    assert list(await app.schedules.backfill("s", since, until)) == hours
    assert len(await made(app, "s")) == 1
    assert list(await app.schedules.backfill("s", since, until, dry_run=False)) == hours
    assert list(await app.schedules.backfill("s", since, until, dry_run=False)) == []
    assert list(await app.schedules.backfill("s", since, until)) == []
    assert [origin for _, origin in await made(app, "s")] == [
        "catchup", "scheduler", "catchup", "catchup", "catchup", "catchup"]  # fmt: skip


async def test_a_backfill_keeps_to_the_calendar(still_app: Rota, clock: FakeClock) -> None:
    await still_app.calendars.put("holidays", [date(2030, 1, 3)])
    await still_app.schedules.create(name="s", task="t", cron="0 8 * * *", calendar="holidays")
    clock.advance(4 * 86400)
    days = await still_app.schedules.backfill("s", NOON, clock.now())
    assert [at.day for at in days] == [2, 4, 5]


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (datetime(2029, 1, 1), NOON, "with a time zone"),
        (NOON, NOON - timedelta(hours=1), "swap them"),
        (NOON, NOON + timedelta(hours=1), "in the future"),
        (NOON - timedelta(days=900), NOON, "more than 10000 fires"),
    ],
)
async def test_a_bad_range_backfills_nothing(lite: Rota, since: datetime, until: datetime, said: str) -> None:
    await lite.schedules.create(name="s", task="t", cron="0 * * * *")
    with pytest.raises(InvalidSchedule, match=said):
        await lite.schedules.backfill("s", since, until, dry_run=False)
    assert await made(lite, "s") == []


# --- runs ------------------------------------------------------------------------------------------


async def test_runs_are_listed_and_the_summary_counts_them(still_app: Rota, clock: FakeClock) -> None:
    """S3: started, completed, duration, success, message, details, scheduled_for, triggered_by."""
    app = still_app
    app_clock = clock

    @app.task(max_attempts=1)
    async def report(fail: str = "") -> dict[str, Any]:
        app_clock.advance(2)
        if fail == "raise":
            raise ValueError("no figures")
        return {"success": fail != "say", "message": f"said {fail}", "details": {"rows": 3}}

    await app.schedules.create(name="s", task="report", cron="0 * * * *")
    for n, fail in enumerate(("", "say", "raise")):
        await app.schedules.update("s", payload={"fail": fail})
        await tick(app, 3600 - 2 * bool(n))
        await drain(app)
    await app.schedules.trigger("s")
    runs = (await app.schedules.runs("s")).items
    assert [run.triggered_by for run in runs] == ["manual", "scheduler", "scheduler", "scheduler"]
    assert [run.success for run in runs] == [None, False, False, True]
    assert [run.message for run in runs[1:]] == ["no figures", "said say", "said "]
    first = runs[-1]
    assert (first.schedule, first.state, first.details) == ("s", State.SUCCEEDED, {"rows": 3})
    assert (first.scheduled_for, first.duration_ms) == (NOON + timedelta(hours=1), 2000)
    assert first.started_at == first.scheduled_for
    assert len((await app.schedules.runs("s", failed=True)).items) == 2
    assert len((await app.schedules.runs(tenant="missing")).items) == 0
    summary = await app.schedules.summary("s")
    assert (summary.runs, summary.succeeded, summary.failed) == (3, 1, 2)
    assert (summary.success_rate_percent, summary.average_ms, summary.longest_ms) == (33.33, 2000, 2000)
    assert (summary.window_days, summary.since) == (30, NOON.replace(hour=0) - timedelta(days=30))
    clock.advance(8 * 86400)
    assert (await app.schedules.summary("s")).runs == 3
    assert (await app.schedules.summary("s", days=7)).runs == 0
    assert (await app.schedules.summary("s", days=7)).success_rate_percent is None
    for days in (0, 367):
        with pytest.raises(OptionError, match="days="):
            await app.schedules.summary("s", days=days)


async def test_the_success_rate_is_true_though_jobs_are_deleted_at_different_ages(
    still_app: Rota, clock: FakeClock
) -> None:
    """Successes are kept for a week and failures for a month: the jobs that are left say less."""
    app, outcomes = still_app, [n % 15 != 7 for n in range(30)]

    @app.task(max_attempts=1)
    async def report(success: bool) -> dict[str, bool]:
        return {"success": success}

    await app.schedules.create(name="s", task="report", cron="0 12 * * *", payload={"success": True})
    store = await app.stores.get()
    for success in outcomes:
        await app.schedules.update("s", payload={"success": success})
        await tick(app, 86400)
        await drain(app)
        now = clock.now()
        kept = {State.SUCCEEDED: now - timedelta(days=7), State.FAILED: now - timedelta(days=30)}
        await store.maintain(RetentionCutoffs(jobs=kept), 1000, now)
    left = [run.success for run in (await app.schedules.runs("s", limit=100)).items]
    assert left.count(True) / len(left) < 0.9
    summary = await app.schedules.summary("s", days=30)
    assert (summary.succeeded, summary.failed) == (outcomes.count(True), outcomes.count(False))
    assert summary.success_rate_percent == 93.33


async def test_runs_come_in_pages_newest_first_and_hold_no_other_jobs(
    make_app: Callable[..., Rota], app_url: str, clock: FakeClock
) -> None:
    app = make_app(app_url, clock=clock)
    await app.enqueue("t")
    await app.schedules.create(name="a", task="t", cron="0 * * * *")
    await app.schedules.create(name="b", task="t", cron="0 * * * *")
    for _ in range(5):
        await tick(app, 3600)
    seen, cursor = [], None
    while True:
        page = await app.schedules.runs(limit=3, cursor=cursor)
        seen += page.items
        if (cursor := page.next) is None:
            break
    times = [run.scheduled_for for run in seen]
    assert len(seen) == 10
    assert times == sorted(times, reverse=True)  # type: ignore[type-var]
    store = await app.stores.get()
    assert len((await store.jobs(JobFilter(schedule="a"), PageRequest())).items) == 5
