"""Schedules at the desk. The rules live in ``app.schedules``; here are access, audit and views."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from ..core.jobs.gates import active, over_schedule
from ..core.payload.masking import masked
from ..core.schedules import describe, firing
from ..core.schedules.calendars import Calendar, next_allowed
from ..errors import InvalidSchedule, NotFound, RotaError
from ..model import Gate, Page, PageRequest, Schedule, ScheduleFilter
from ..schedules.calendars import load
from ..schedules.runs import RunSummary, ScheduleRun
from .operations import ActionGroup, requires
from .requests import (
    BackfillRequest,
    CreateScheduleRequest,
    DisableRequest,
    FiresRequest,
    PreviewRequest,
    PutCalendarRequest,
    RuleFields,
    RunsRequest,
    SchedulesRequest,
    TenantRequest,
    UpdateScheduleRequest,
    ValidateRequest,
)
from .views import (
    Backfill,
    CalendarView,
    Fires,
    FireView,
    JobView,
    Preview,
    ScheduleView,
    TruncatedSchedule,
    UpcomingFire,
    job_view,
    schedule_view,
)

MOST_PLANNED = 5000
MOST_FIRES_EACH = 200
MOST_PAGES = 25  # of 200 schedules
CLEARED = ("start_at", "until")
RULE = ("cron", "every", "at", "timezone", "start_at", "until", "jitter")


class ScheduleActions(ActionGroup):
    thing = "schedule"

    # --- looking ---------------------------------------------------------------------------------

    @requires("read")
    async def list(self, ask: SchedulesRequest) -> Page[ScheduleView]:
        """A page of schedules, by tenant and name."""
        page = await self.app.schedules.list(
            tenant=self.operations.tenant(ask.tenant), task=ask.task, enabled=ask.enabled, limit=ask.limit,
            cursor=ask.cursor,
        )  # fmt: skip
        gates = await self._gates()
        return Page(items=[self._view(schedule, gates) for schedule in page.items], next=page.next)

    @requires("read")
    async def show(self, id: str, ask: TenantRequest) -> ScheduleView:
        """One schedule, by its id or its name."""
        return self._view(await self.get(id, ask.tenant), await self._gates())

    @requires("read")
    async def preview(self, id: str, ask: PreviewRequest) -> Preview:
        """The next fires, each with what a clock change does to it."""
        schedule = await self.get(id, ask.tenant)
        fires = await self.app.schedules.preview(schedule.name, ask.n, tenant=schedule.tenant)
        return Preview(words=_words(schedule), timezone=schedule.timezone, fires=_fires(fires))

    @requires("read")
    async def runs(self, ask: RunsRequest) -> Page[ScheduleRun]:
        """The runs of a schedule, or of all, newest first."""
        page = await self.app.schedules.runs(
            ask.schedule, tenant=self.operations.tenant(ask.tenant), failed=ask.failed, limit=ask.limit,
            cursor=ask.cursor,
        )  # fmt: skip
        return Page(items=[self._seen(run) for run in page.items], next=page.next)

    @requires("read")
    async def runs_of(self, id: str, ask: RunsRequest) -> Page[ScheduleRun]:
        """The runs of one schedule, newest first."""
        schedule = await self.get(id, ask.tenant)
        return await self.runs(msgspec.structs.replace(ask, schedule=schedule.name, tenant=schedule.tenant))

    @requires("read")
    async def summary(self, id: str, ask: TenantRequest) -> RunSummary:
        """Success rate and durations over the last seven days."""
        schedule = await self.get(id, ask.tenant)
        return await self.app.schedules.summary(schedule.name, tenant=schedule.tenant)

    @requires("read")
    async def fires(self, ask: FiresRequest) -> Fires:
        """What will fire within the next hours, of all schedules, in the order of time."""
        store, now = await self.operations.store(), self.app.clock.now()
        where = ScheduleFilter(tenant=self.operations.tenant(ask.tenant), enabled=True)
        plans: list[list[UpcomingFire]] = []
        calendars: dict[str | None, Calendar | None] = {None: None}
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await store.schedules(where, PageRequest(limit=200, cursor=cursor))
            for schedule in page.items:
                if schedule.calendar not in calendars:
                    calendars[schedule.calendar] = await load(store, str(schedule.calendar))
                plan = _planned(schedule, calendars[schedule.calendar], now, now + timedelta(hours=ask.hours))
                plans += [plan] if plan else []
            if (cursor := page.next) is None:
                break
        return _told(plans, now, whole=cursor is None)

    @requires("read")
    async def validate(self, ask: ValidateRequest) -> Preview:
        """A rule in words and its next fires; or what is wrong with it."""
        told, fires = self.app.schedules.validate(ask.n, **_rule(ask))
        return Preview(words=told, timezone=ask.timezone or "UTC", fires=_fires(fires))

    # --- changing --------------------------------------------------------------------------------

    @requires("operate")
    async def create(self, ask: CreateScheduleRequest) -> ScheduleView:
        """Store a new schedule."""
        tenant = self.operations.tenant(ask.tenant) or "default"
        made = await self.app.schedules.create(name=ask.name, tenant=tenant, **_given(ask))
        return self._view(made, await self._gates())

    @requires("operate")
    async def update(self, id: str, ask: UpdateScheduleRequest) -> ScheduleView:
        """Change what is given, keep the rest."""
        schedule = await self.get(id, ask.tenant)
        after = await self.app.schedules.update(schedule.name, tenant=schedule.tenant, **_given(ask))
        return self._view(after, await self._gates())

    @requires("operate")
    async def enable(self, id: str, ask: TenantRequest) -> ScheduleView:
        """Fire again, counted from now."""
        schedule = await self.get(id, ask.tenant)
        after = await self.app.schedules.enable(schedule.name, tenant=schedule.tenant)
        return self._view(after, await self._gates())

    @requires("operate")
    async def disable(self, id: str, ask: DisableRequest) -> ScheduleView:
        """Fire no more until enabled."""
        schedule = await self.get(id, ask.tenant)
        after = await self.app.schedules.disable(schedule.name, tenant=schedule.tenant, reason=ask.reason)
        return self._view(after, await self._gates())

    @requires("operate")
    async def delete(self, id: str, ask: TenantRequest) -> None:
        """Forget the schedule. The jobs it has made stay."""
        schedule = await self.get(id, ask.tenant)
        await self.app.schedules.delete(schedule.name, tenant=schedule.tenant)

    @requires("operate")
    async def trigger(self, id: str, ask: TenantRequest) -> JobView:
        """Run it now; its next fire stays as it is."""
        schedule = await self.get(id, ask.tenant)
        job = await self.app.schedules.trigger(schedule.name, tenant=schedule.tenant)
        return job_view(job, self.operations.visibility)

    @requires("operate")
    async def backfill(self, id: str, ask: BackfillRequest) -> Backfill:
        """Make the jobs of fires that were never made; a dry run only tells which."""
        schedule = await self.get(id, ask.tenant)
        fires = await self.app.schedules.backfill(
            schedule.name, ask.since, ask.until, tenant=schedule.tenant, dry_run=ask.dry_run
        )
        return Backfill(dry_run=ask.dry_run, fires=tuple(fires))

    # --- calendars -------------------------------------------------------------------------------

    @requires("read")
    async def calendars(self) -> Page[CalendarView]:
        """The calendars of days on which schedules do not run."""
        return Page(items=[_calendar(one) for one in await self.app.calendars.list()])

    @requires("operate.shared")
    async def put_calendar(self, name: str, ask: PutCalendarRequest) -> CalendarView:
        """Store a calendar, from dates or from the text of an iCalendar file."""
        if (ask.dates is None) == (ask.ics is None):
            raise InvalidSchedule("give dates or ics: one of the two")
        async with self.operations.audited("calendar.put", f"calendar:{name}") as note:
            if ask.ics is not None:
                made = await self.app.calendars.import_ics(name, ask.ics, new=ask.new)
            else:
                dates = [_date(text) for text in ask.dates or ()]
                made = await self.app.calendars.put(name, dates, weekend=ask.weekend, new=ask.new)
            note.after = {"dates": len(made.dates)}
            return _calendar(made)

    @requires("operate.shared")
    async def delete_calendar(self, name: str) -> None:
        """Forget a calendar; schedules that name it are disabled at their next fire."""
        async with self.operations.audited("calendar.delete", f"calendar:{name}"):
            await self.app.calendars.delete(name)

    # --- steps -----------------------------------------------------------------------------------

    async def get(self, id: str, tenant: str | None) -> Schedule:
        """By id or by name; another tenant's is as if it were not there."""
        store, own = await self.operations.store(), self.operations.tenant(tenant)
        by_id = await store.schedules(ScheduleFilter(ids=(id,), tenant=own), PageRequest(limit=1))
        if by_id.items:
            return by_id.items[0]
        named = (await store.schedules(ScheduleFilter(name=id, tenant=own), PageRequest(limit=2))).items
        if not named:
            raise NotFound(f"there is no schedule {id!r}")
        if len(named) > 1:
            own_default = next((one for one in named if one.tenant == "default"), None)
            if own_default is None:
                raise InvalidSchedule(f"several tenants have a schedule named {id!r}: say which tenant")
            return own_default
        return named[0]

    async def _gates(self) -> Sequence[Gate]:
        return active(await self.operations.gates.stored(), self.app.clock.now())

    def _view(self, schedule: Schedule, gates: Sequence[Gate]) -> ScheduleView:
        gate = over_schedule(gates, schedule.tenant, schedule.name)
        return schedule_view(
            schedule, self.operations.visibility, _words(schedule), gate, self.app.clock.now()
        )

    def _seen(self, run: ScheduleRun) -> ScheduleRun:
        """What a run says of itself is output: masked, and for who may see it."""
        if self.operations.actor.payloads:
            return msgspec.structs.replace(run, details=masked(run.details, self.app.settings.secret_fields))
        return msgspec.structs.replace(run, details=None, message=None if run.success else run.message)


