"""iCalendar files: the dates that their events cover. Pure and bounded.

Reads what holiday calendars contain: VEVENT with DTSTART, DTEND or DURATION, yearly RRULE, EXDATE,
RDATE. Dates are taken as written, whatever their zone. A line it does not understand is an
error with its number, rather than a holiday that is silently missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from typing import NamedTuple, NoReturn

from ...errors import InvalidSchedule
from .rrule import YEARS, Yearly, read_rule

LONGEST_TEXT = 1 << 20
MOST_EVENTS = 10_000
MOST_DATES = 300_000
LONGEST_EVENT = 366  # days
FIRST_YEAR, LAST_YEAR = 1900, 2999
DAY = timedelta(days=1)

_NAME = re.compile(r"([A-Za-z0-9-]+)((?:;[^:\"]*(?:\"[^\"]*\"[^:\"]*)*)?):(.*)", re.ASCII | re.DOTALL)
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d{6})Z?)?", re.ASCII)
_LENGTH = re.compile(r"\+?P(?:(\d{1,3})W|(?:(\d{1,3})D)?(?:T(?:\d{1,6}[HMS])+)?)", re.ASCII)
_KEPT = frozenset({"DTSTART", "DTEND", "DURATION", "RRULE", "EXDATE", "RDATE", "STATUS"})


class IcsLine(NamedTuple):
    number: int
    name: str
    value: str


class Stamp(NamedTuple):
    day: date
    at_midnight: bool  # so that, as an end, it does not cover its own day


def dates_of(text: str, since: date | None = None) -> frozenset[date]:
    """Every date that an event covers; yearly ones for twenty years from the later of start and ``since``."""
    if not isinstance(text, str) or len(text) > LONGEST_TEXT or len(text.encode()) > LONGEST_TEXT:
        raise InvalidSchedule(f"calendar: must be a text of at most {LONGEST_TEXT} bytes; split it in parts")
    dates: set[date] = set()
    work = 0
    for count, event in enumerate(_events(_lines(text)), 1):
        if count > MOST_EVENTS:
            refuse(event[0].number, f"more than {MOST_EVENTS} events", "split the calendar in parts")
        firsts, length = _covered({line.name: line for line in event}, event, since)
        work += len(firsts) * length  # counted with repetitions, and before any is written out
        if work > MOST_DATES:
            refuse(event[0].number, f"more than {MOST_DATES} dates", "split the calendar in parts")
        dates.update(first + i * DAY for first in firsts for i in range(length))
    return frozenset(dates)


def refuse(number: int, cause: str, remedy: str) -> NoReturn:
    raise InvalidSchedule(f"calendar, line {number}: {cause}; {remedy}")


def _lines(text: str) -> Iterator[IcsLine]:
    """The content lines, unfolded, each with the number of its first line."""
    folded: list[tuple[int, list[str]]] = []
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), 1):
        if raw[:1] in (" ", "\t") and folded:
            folded[-1][1].append(raw[1:])
        elif raw.strip():
            folded.append((number, [raw]))
    for number, parts in folded:
        match = _NAME.fullmatch("".join(parts))
        if match is None:
            refuse(
                number, f"{''.join(parts)[:40]!r} is not a 'NAME:value' line", "export the calendar as .ics"
            )
        yield IcsLine(number, match[1].upper(), match[3].strip())


def _events(lines: Iterator[IcsLine]) -> Iterator[list[IcsLine]]:
    """The lines of each event that belong to itself and not to a component inside it."""
    path: list[IcsLine] = []
    event: list[IcsLine] = []
    for line in lines:
        if not path and (line.name, line.value.upper()) != ("BEGIN", "VCALENDAR"):
            refuse(line.number, f"found {line.name} outside a calendar", "begin with BEGIN:VCALENDAR")
        inside = path[-1].value.upper() if path else ""
        if line.name == "BEGIN":
            path.append(line)
            event = [line] if line.value.upper() == "VEVENT" else event
        elif line.name == "END":
            if line.value.upper() != inside:
                refuse(line.number, f"END:{line.value} does not close BEGIN:{inside}", "export it again")
            path.pop()
            if inside == "VEVENT":
                yield event
        elif inside == "VEVENT" and line.name in _KEPT:
            event.append(line)
    if path:
        refuse(path[-1].number, f"BEGIN:{path[-1].value} has no END", "the text is cut off: export it again")


def _covered(lines: dict[str, IcsLine], event: list[IcsLine], since: date | None) -> tuple[set[date], int]:
    """The days on which the event begins, and how many days it lasts each time."""
    if "STATUS" in lines and lines["STATUS"].value.upper() == "CANCELLED":
        return set(), 0
    if "DTSTART" not in lines:
        refuse(event[0].number, "the event has no DTSTART", "give it a date")
    start = _stamp(lines["DTSTART"].number, lines["DTSTART"].value)
    length = _length(lines, start)
    firsts = {start.day}
    if "RRULE" in lines:
        rule = read_rule(
            lines["RRULE"].value, lambda cause, remedy: refuse(lines["RRULE"].number, cause, remedy)
        )
        firsts |= _recurring(rule, start.day, since)
    firsts |= _listed(event, "RDATE")
    firsts -= _listed(event, "EXDATE")
    return firsts, length


def _recurring(rule: Yearly, start: date, since: date | None) -> set[date]:
    first = max(start, since or start)
    return set(rule.dates(start, first.year - 1, first.year + YEARS))


def _listed(event: list[IcsLine], name: str) -> set[date]:
    return {
        _stamp(line.number, value.partition("/")[0]).day
        for line in event
        if line.name == name
        for value in line.value.split(",")
    }


def _length(lines: dict[str, IcsLine], start: Stamp) -> int:
    """How many days the event touches."""
    days, line = 1, lines["DTSTART"]
    if "DTEND" in lines:
        line = lines["DTEND"]
        end = _stamp(line.number, line.value)
        days = (end.day - start.day).days + (not end.at_midnight)
        if end.day < start.day:
            refuse(line.number, f"DTEND {line.value} is before DTSTART", "give a later end")
    elif "DURATION" in lines:
        line = lines["DURATION"]
        match = _LENGTH.fullmatch(line.value.upper())
        if match is None:
            refuse(line.number, f"DURATION {line.value[:40]!r} is not understood", "use P1D")
        days = int(match[1] or 0) * 7 + int(match[2] or 0)
    if days > LONGEST_EVENT:
        refuse(line.number, f"the event lasts {days} days", f"at most {LONGEST_EVENT} are read")
    return max(days, 1)


def _stamp(number: int, value: str) -> Stamp:
    match = _STAMP.fullmatch(value)
    try:
        if match is None or not FIRST_YEAR <= int(match[1]) <= LAST_YEAR:
            raise ValueError
        return Stamp(date(int(match[1]), int(match[2]), int(match[3])), match[4] in (None, "000000"))
    except ValueError:
        refuse(number, f"{value[:40]!r} is not a date", "use 20301224 or 20301224T080000Z")
