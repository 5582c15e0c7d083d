"""Cron expressions: the grammar, the position of every error, and a search checked against brute force."""

from __future__ import annotations

import calendar
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from effort import LONG, examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.cron import NICKNAMES, read
from rota.core.schedules.describe import preview, summary
from rota.core.schedules.rules import next_after, parse
from rota.errors import InvalidSchedule

START = datetime(2026, 1, 1, tzinfo=UTC)


def fires(
    text: str, n: int, after: datetime = START - timedelta(seconds=1), timezone: str = "UTC"
) -> list[datetime]:
    return [
        fire.local.replace(tzinfo=None) for fire in preview(parse(cron=text, timezone=timezone), after, n)
    ]


def days(text: str, n: int, after: datetime = START - timedelta(seconds=1)) -> list[str]:
    return [f"{fire:%m-%d}" for fire in fires(f"0 0 {text}", n, after)]


@pytest.mark.parametrize(
    ("text", "place", "cause"),
    [
        ("*/0 * * * *", "minute, column 3", "step 0 is out of range; use 1 to 60"),
        ("*/90 * * * *", "minute, column 3", "step 90 is larger than the 60 values .*every='90m'"),
        ("60 * * * *", "minute, column 1", "value 60 is out of range; use 0 to 59"),
        ("0 24 * * *", "hour, column 3", "value 24 is out of range; use 0 to 23"),
        ("0  5-77 * * *", "hour, column 6", "value 77"),
        ("0 0 0 * *", "day of month, column 5", "value 0 is out of range; use 1 to 31"),
        ("0 0 1,5,32 * *", "day of month, column 9", "value 32"),
        ("0 0 * 13 *", "month, column 7", "value 13"),
        ("0 0 * FOO *", "month, column 7", "'FOO' is not a month; use 1 to 12 or JAN to DEC"),
        ("0 0 * * 8", "day of week, column 9", "value 8"),
        ("0 0 * * MONDAY", "day of week, column 9", "'MONDAY' is not a day of week"),
        ("0 0 * * MON#6", "day of week, column 13", "week of the month 6 is out of range; use 1 to 5"),
        ("0 0 * * MON#0", "day of week, column 13", "week of the month 0"),
        ("0 0 * * L", "day of week, column 9", "'L' is not a day of week"),
        ("0 0 15W * *", "day of month, column 5", "use LW for the last weekday"),
        ("0 0 ? * *", "day of month, column 5", r"write \* for any"),
        ("0 0 1,,2 * *", "day of month, column 7", "remove the extra comma"),
        ("61 0 0 * * *", "second, column 1", "value 61"),
        ("0 0 31 2 *", "day of month, column 5", "never fires"),
        ("0 0 30,31 FEB *", "day of month, column 5", "never fires"),
        ("0 0 31 4,6,9,11 *", "day of month, column 5", "never fires"),
        ("0 0 */20 * MON#5", "day of month, column 5", "never fires"),
        ("1-2-3 * * * *", "minute, column 1", "is not understood"),
        ("* * * * -1", "day of week, column 9", "is not understood"),
        ("99999999999999999999 * * * *", "minute, column 1", "out of range"),
        ("*/99999999999999999999 * * * *", "minute, column 3", "out of range"),
    ],
)
def test_an_error_names_the_field_the_column_the_cause_and_the_remedy(
    text: str, place: str, cause: str
) -> None:
    with pytest.raises(InvalidSchedule, match=rf"cron='.*': {place}: .*{cause}"):
        parse(cron=text)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "has 0 fields; write 5"),
        ("* * * *", "has 4 fields"),
        ("* * * * * * *", "has 7 fields"),
        ("*" * 10_240, "has 10240 characters, at most 256 are read"),
        ("* " * 5000, "has 10000 characters"),
        ("* * * * é", "column 9: 'é' has no meaning in cron"),
        ("* * * * *\0", "column 10"),
        ("@reboot", "column 1: there is no such nickname; use one of @yearly"),
        ("  @every 5m", "column 3: .*every='15m'"),
    ],
)
def test_a_text_that_is_no_cron_is_refused(text: str, cause: str) -> None:
    with pytest.raises(InvalidSchedule, match=cause):
        parse(cron=text)