def _words(schedule: Schedule) -> str:
    try:
        return describe.summary(firing.rule_of(schedule))
    except RotaError as error:
        return f"cannot be read: {error}"


def _rule(ask: RuleFields) -> dict[str, Any]:
    """What was said of it; None takes ``start_at`` and ``until`` away, and says nothing elsewhere."""
    said = {name: value for name in RULE if (value := getattr(ask, name)) is not msgspec.UNSET}
    return {name: value for name, value in said.items() if value is not None or name in CLEARED}


def _given(ask: UpdateScheduleRequest) -> dict[str, Any]:
    """What the request says of the schedule, beside its name and tenant."""
    others = set(ask.__struct_fields__) - {*RULE, "tenant", "name"}
    said = {name: value for name in others if (value := getattr(ask, name)) is not msgspec.UNSET}
    return {**said, **_rule(ask)}


def _fires(fires: Any) -> tuple[FireView, ...]:
    return tuple(FireView(at=fire.at, local=fire.local.isoformat(), note=fire.note) for fire in fires)


def _planned(
    schedule: Schedule, calendar: Calendar | None, now: datetime, end: datetime
) -> list[UpcomingFire]:
    """Its fires until then, one more than is told of each; a schedule that cannot be read has none."""
    found: list[UpcomingFire] = []
    try:
        rule = firing.rule_of(schedule)
        at = schedule.next_run_at
        while at is not None and at <= end and len(found) <= MOST_FIRES_EACH:
            if at >= now:
                found.append(UpcomingFire(at=at, schedule=schedule.name, tenant=schedule.tenant))
            at = next_allowed(rule, calendar, schedule.calendar_mode, max(at, now))
    except RotaError:
        return found
    return found


def _told(plans: list[list[UpcomingFire]], now: datetime, whole: bool) -> Fires:
    """As much as can be told: the seldom ones first, for they are the ones to look for."""
    found: list[UpcomingFire] = []
    cut: list[TruncatedSchedule] = []
    for plan in sorted(plans, key=len):
        fits = len(found) + min(len(plan), MOST_FIRES_EACH) <= MOST_PLANNED
        told = plan[:MOST_FIRES_EACH] if fits else []
        found += told
        whole = whole and fits
        if len(told) < len(plan):
            after = told[-1].at if told else now
            cut.append(TruncatedSchedule(schedule=plan[0].schedule, tenant=plan[0].tenant, after=after))
    return Fires(items=tuple(sorted(found, key=lambda fire: fire.at)), cut=tuple(cut), more=not whole)


def _calendar(calendar: Any) -> CalendarView:
    return CalendarView(
        name=calendar.name,
        dates=tuple(sorted(one.isoformat() for one in calendar.dates)),
        weekend=tuple(sorted(calendar.weekend)),
    )


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidSchedule(f"{text!r} is not a date: write it as 2030-12-25") from None
