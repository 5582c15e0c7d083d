"""Cron expressions: the grammar, with the position of every error, and the search for the next matching wall.

Pure and bounded: a text has at most 256 characters, and one that never fires is refused here. Knows
nothing of time zones; it searches wall times (naive datetimes). The grammar is ours, the search for the
day is cronsim's.

Five fields: minute, hour, day of month, month, day of week. Six: seconds first. A field is a list of
``*``, values, ranges and steps. Ranges may wrap around (``FRI-MON``, ``22-2``) and are counted from
their start. ``L`` is the last day of the month, ``LW`` its last Monday to Friday, ``5L`` or ``FRIL`` its
last Friday, ``MON#2`` its second Monday. When both days are given, either suffices, as in classic
cron; when one of them begins with ``*`` (also ``*/2``), both must hold.
"""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections.abc import Iterator
from datetime import date, datetime, time
from functools import lru_cache
from typing import Any, NamedTuple, NoReturn

from cronsim import CronSim, CronSimError

from ...errors import InvalidSchedule

LONGEST_TEXT = 256
NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
SOME_START = datetime(2000, 1, 1)  # cronsim searches 50 years; a matching date recurs within 40

_WORD = re.compile(r"\S+")
_TERM = re.compile(r"(?:(\*)|([A-Z]+|\d+)(?:-([A-Z]+|\d+))?)(?:/(\d+))?", re.ASCII)
_LAST = re.compile(r"([A-Z]{3}|\d)L", re.ASCII)
_NTH = re.compile(r"([A-Z]{3}|\d)#(\d+)", re.ASCII)


class CronField(NamedTuple):
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
FIELDS = (
    CronField("second", 0, 59),
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day of month", 1, 31),
    CronField("month", 1, 12, MONTHS),
    CronField("day of week", 0, 6, DAYS),
)
DAY, WEEKDAY = FIELDS[3], FIELDS[5]


class Cron:
    """A checked cron expression. Created by ``read``; ``after`` finds the next wall time."""

    __slots__ = ("_days", "_hours", "_minutes", "_seconds", "every_hour", "every_minute", "wording")

    def __init__(self, search: CronSim, wording: str) -> None:
        self.wording = wording  # the fields in full, for words
        self._hours, self._minutes = sorted(search.hours), sorted(search.minutes)
        self._seconds = sorted(search.seconds)
        self.every_hour = len(self._hours) == 24
        self.every_minute = search.parts[1].startswith("*")  # or every n minutes
        search.hours = search.minutes = search.seconds = {0}
        self._days = search  # finds midnights of matching days; it would walk to a time hour by hour

    def after(self, wall: datetime) -> datetime | None:
        """The first matching wall later than this one."""
        if self.matches(wall.date()):
            later = self._later_that_day(wall)
            if later is not None:
                return later
        search = CronSim.__new__(CronSim)  # copy.copy costs as much as the search
        search.__dict__.update(self._days.__dict__)
        search.dt = wall.replace(hour=23, minute=59, second=59, microsecond=0, fold=0)
        day = next(search, None)
        return day and day.replace(hour=self._hours[0], minute=self._minutes[0], second=self._seconds[0])

    def matches(self, day: date) -> bool:
        return day.month in self._days.months and bool(self._days.match_day(day))

    def seconds_of_day(self, since: time = time()) -> Iterator[int]:
        """When it fires on a day that matches, in seconds from midnight, from this time of day on."""
        first = since.hour * 3600 + since.minute * 60 + since.second + (since.microsecond > 0)
        for hour in self._hours[bisect_left(self._hours, since.hour) :]:
            for minute in self._minutes:
                begin = hour * 3600 + minute * 60
                if begin + 59 >= first:
                    for second in self._seconds:
                        if begin + second >= first:
                            yield begin + second

    def _later_that_day(self, wall: datetime) -> datetime | None:
        hours, minutes, seconds = self._hours, self._minutes, self._seconds
        hour, minute = wall.hour, wall.minute
        if hour in hours:
            if minute in minutes and wall.second < seconds[-1]:
                second = seconds[bisect(seconds, wall.second)]
                return wall.replace(second=second, microsecond=0, fold=0)
            if minute < minutes[-1]:
                minute = minutes[bisect(minutes, minute)]
                return wall.replace(minute=minute, second=seconds[0], microsecond=0, fold=0)
        if hour >= hours[-1]:
            return None
        hour = hours[bisect(hours, hour)]
        return wall.replace(hour=hour, minute=minutes[0], second=seconds[0], microsecond=0, fold=0)


def read(text: Any) -> Cron:
    """The rule of a cron expression, or InvalidSchedule with the field, column, cause and remedy."""
    if not isinstance(text, str):
        raise InvalidSchedule(f"cron={text!r}: must be a text such as '0 8 * * 1-5'")
    if len(text) > LONGEST_TEXT:
        raise InvalidSchedule(
            f"cron={text[:40]!r}…: has {len(text)} characters, at most {LONGEST_TEXT} are read; shorten it"
        )
    return _read(text)


