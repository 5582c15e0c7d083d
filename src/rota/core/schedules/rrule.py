"""Yearly recurrence as iCalendar's RRULE writes it, ``FREQ=YEARLY;BYMONTH=11;BYDAY=4TH``. Pure, bounded."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from itertools import islice
from typing import NamedTuple, NoReturn

YEARS = 20
PARTS = frozenset({"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "WKST"})
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

_DAY = re.compile(r"([+-]?[1-5])(MO|TU|WE|TH|FR|SA|SU)", re.ASCII)
_UNTIL = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T\d{6}Z?)?", re.ASCII)

Refuse = Callable[[str, str], NoReturn]


class Yearly(NamedTuple):
    interval: int = 1
    times: int | None = None
    until: date = date.max
    month: int | None = None
    day: int | None = None
    weekday: tuple[int, int] | None = None  # which one in the month (from its end when negative), Monday is 0

    def dates(self, start: date, first_year: int, last_year: int) -> Iterator[date]:
        """The dates of these years, both included, from ``start`` on."""
        passed = 0 if self.times is not None else max(first_year - start.year, 0) // self.interval
        every = (
            day
            for year in range(start.year + passed * self.interval, last_year + 1, self.interval)
            if (day := self._in_year(year, start)) is not None and start <= day <= self.until
        )
        return (day for day in islice(every, self.times) if day.year >= first_year)

    def _in_year(self, year: int, start: date) -> date | None:
        month = self.month or start.month
        days = calendar.monthrange(year, month)[1]
        if self.weekday is None:
            day = self.day or start.day
            day = day if day > 0 else days + 1 + day
            return date(year, month, day) if 1 <= day <= days else None
        nth, weekday = self.weekday
        if nth > 0:
            first = date(year, month, 1)
            found = first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))
        else:
            last = date(year, month, days)
            found = last - timedelta(days=(last.weekday() - weekday) % 7 + 7 * (-nth - 1))
        return found if found.month == month else None


def read_rule(text: str, refuse: Refuse) -> Yearly:
    """The recurrence of an RRULE value; ``refuse`` raises, and knows the line."""
    parts = dict(part.partition("=")[::2] for part in text.upper().strip(";").split(";"))
    unknown = sorted(set(parts) - PARTS)
    if parts.get("FREQ") != "YEARLY" or unknown:
        what = ", ".join(unknown) or f"FREQ={parts.get('FREQ', '')[:20]}"
        refuse(f"RRULE {what} is not understood", "only simple yearly events are; list the dates one by one")
    month = _whole("BYMONTH", parts, 1, 12, refuse)
    weekday = None
    if "BYDAY" in parts:
        match = _DAY.fullmatch(parts["BYDAY"])
        if match is None or month is None:
            refuse(
                f"RRULE BYDAY={parts['BYDAY'][:20]} is not understood", "write it like BYMONTH=11;BYDAY=4TH"
            )
        weekday = (int(match[1]), WEEKDAYS.index(match[2]))
    return Yearly(
        interval=_whole("INTERVAL", parts, 1, 100, refuse) or 1,
        times=_whole("COUNT", parts, 1, 10_000, refuse),
        until=_until(parts, refuse),
        month=month,
        day=_whole("BYMONTHDAY", parts, -31, 31, refuse),
        weekday=weekday,
    )


def _whole(name: str, parts: dict[str, str], low: int, high: int, refuse: Refuse) -> int | None:
    text = parts.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[+-]?\d{1,5}", text, re.ASCII) or not low <= int(text) <= high or int(text) == 0:
        refuse(f"RRULE {name}={text[:20]} is not understood", f"use one number from {low} to {high}")
    return int(text)


def _until(parts: dict[str, str], refuse: Refuse) -> date:
    text = parts.get("UNTIL")
    if text is None:
        return date.max
    match = _UNTIL.fullmatch(text)
    try:
        if match is None:
            raise ValueError
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        refuse(f"RRULE UNTIL={text[:20]} is not a date", "use 20301231")
