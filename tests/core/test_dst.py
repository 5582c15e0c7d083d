"""When the clocks change: named cases, a minute-by-minute oracle, and every zone of tzdata for ten years."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo, available_timezones

import pytest
from effort import LONG

from rota.core.schedules.rules import ScheduleRule, match_after, next_after, parse
from rota.core.schedules.zones import OF_THE_MACHINE, OffsetChange, change_at, change_between, wall_of, zone

DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
A_FEW = ["America/New_York", "Africa/Casablanca", "Australia/Lord_Howe"]
ONE_YEAR = (datetime(2028, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC))
TEN_YEARS = (datetime(2020, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC))


def local_fires(text: str, timezone: str, first: str, last: str) -> list[str]:
    """The fires from one local date to another, as ``day hour:minute`` and the offset in hours."""
    where = ZoneInfo(timezone)
    at = datetime.fromisoformat(first).replace(tzinfo=where).astimezone(UTC) - MINUTE
    end = (datetime.fromisoformat(last) + DAY).replace(tzinfo=where).astimezone(UTC)
    found = []
    while (fire := next_after(parse(cron=text, timezone=timezone), at)) is not None and fire < end:
        local = fire.astimezone(where)
        found.append(f"{local:%d %H:%M%z}"[:-2])
        at = fire
    return found


@pytest.mark.parametrize(
    ("timezone", "text", "day", "expected"),
    [
        # a fixed time in the gap runs once, just after it
        ("America/New_York", "30 2 * * *", "2026-03-08", ["08 03:00-04"]),
        ("America/New_York", "0 2 * * *", "2026-03-08", ["08 03:00-04"]),
        ("America/New_York", "0 30 2 * * *", "2026-03-08", ["08 03:00-04"]),
        ("America/New_York", "0,30 2 * * *", "2026-03-08", ["08 03:00-04"]),
        ("America/New_York", "0 2,3 * * *", "2026-03-08", ["08 03:00-04"]),
        ("America/New_York", "*/15 2 * * *", "2026-03-08", ["08 03:00-04"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-04", ["04 02:30+11"]),
        ("America/Havana", "0 0 * * *", "2026-03-08", ["08 01:00-04"]),
        ("America/Havana", "30 0 * * *", "2026-03-08", ["08 01:00-04"]),
        ("Asia/Beirut", "0 0 * * *", "2026-03-29", ["29 01:00+03"]),
        ("Africa/Cairo", "15 0 * * *", "2026-04-24", ["24 01:00+03"]),
        ("America/Asuncion", "0 0 * * *", "2023-10-01", ["01 01:00-03"]),
        ("America/Nuuk", "0 0 * * *", "2026-03-29", ["29 00:00-01"]),
        ("Africa/Casablanca", "30 2 * * *", "2026-03-22", ["22 03:00+01"]),
        ("Asia/Pyongyang", "45 23 * * *", "2018-05-04", []),  # the gap reaches midnight: served just after it
        ("Asia/Pyongyang", "45 23 * * *", "2018-05-05", ["05 00:00+09", "05 23:45+09"]),
        # shown twice: the first time
        ("America/New_York", "30 1 * * *", "2026-11-01", ["01 01:30-04"]),
        ("America/New_York", "0 30 1 * * *", "2026-11-01", ["01 01:30-04"]),
        ("America/New_York", "15,45 1 * * *", "2026-11-01", ["01 01:15-04", "01 01:45-04"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", ["05 01:45+11"]),
        ("America/Havana", "30 0 * * *", "2026-11-01", ["01 00:30-04"]),
        ("Asia/Beirut", "30 23 * * *", "2026-10-24", ["24 23:30+03"]),
        ("Africa/Casablanca", "30 2 * * *", "2026-02-15", ["15 02:30+01"]),
        ("Asia/Pyongyang", "45 23 * * *", "2015-08-14", ["14 23:45+09"]),  # a new standard time
        ("Europe/Volgograd", "30 1 * * *", "2020-12-27", ["27 01:30+04"]),
        # a step of hours: none lost, none doubled
        ("America/New_York", "0 */2 * * *", "2026-03-08",
         [f"08 {h:02}:00-0{5 if h < 2 else 4}" for h in (0, 3, *range(4, 24, 2))]),
        ("Europe/Berlin", "0 */2 * * *", "2026-10-25",
         [f"25 {h:02}:00+0{2 if h <= 2 else 1}" for h in range(0, 24, 2)]),
        # minutes follow real time through the repeated hour
        ("Europe/Berlin", "*/30 2 * * *", "2026-10-25",
         ["25 02:00+02", "25 02:30+02", "25 02:00+01", "25 02:30+01"]),
        # half an hour: a fixed minute of every hour is neither lost nor doubled
        ("Australia/Lord_Howe", "15 0-4 * * *", "2026-10-04",
         ["04 00:15+10", "04 01:15+10", "04 02:30+11", "04 03:15+11", "04 04:15+11"]),
    ],
)  # fmt: skip
def test_named_cases(timezone: str, text: str, day: str, expected: list[str]) -> None:
    assert local_fires(text, timezone, day, day) == expected


@pytest.mark.parametrize("text", ["0 8 * * *", "0 0 * * *", "30 23 * * *"])
def test_a_date_that_never_was_has_no_run(text: str) -> None:
    days = [fire[:2] for fire in local_fires(text, "Pacific/Apia", "2011-12-28", "2012-01-01")]
    assert days == ["28", "29", "31", "01"]
    days = [fire[:2] for fire in local_fires(text, "Pacific/Kwajalein", "1993-08-19", "1993-08-23")]
    assert days == ["19", "20", "22", "23"]


@pytest.mark.parametrize(
    "timezone", ["America/New_York", "Europe/Berlin", "Africa/Casablanca", "America/Havana", "Africa/Cairo"]
)
@pytest.mark.parametrize(
    ("text", "minutes"),
    [("* * * * *", 1), ("*/15 * * * *", 15), ("0 * * * *", 60), ("17 * * * *", 60), ("0,30 * * * *", 30)],
)
def test_short_intervals_follow_real_time(timezone: str, text: str, minutes: int) -> None:
    rule = parse(cron=text, timezone=timezone)
    for change in offset_changes(timezone, *(TEN_YEARS if LONG else ONE_YEAR))[:6]:
        at = next_after(rule, change.at - DAY / 8)
        while at is not None and at < change.at + DAY / 8:
            following = next_after(rule, at)
            assert following == at + minutes * MINUTE
            at = following


@pytest.mark.parametrize("text", ["*/30 * * * *", "*/10 * * * *", "*/5 * * * *"])
def test_minutes_follow_real_time_when_the_clock_moves_half_an_hour(text: str) -> None:
    rule = parse(cron=text, timezone="Australia/Lord_Howe")
    step = timedelta(minutes=int(text[2 : text.index(" ")]))
    for change in offset_changes("Australia/Lord_Howe", *(TEN_YEARS if LONG else ONE_YEAR)):
        fires = list(walk(rule, change.at - DAY / 8, change.at + DAY / 8))
        assert {b - a for a, b in pairwise(fires)} == {step}


# --- against an oracle that lives through every minute ----------------------------------------------

TEXTS = """
30 2 * * *|0 0 * * *|15 1 * * *|0,20,40 1-3 * * *|*/20 1-3 * * *|*/20 * * * *|45 * * * *|10 */3 * * *
* 2 * * *|59 23 * * *|30 0 * * SUN|5 2 8-14 3 *|0 1,2,3 * * *
"""
ZONES = """
America/New_York Europe/Berlin Australia/Lord_Howe America/Havana Asia/Beirut America/Nuuk Africa/Casablanca
Africa/Cairo America/Asuncion America/Santiago Asia/Tehran Asia/Pyongyang America/Caracas Pacific/Apia
Europe/Volgograd Antarctica/Troll Asia/Kathmandu America/St_Johns
"""


def lived_fires(text: str, where: ZoneInfo, first: datetime, last: datetime) -> list[datetime]:
    """The promise in plain words, minute by minute, without any search in the zone."""
    minute, hour = text.split()[:2]
    every_minute, every_hour = minute.startswith("*"), hour == "*"
    asked = {wall.replace(tzinfo=None) for wall in walk(parse(cron=text), first - 3 * DAY, last + 3 * DAY)}
    found, at, before = [], first, (first - MINUTE).astimezone(where)
    while at < last:
        now = at.astimezone(where)
        wall, expected = now.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0) + MINUTE
        jump = wall - expected
        whole = not change_size(wall, where) % timedelta(hours=1)
        fires = wall in asked and (not now.fold or every_minute or (every_hour and whole))
        if jump > timedelta() and not (every_hour and (every_minute or not jump % timedelta(hours=1))):
            lost = {expected + i * MINUTE for i in range(jump // MINUTE)}
            fires = fires or (jump < DAY and bool(lost & asked))
        if fires:
            found.append(at)
        at, before = at + MINUTE, now
    return found


def change_size(wall: datetime, where: ZoneInfo) -> timedelta:
    offsets = [wall.replace(tzinfo=where, fold=fold).utcoffset() or timedelta() for fold in (0, 1)]
    return abs(offsets[0] - offsets[1])


@pytest.mark.parametrize("timezone", ZONES.split() if LONG else ["Australia/Lord_Howe"])
def test_the_search_agrees_with_living_through_every_minute(timezone: str) -> None:
    where, since = ZoneInfo(timezone), datetime(2007 if LONG else 2029, 1, 1, tzinfo=UTC)
    found = offset_changes(timezone, since, TEN_YEARS[1])
    last_ones = [next((one for one in reversed(found) if one.is_gap is gap), None) for gap in (True, False)]
    for change in filter(None, last_ones):
        for text in TEXTS.strip().replace("\n", "|").split("|")[:: 1 if LONG else 4]:
            first, last = change.at - timedelta(hours=4), change.at + timedelta(hours=4)
            rule = parse(cron=text, timezone=timezone)
            lived = lived_fires(text, where, first, last)
            assert list(walk(rule, first - MINUTE, last)) == lived, (text, change)


# --- every zone -------------------------------------------------------------------------------------


def walk(rule: ScheduleRule, after: datetime, before: datetime) -> Iterator[datetime]:
    at = next_after(rule, after)
    while at is not None and at < before:
        yield at
        at = next_after(rule, at)


@cache
def offset_changes(timezone: str, first: datetime, last: datetime) -> list[OffsetChange]:
    """Every change of offset, found by looking at each day."""
    where = ZoneInfo(timezone)
    days = [first + i * DAY for i in range((last - first).days + 1)]
    offsets = [(day, where.fromutc(day.replace(tzinfo=where)).utcoffset()) for day in days]
    found = (change_between(a, b, where) for (a, before), (b, after) in pairwise(offsets) if before != after)
    return [change for change in found if change is not None]


def assert_once_per_date(rule: ScheduleRule, at_time: time, first: date, last: date) -> None:
    """Exactly one run for each local date that exists, at its time or at the end of the gap that took it."""
    where = zone(rule.timezone)
    expected = []
    for i in range((last - first).days + 1):
        wall = datetime.combine(first + i * DAY, at_time)
        change = change_at(wall, where)
        if change is None or not change.is_gap:
            expected.append(wall.replace(tzinfo=where, fold=0).astimezone(UTC))
        elif not change.swallows(wall.date()):
            expected.append(change.at)
    assert list(walk(rule, expected[0] - MINUTE, expected[-1] + MINUTE)) == expected
    assert len(set(expected)) == len(expected)
    for fire in expected:
        match = match_after(rule, fire - MINUTE / 60)
        assert match is not None
        local = wall_of(fire, where)
        assert local.date() == match.wall.date() or local.time() <= time(0, 30), (
            "served late only across midnight"
        )


def daily(timezone: str, at_time: time) -> ScheduleRule:
    return parse(cron=f"{at_time.minute} {at_time.hour} * * *", timezone=timezone)


def critical_times(change: OffsetChange) -> set[time]:
    middle = change.lower + (change.upper - change.lower) / 2
    edges = (change.lower, middle, change.upper - MINUTE, change.upper)
    return {edge.time().replace(second=0, microsecond=0) for edge in edges} | {time(0, 0)}


def test_a_daily_job_runs_once_per_date_around_every_change_of_a_zone() -> None:
    zones, years = (all_zones(), TEN_YEARS) if LONG else (A_FEW, ONE_YEAR)
    histories = {tuple(offset_changes(name, *years)): name for name in zones}
    assert len(histories) > (40 if LONG else 2)
    for changes, timezone in histories.items():  # zones with the same changes behave the same
        for change in changes:
            day = change.lower.date()
            for at_time in critical_times(change):
                assert_once_per_date(daily(timezone, at_time), at_time, day - DAY, day + DAY)


def all_zones() -> list[str]:
    return sorted(available_timezones() - OF_THE_MACHINE)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("at_time", [time(0, 0), time(2, 30), time(23, 30)], ids=str)
def test_a_daily_job_runs_once_per_date_for_years(at_time: time) -> None:
    zones, (first, last) = (all_zones(), TEN_YEARS) if LONG else (A_FEW[1:2], ONE_YEAR)
    for timezone in zones:
        assert_once_per_date(daily(timezone, at_time), at_time, first.date(), last.date())