@lru_cache(maxsize=8192)
def _read(text: str) -> Cron:
    words = [(match.group().upper(), match.start() + 1) for match in _WORD.finditer(_plain(text))]
    if len(words) not in (5, 6):
        raise InvalidSchedule(
            f"cron={text!r}: has {len(words)} field{'s' * (len(words) != 1)}; write 5 (minute, hour, "
            "day of month, month, day of week) or 6 (second first)"
        )
    fields = FIELDS[6 - len(words) :]
    specs = [_Reader(text, field).spec(*word) for field, word in zip(fields, words, strict=True)]
    search = " ".join(spec for spec, _ in specs)
    never = f"{DAY.name}, column {words[-3][1]}: never fires, because no month it names has such a day"
    try:
        found = Cron(CronSim(search, SOME_START), " ".join(written for _, written in specs))
    except CronSimError:
        raise InvalidSchedule(f"cron={text!r}: {never}; use L for the last day") from None
    if found.after(SOME_START) is None:
        raise InvalidSchedule(f"cron={text!r}: {never}; check it against the {WEEKDAY.name}")
    return found


def _plain(text: str) -> str:
    """The text with a nickname written out; only ASCII, so that columns are those of the text given."""
    for column, sign in enumerate(text, 1):
        if not sign.isascii() or sign == "\0":
            raise InvalidSchedule(
                f"cron={text!r}: column {column}: {sign!r} has no meaning in cron; remove it"
            )
    name = text.strip().lower()
    if not name.startswith("@"):
        return text
    if name in NICKNAMES:
        return NICKNAMES[name]
    column = text.index("@") + 1
    hint = f"use one of {', '.join(NICKNAMES)}"
    if name.startswith("@every"):
        hint = "give the interval as every=, such as every='15m'"
    raise InvalidSchedule(f"cron={text!r}: column {column}: there is no such nickname; {hint}")


class _Reader:
    """Reads one field of a text."""

    def __init__(self, text: str, field: CronField) -> None:
        self.text = text
        self.field = field

    def spec(self, word: str, column: int) -> tuple[str, str]:
        """The field as numbers for the search, and as written (wrapped ranges in full) for words."""
        search: dict[str, None] = {}  # in order: a leading * changes how days combine
        written: list[str] = []
        for term in word.split(","):
            found = self._term(term, column)
            search.update(dict.fromkeys(found))
            written.append(",".join(found) if _wraps(term, found) else found[0] if len(found) == 1 else term)
            column += len(term) + 1
        return ",".join(search), ",".join(written)

    def _term(self, term: str, column: int) -> list[str]:
        special = self._special(term, column)
        if special:
            return [special]
        match = _TERM.fullmatch(term)
        if match is None:
            self._refuse(column, f"{term!r} is not understood", self._example(term))
        star, first, last, step = match.groups()
        stride = 1 if step is None else self._step(step, column + match.start(4))
        if star:
            return [term]
        start = self._value(first, column)
        if last is not None:
            return self._range(start, self._value(last, column + match.start(3)), stride)
        return [str(start)] if step is None else self._range(start, self.field.high, stride)

    def _special(self, term: str, column: int) -> str | None:
        if self.field is DAY and term in ("L", "LW"):
            return term
        if self.field is WEEKDAY and (match := _LAST.fullmatch(term)):
            return f"{self._value(match[1], column)}L"
        if self.field is WEEKDAY and (match := _NTH.fullmatch(term)):
            nth = self._number(match[2], column + match.start(2), "week of the month", 1, 5)
            return f"{self._value(match[1], column)}#{nth}"
        return None

    def _range(self, first: int, last: int, step: int) -> list[str]:
        size = self.field.high - self.field.low + 1
        length = (last - first) % size + 1
        return [str((first - self.field.low + i) % size + self.field.low) for i in range(0, length, step)]

    def _step(self, text: str, column: int) -> int:
        size = self.field.high - self.field.low + 1
        if len(text) <= 4 and int(text) > size:
            cause = f"step {text} is larger than the {size} values of the field"
            self._refuse(column, cause, "give a longer interval as every=, such as every='90m'")
        return self._number(text, column, "step", 1, size)

    def _value(self, text: str, column: int) -> int:
        if text in self.field.names:
            return self.field.names.index(text) + self.field.low
        if not text.isdigit():
            names = f" or {self.field.names[0]} to {self.field.names[-1]}" if self.field.names else ""
            self._refuse(
                column,
                f"{text!r} is not a {self.field.name}",
                f"use {self.field.low} to {self.field.high}{names}",
            )
        if self.field is WEEKDAY and text == "7":
            return 0
        return self._number(text, column, "value", self.field.low, self.field.high)

    def _number(self, text: str, column: int, what: str, low: int, high: int) -> int:
        if len(text) > 4 or not low <= int(text) <= high:
            self._refuse(column, f"{what} {text} is out of range", f"use {low} to {high}")
        return int(text)

    def _example(self, term: str) -> str:
        if not term:
            return "remove the extra comma"
        if "?" in term:
            return "write * for any"
        if self.field is DAY and term.endswith("W"):
            return "use LW for the last weekday of the month; the weekday nearest a date is not known"
        if self.field is WEEKDAY and "L" in term:
            return "write 5L or FRIL for the last Friday of the month"
        return "write values, ranges (1-5), lists (1,3), steps (*/5) or *"

    def _refuse(self, column: int, cause: str, remedy: str) -> NoReturn:
        raise InvalidSchedule(f"cron={self.text!r}: {self.field.name}, column {column}: {cause}; {remedy}")


def _wraps(term: str, found: list[str]) -> bool:
    numbers = [int(value) for value in found if value.isdigit()]
    return numbers != sorted(numbers)
