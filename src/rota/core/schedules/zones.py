"""Time zones: names to zones, wall times to UTC, and the times when clocks change.

Pure but for zoneinfo reading its tables. Knows nothing of schedules: what a schedule does when a
clock changes is decided in ``dst.py``. A *wall* is a naive datetime as a clock in the zone shows it.
"""

from __future__ import annotations

import difflib
from datetime import UTC, date, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from ...errors import InvalidSchedule

LONGEST_NAME = 64
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
ZERO = timedelta()
OF_THE_MACHINE = frozenset({"localtime", "posixrules"})
TICK = timedelta(microseconds=1)


class OffsetChange(NamedTuple):
    """A change of the zone's offset: walls from ``lower`` up to ``upper`` are missing or come twice."""

    at: datetime  # UTC; the first instant with the new offset
    before: timedelta
    after: timedelta

    @property
    def is_gap(self) -> bool:
        return self.after > self.before

    @property
    def is_whole_hours(self) -> bool:
        return not (self.after - self.before) % HOUR

    @property
    def lower(self) -> datetime:
        return (self.at + min(self.before, self.after)).replace(tzinfo=None)

    @property
    def upper(self) -> datetime:
        return (self.at + max(self.before, self.after)).replace(tzinfo=None)

    def swallows(self, day: date) -> bool:
        """Whether the zone never had this day (Apia had no 30 December 2011)."""
        midnight = datetime(day.year, day.month, day.day)
        return self.is_gap and self.lower <= midnight and midnight + DAY <= self.upper


def zone(name: Any) -> ZoneInfo:
    """The zone of this IANA name, or InvalidSchedule with the nearest name."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidSchedule(
            f"timezone={str(name)[:LONGEST_NAME]!r}: must be the IANA name of a zone, such as Europe/Berlin"
        )
    if name in OF_THE_MACHINE:
        raise InvalidSchedule(f"timezone={name!r}: differs from machine to machine; name the zone itself")
    return _zone(name)


@lru_cache(maxsize=1024)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: the name of a folder, such as "America"
        near = _nearest(name)
        hint = f"did you mean {near}?" if near else "use an IANA name such as Europe/Berlin or UTC"
        raise InvalidSchedule(f"timezone={name!r}: there is no such time zone; {hint}") from None


def _nearest(name: str) -> str | None:
    asked = name.lower().replace(" ", "_")
    names = _names()
    if asked in names:
        return names[asked]
    cities = sorted(key for key in names if key.endswith(f"/{asked}"))
    near = cities or difflib.get_close_matches(asked, names, 1)
    return names[near[0]] if near else None


@cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in sorted(available_timezones() - OF_THE_MACHINE)}


def change_at(wall: datetime, where: ZoneInfo) -> OffsetChange | None:
    """The change that makes this wall missing or double; None where it exists exactly once."""
    first = wall.replace(tzinfo=where, fold=0).utcoffset() or ZERO
    second = wall.replace(tzinfo=where, fold=1).utcoffset() or ZERO
    if first == second:
        return None
    whole = wall.replace(microsecond=0, fold=0, tzinfo=UTC)
    low, high = sorted((whole - first, whole - second))
    return change_between(low, high, where)


def change_between(low: datetime, high: datetime, where: ZoneInfo) -> OffsetChange | None:
    """A change after ``low`` and not after ``high``; None when both have the same offset."""
    before, after = _offset_at(low, where), _offset_at(high, where)
    if before == after:
        return None
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        if _offset_at(middle, where) == before:
            low = middle
        else:
            high = middle
    return OffsetChange(high, before, _offset_at(high, where))


def steady_offset(day: date, where: ZoneInfo) -> timedelta | None:
    """The offset that the zone has all day; None if it changes, or if the zone never had this day.

    Compares both midnights: the changes of a zone are days apart.
    """
    start = _midnight_offset(day, where)
    return start if start == _midnight_offset(day + DAY, where) else None


@lru_cache(maxsize=16384)
def _midnight_offset(day: date, where: ZoneInfo) -> timedelta | None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=where)
    found = midnight.utcoffset()
    return found if found == midnight.replace(fold=1).utcoffset() else None


def instant_of(wall: datetime, where: ZoneInfo) -> datetime:
    """When the clock first shows this wall; the end of the gap for one that it never shows."""
    change = change_at(wall, where)
    return change.at if change is not None and change.is_gap else utc(wall, where)


def utc(wall: datetime, where: ZoneInfo, fold: int = 0) -> datetime:
    return wall.replace(tzinfo=where, fold=fold).astimezone(UTC)


def wall_of(instant: datetime, where: ZoneInfo) -> datetime:
    """What the clock shows; ``fold`` is 1 when it shows it for the second time."""
    return instant.astimezone(where).replace(tzinfo=None)


def _offset_at(instant: datetime, where: ZoneInfo) -> timedelta:
    return instant.astimezone(where).utcoffset() or ZERO