@pytest.mark.parametrize(
    "text", ["0 0 31 2 *", "0 0 */20 * MON#5", "*/0 * * * *", "x" * 10_240, "1," * 127 + "1 * * * *"]
)
def test_hostile_texts_are_refused_in_bounded_time(text: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidSchedule):
        parse(cron=text)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(("name", "text"), NICKNAMES.items())
def test_a_nickname_means_its_fields_in_any_case(name: str, text: str) -> None:
    assert fires(f" {name.title()} ", 5) == fires(text, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L * *", ["01-31", "02-28", "03-31", "04-30"]),
        ("LW * *", ["01-30", "02-27", "03-31", "04-30"]),
        ("* * 5L", ["01-30", "02-27", "03-27", "04-24"]),
        ("* * FRIL", ["01-30", "02-27", "03-27", "04-24"]),
        ("* * 7L", ["01-25", "02-22", "03-29", "04-26"]),
        ("* * MON#2", ["01-12", "02-09", "03-09", "04-13"]),
        ("* * mon#2", ["01-12", "02-09", "03-09", "04-13"]),
        ("* jan,Mar mon", ["01-05", "01-12", "01-19", "01-26", "03-02"]),
        ("* * FRI-MON", ["01-02", "01-03", "01-04", "01-05", "01-09"]),
        ("* * FRI-SUN", ["01-02", "01-03", "01-04", "01-09"]),
        ("* * 5-7", ["01-02", "01-03", "01-04", "01-09"]),
        ("1 NOV-FEB *", ["01-01", "02-01", "11-01", "12-01"]),
        ("30-2 * *", ["01-01", "01-02", "01-30", "01-31", "02-01"]),
        ("13 * FRI", ["01-02", "01-09", "01-13", "01-16"]),  # either day suffices
        ("*/10 * SUN", ["01-11", "02-01", "03-01"]),  # a leading star: both must hold
        ("29 2 *", ["02-29", "02-29"]),
        ("1,L * *", ["01-01", "01-31", "02-01", "02-28"]),
        ("1-1/2 * *", ["01-01", "02-01"]),
        ("29/2 * *", ["01-29", "01-31", "03-29"]),
    ],
)
def test_days(text: str, expected: list[str]) -> None:
    assert days(text, len(expected)) == expected


def test_a_wrapped_range_counts_its_steps_from_its_start() -> None:
    assert [fire.hour for fire in fires("0 22-4/2 * * *", 5)] == [0, 2, 4, 22, 0]


def test_six_fields_begin_with_the_second() -> None:
    assert [f"{fire:%H:%M:%S}" for fire in fires("*/20 30 8 * * *", 4)] == [
        "08:30:00",
        "08:30:20",
        "08:30:40",
        "08:30:00",
    ]


def test_the_next_century_has_no_leap_day() -> None:
    after = datetime(2096, 3, 1, tzinfo=UTC)
    assert next_after(parse(cron="0 0 29 2 *"), after) == datetime(2104, 2, 29, tzinfo=UTC)


def test_the_rarest_date_is_found_quickly() -> None:
    rule = parse(cron="0 0 * 2 MON#5")
    began = time.process_time()
    assert next_after(rule, datetime(2088, 1, 1, tzinfo=UTC)) == datetime(2112, 2, 29, tzinfo=UTC)
    assert time.process_time() - began < 0.1


# --- against brute force -------------------------------------------------------------------------

RANGES = {"minute": (0, 59), "hour": (0, 23), "day": (1, 31), "month": (1, 12), "weekday": (0, 6)}


@st.composite
def field(draw: st.DrawFn, low: int, high: int) -> tuple[str, set[int]]:
    """A field as text, and the values that it means, worked out without the parser."""
    size = high - low + 1
    kind = draw(st.sampled_from(["*", "*/n", "values", "range", "range/n"]))
    if kind == "*":
        return "*", set(range(low, high + 1))
    if kind == "*/n":
        step = draw(st.integers(1, size))
        return f"*/{step}", set(range(low, high + 1, step))
    if kind == "values":
        values = draw(st.lists(st.integers(low, high), min_size=1, max_size=4))
        return ",".join(map(str, values)), set(values)
    first, last = draw(st.integers(low, high)), draw(st.integers(low, high))
    step = draw(st.integers(1, size)) if kind == "range/n" else 1
    inside = [(first + i - low) % size + low for i in range((last - first) % size + 1)]
    return f"{first}-{last}" + (f"/{step}" if kind == "range/n" else ""), set(inside[::step])


