"""Calendars: named sets of dates on which a schedule does not run, as data. Pure and bounded.

``skip`` leaves out a fire whose local date (in the rule's zone) is excluded. ``next_working_day`` moves
a fire on an excluded date or a weekend to the same local time on the next day that is neither; fires
that end up at the same instant are one fire. A move never goes past the rule's ``until``.
"""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

from ...errors import InvalidSchedule
from ...model import CalendarMode, Value
from .ics import dates_of
from .rules import ScheduleRule, next_after
from .zones import TICK, change_at, instant_of, wall_of, zone

LOOK_AHEAD = timedelta(days=5 * 366)
DAY = timedelta(days=1)
LONGEST_NAME = 200


class Calendar(Value, frozen=True, kw_only=True):
    """Excluded dates. ``weekend``: the days of the week that are no working days, Monday is 0."""

    name: str
    dates: frozenset[date] = frozenset()
    weekend: frozenset[int] = frozenset({5, 6})

    def excludes(self, day: date) -> bool:
        return day in self.dates

    def is_working_day(self, day: date) -> bool:
        return day not in self.dates and day.weekday() not in self.weekend


def parse_ics(text: str, name: str, since: date | None = None) -> Calendar:
    """A calendar of the dates of every event in an iCalendar text.

    Yearly events are written out for twenty years, from their start or from ``since`` if that is later.
    """
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidSchedule(f"calendar name {str(name)[:40]!r}: must have 1 to {LONGEST_NAME} characters")
    return Calendar(name=name, dates=dates_of(text, since))


def apply(calendar: Calendar, mode: CalendarMode, rule: ScheduleRule, fire: datetime) -> datetime | None:
    """When this fire of the rule runs; None when it does not."""
    where = zone(rule.timezone)
    wall = wall_of(fire, where)
    if _skips(mode):
        return None if calendar.excludes(wall.date()) else fire
    day = _working_day(calendar, wall.date(), where)
    if day is None or day == wall.date():
        return None if day is None else fire
    return _within(rule, instant_of(datetime.combine(day, wall.time()), where))


def next_allowed(
    rule: ScheduleRule, calendar: Calendar | None, mode: CalendarMode, instant: datetime
) -> datetime | None:
    """The first time later than the instant at which the rule runs; None: not within five years."""
    if calendar is None:
        return next_after(rule, instant)
    if _skips(mode):
        return _next_kept(rule, calendar, instant)
    return _next_moved(rule, calendar, instant)


def _skips(mode: str) -> bool:
    if mode not in get_args(CalendarMode):
        raise InvalidSchedule(f"calendar mode {mode!r}: must be skip or next_working_day")
    return mode == "skip"


def _next_kept(rule: ScheduleRule, calendar: Calendar, instant: datetime) -> datetime | None:
    where = zone(rule.timezone)
    limit = instant + LOOK_AHEAD
    fire = next_after(rule, instant)
    while fire is not None and fire <= limit:
        day = wall_of(fire, where).date()
        if not calendar.excludes(day):
            return fire
        fire = next_after(rule, _start(day + DAY, where) - TICK)
    return None


def _next_moved(rule: ScheduleRule, calendar: Calendar, instant: datetime) -> datetime | None:
    """Days are taken in blocks: closed days and the working day that their fires move to."""
    where = zone(rule.timezone)
    limit = instant + LOOK_AHEAD
    day: date | None = _working_day(calendar, wall_of(instant, where).date(), where)
    while day is not None:
        block = _block(calendar, day, where)
        moved = [
            at for origin in block if (at := _first_from(rule, calendar, origin, day, instant)) is not None
        ]
        if moved:
            return min(moved)
        fire = next_after(rule, _start(day + DAY, where) - TICK)
        if fire is None or fire > limit:
            return None
        day = _working_day(calendar, wall_of(fire, where).date(), where)
    return None


def _block(calendar: Calendar, day: date, where: ZoneInfo) -> list[date]:
    """The day and the closed days before it, whose fires run on it."""
    days = [day]
    while len(days) <= LOOK_AHEAD.days and not _is_open(calendar, days[-1] - DAY, where):
        days.append(days[-1] - DAY)
    return days


def _first_from(
    rule: ScheduleRule, calendar: Calendar, origin: date, day: date, instant: datetime
) -> datetime | None:
    """The earliest run on ``day``, later than the instant, of the fires that fall on ``origin``."""
    where = zone(rule.timezone)
    now = wall_of(instant, where)
    since = now.time() if now.date() == day else time()
    begin = instant_of(datetime.combine(origin, since), where) - TICK
    fire = next_after(rule, instant if now.date() == origin == day else begin)
    while fire is not None and wall_of(fire, where).date() == origin:
        moved = apply(calendar, "next_working_day", rule, fire)
        if moved is None or moved > instant:
            return moved
        fire = next_after(rule, fire)
    return None


def _working_day(calendar: Calendar, day: date, where: ZoneInfo) -> date | None:
    """The first working day from this one on."""
    for ahead in range(LOOK_AHEAD.days):
        if _is_open(calendar, day + ahead * DAY, where):
            return day + ahead * DAY
    return None


def _is_open(calendar: Calendar, day: date, where: ZoneInfo) -> bool:
    if not calendar.is_working_day(day):
        return False
    gap = change_at(datetime.combine(day, time(12)), where)
    return gap is None or not gap.swallows(day)


def _start(day: date, where: ZoneInfo) -> datetime:
    return instant_of(datetime.combine(day, time()), where)


def _within(rule: ScheduleRule, at: datetime) -> datetime | None:
    return at if rule.until is None or at <= rule.until else None
