"""Calendars: named sets of dates on which a schedule does not run, as data. Pure and bounded.

``skip`` leaves out a fire whose local date (in the rule's zone) is excluded. ``next_working_day`` moves
a fire on an excluded date or a weekend to the same local time on the next day that is neither; fires
that end up at the same instant are one fire. A move never goes past the rule's ``until``.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from datetime import date, datetime, time
from itertools import takewhile
from typing import get_args
from zoneinfo import ZoneInfo

from ...errors import InvalidSchedule
from ...model import CalendarMode, Value
from .cron import read
from .ics import dates_of
from .rules import ScheduleRule, next_after
from .walk import fires
from .zones import DAY, TICK, change_at, instant_of, steady_offset, wall_of, zone

AHEAD = 5 * 366  # days
LOOK_AHEAD = AHEAD * DAY
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


class OpenDays:
    """Which days are open, for one calendar in one zone. Remembers the end of each closed stretch it met."""

    def __init__(self, calendar: Calendar, where: ZoneInfo) -> None:
        self.calendar, self.where = calendar, where
        self._working: dict[date, date | None] = {}
        self._kept: dict[date, date | None] = {}

    def kept(self, day: date) -> date | None:
        """The first day from this one on that is not excluded; None: not within five years."""
        if day not in self._kept:
            self._kept[day] = _first(day, AHEAD + 2, lambda one: one not in self.calendar.dates)
        return self._kept[day]

    def working(self, day: date) -> date | None:
        """The first working day from this one on; None: not within five years."""
        if day not in self._working:
            self._working[day] = _first(day, AHEAD, self._is_open)
        return self._working[day]

    def closed_before(self, day: date) -> list[date]:
        """The closed days just before a working day, whose fires run on it."""
        found: list[date] = []
        while len(found) < AHEAD - 1 and not self._is_open(before := day - (len(found) + 1) * DAY):
            found.append(before)
        return found

    def _is_open(self, day: date) -> bool:
        if not self.calendar.is_working_day(day):
            return False
        if steady_offset(day, self.where) is not None:
            return True
        gap = change_at(datetime.combine(day, time(12)), self.where)
        return gap is None or not gap.swallows(day)


def _first(day: date, count: int, accepts: Callable[[date], bool]) -> date | None:
    return next((one for ahead in range(count) if accepts(one := day + ahead * DAY)), None)


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
    day = OpenDays(calendar, where).working(wall.date())
    if day is None or day == wall.date():
        return None if day is None else fire
    at = instant_of(datetime.combine(day, wall.time()), where)
    return at if rule.until is None or at <= rule.until else None


def next_allowed(
    rule: ScheduleRule, calendar: Calendar | None, mode: CalendarMode, instant: datetime
) -> datetime | None:
    """The first time later than the instant at which the rule runs; None: not within five years."""
    if calendar is None:
        return next_after(rule, instant)
    return next(runs(rule, OpenDays(calendar, zone(rule.timezone)), mode, instant), None)


def runs(
    rule: ScheduleRule, days: OpenDays | None, mode: CalendarMode, after: datetime
) -> Iterator[datetime]:
    """Every time later than this at which the rule runs, in order, until none comes within five years."""
    if days is None:
        return fires(rule, after)
    return _kept(rule, days, after) if _skips(mode) else _moved(rule, days, after)


def _skips(mode: str) -> bool:
    if mode not in get_args(CalendarMode):
        raise InvalidSchedule(f"calendar mode {mode!r}: must be skip or next_working_day")
    return mode == "skip"


def _kept(rule: ScheduleRule, days: OpenDays, after: datetime) -> Iterator[datetime]:
    walk, limit, closes = fires(rule, after), after + LOOK_AHEAD, after
    while (fire := next(walk, None)) is not None and fire <= limit:
        if fire >= closes:  # a day not looked at yet
            day = wall_of(fire, days.where).date()
            kept = days.kept(day)
            if kept is None:
                return
            if kept != day:
                walk = fires(rule, _start(kept, days.where) - TICK)
                continue
            closes = _start(day + DAY, days.where)
        yield fire
        limit = fire + LOOK_AHEAD


def _moved(rule: ScheduleRule, days: OpenDays, after: datetime) -> Iterator[datetime]:
    """Days are taken in blocks: closed days and the working day that their fires move to."""
    last = after
    day = days.working(wall_of(last, days.where).date())
    while day is not None:
        for at in _on(rule, days, day, last):
            if at > last:  # fires that end up at the same instant are one
                last = at
                yield at
        fire = next_after(rule, _start(day + DAY, days.where) - TICK)
        if fire is None or fire > last + LOOK_AHEAD:
            return
        day = days.working(wall_of(fire, days.where).date())


def _on(rule: ScheduleRule, days: OpenDays, day: date, after: datetime) -> Iterator[datetime]:
    """The runs on a working day later than this, in order: its own fires, and those that move to it."""
    where = days.where
    now = wall_of(after, where)
    since = now.time() if now.date() == day else time()
    own = _until(_start(day + DAY, where), fires(rule, max(after, _start(day, where) - TICK)))
    moved = [_moved_to(day, origin, since, rule, where) for origin in _origins(rule, days, day)]
    for at in heapq.merge(own, *moved):
        if rule.until is not None and at > rule.until:
            return
        yield at


def _origins(rule: ScheduleRule, days: OpenDays, day: date) -> Iterator[date]:
    """The closed days that may have fires of their own: of days that a cron rule treats alike, the first."""
    cron = None if rule.cron is None else read(rule.cron)
    found = False
    for origin in days.closed_before(day):
        if cron is None or steady_offset(origin, days.where) is None or _is_part(rule, origin, days.where):
            yield origin
        elif not found and cron.matches(origin):
            found = True
            yield origin


def _is_part(rule: ScheduleRule, day: date, where: ZoneInfo) -> bool:
    """Whether the rule starts after this day began."""
    return rule.start_at is not None and _start(day, where) < rule.start_at


def _moved_to(
    day: date, origin: date, since: time, rule: ScheduleRule, where: ZoneInfo
) -> Iterator[datetime]:
    """The fires of one closed day from this time of day on, at the same local time on another day."""
    begin = instant_of(datetime.combine(origin, since), where)
    own = _until(_start(origin + DAY, where), fires(rule, begin - TICK))
    if steady_offset(origin, where) is None or steady_offset(day, where) is None:
        return (instant_of(datetime.combine(day, wall_of(fire, where).time()), where) for fire in own)
    shift = _start(day, where) - _start(origin, where)
    return (fire + shift for fire in own)


def _until(end: datetime, walk: Iterator[datetime]) -> Iterator[datetime]:
    return takewhile(lambda at: at < end, walk)


def _start(day: date, where: ZoneInfo) -> datetime:
    return instant_of(datetime.combine(day, time()), where)
