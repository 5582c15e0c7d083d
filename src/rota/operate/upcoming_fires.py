"""The fire times to come of all schedules, within bounds. Reads only; a scheduler never uses it."""

from __future__ import annotations

from datetime import datetime, timedelta

from ..core.schedules import firing
from ..core.schedules.calendars import Calendar, next_allowed
from ..errors import RotaError
from ..model import PageRequest, Schedule, ScheduleFilter
from ..schedules.calendars import load
from ..store.protocol import Store
from .views import Fires, TruncatedSchedule, UpcomingFire

MOST_FIRES = 5000
MOST_FIRES_EACH = 200
MOST_PAGES = 25  # of 200 schedules


async def upcoming_fires(store: Store, where: ScheduleFilter, now: datetime, hours: float) -> Fires:
    """Every fire time of the schedules within the next hours, in time order."""
    plans: list[list[UpcomingFire]] = []
    calendars: dict[str | None, Calendar | None] = {None: None}
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await store.schedules(where, PageRequest(limit=200, cursor=cursor))
        for schedule in page.items:
            if schedule.calendar not in calendars:
                calendars[schedule.calendar] = await load(store, str(schedule.calendar))
            plan = _plan(schedule, calendars[schedule.calendar], now, now + timedelta(hours=hours))
            plans += [plan] if plan else []
        if (cursor := page.next) is None:
            break
    return _truncated(plans, now, complete=cursor is None)


def _plan(schedule: Schedule, calendar: Calendar | None, now: datetime, end: datetime) -> list[UpcomingFire]:
    """Its fires until ``end``, at most one more than are shown; a rule that cannot be parsed has none."""
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


def _truncated(plans: list[list[UpcomingFire]], now: datetime, complete: bool) -> Fires:
    """Truncate to the limit, keeping the rarest schedules."""
    found: list[UpcomingFire] = []
    cut: list[TruncatedSchedule] = []
    for plan in sorted(plans, key=len):
        fits = len(found) + min(len(plan), MOST_FIRES_EACH) <= MOST_FIRES
        shown = plan[:MOST_FIRES_EACH] if fits else []
        found += shown
        complete = complete and fits
        if len(shown) < len(plan):
            after = shown[-1].at if shown else now
            cut.append(TruncatedSchedule(schedule=plan[0].schedule, tenant=plan[0].tenant, after=after))
    return Fires(items=tuple(sorted(found, key=lambda fire: fire.at)), cut=tuple(cut), more=not complete)