@st.composite
def crontab(draw: st.DrawFn) -> tuple[str, dict[str, set[int]], bool]:
    parts = {name: draw(field(*bounds)) for name, bounds in RANGES.items()}
    both = parts["day"][0].startswith("*") or parts["weekday"][0].startswith("*")
    return (
        " ".join(text for text, _ in parts.values()),
        {name: values for name, (_, values) in parts.items()},
        both,
    )


def matching_days(values: dict[str, set[int]], both: bool, first: datetime, years: int) -> Iterator[datetime]:
    for i in range(366 * years):
        day = first + timedelta(days=i)
        in_month, in_week = day.day in values["day"], day.isoweekday() % 7 in values["weekday"]
        if day.month in values["month"] and (in_month and in_week if both else in_month or in_week):
            yield day


@examples(300)
@given(crontab(), st.datetimes(datetime(1990, 1, 1), datetime(2080, 1, 1)))
def test_the_search_agrees_with_brute_force(
    cron: tuple[str, dict[str, set[int]], bool], after: datetime
) -> None:
    text, values, both = cron
    midnight = datetime(after.year, after.month, after.day)
    expected = next(
        (
            moment
            for day in matching_days(values, both, midnight, 45)
            for hour in sorted(values["hour"])
            for minute in sorted(values["minute"])
            if (moment := day.replace(hour=hour, minute=minute)) > after
        ),
        None,
    )
    try:
        assert read(text).after(after) == expected
    except InvalidSchedule as refused:
        assert "never fires" in str(refused) and expected is None


# --- anything at all -----------------------------------------------------------------------------

SCRAPS = [
    *"0123456789*/-,#@LW? \t",
    *("MON", "FRI", "JAN", "DEC", "5L", "LW", "*/", "1-5", "31", "60", "@daily", "FRI-MON", "é", "*", "*"),
]


SPECIALS = {
    3: ["L", "LW", "1,L", "31"],
    4: ["JAN-MAR", "nov-feb", "2"],
    5: ["5L", "MON#5", "fri-mon", "SUN", "7"],
}


def random_text(chance: random.Random) -> str:
    """Often a cron expression, often almost one, sometimes not at all."""
    if chance.random() < 0.1:
        return "".join(chance.choices(SCRAPS, k=chance.randrange(300)))
    fields = [random_field(chance, place) for place in range(chance.choice((0, 1, 1, 1)), 6)]
    return " ".join(fields)


def random_field(chance: random.Random, place: int) -> str:
    low, high = ((0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 7))[place]
    a, b, n = chance.randint(low, high), chance.randint(low, high), chance.randint(1, 7)
    kinds = ["*", "*", f"*/{n}", f"{a}", f"{a},{b}", f"{a}-{b}", f"{a}-{b}/{n}", f"{a}/{n},*/{n}", f"*,{a}"]
    kinds += SPECIALS.get(place, [])
    if chance.random() < 0.1:
        return "".join(chance.choices(SCRAPS, k=chance.choice((1, 2, 3, 4))))
    return chance.choice(kinds)


def check_text(text: str) -> bool:
    """Whether it is a rule."""
    began = time.process_time()
    try:
        rule = parse(cron=text, timezone="America/New_York")
    except InvalidSchedule as refused:
        assert len(str(refused)) < 2000
        return False
    finally:
        assert time.process_time() - began < 1
    fire = next_after(rule, START)
    assert fire is not None and fire > START
    assert summary(rule)
    assert time.process_time() - began < 1
    return True


@examples(100, quick=2)
@given(st.integers(0, 2**64))
def test_random_texts_never_hang_and_raise_only_invalid_schedule(seed: int) -> None:
    chance = random.Random(seed)
    rules = sum(check_text(random_text(chance)) for _ in range(10_000 if LONG else 40))
    assert rules > (100 if LONG else 3)


@examples(10_000)
@given(st.text(max_size=300) | st.lists(st.sampled_from(SCRAPS), max_size=40).map("".join))
def test_any_text_raises_only_invalid_schedule(text: str) -> None:
    check_text(text)


def test_last_weekdays_agree_with_the_calendar() -> None:
    for fire in fires("0 0 LW * *", 240 if LONG else 24):
        last = calendar.monthrange(fire.year, fire.month)[1]
        assert fire.weekday() < 5 and all(
            fire.replace(day=day).weekday() > 4 for day in range(fire.day + 1, last + 1)
        )
