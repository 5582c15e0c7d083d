"""Walking fire times: the same times as asking for one after another."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.calendars import Calendar, OpenDays, apply, runs
from rota.core.schedules.rules import ScheduleRule, next_after, parse
from rota.core.schedules.walk import fires
from rota.core.schedules.zones import steady_offset, zone
from rota.model import CalendarMode

DAY = timedelta(days=1)
ZONES = [
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Nuuk", "America/Havana",
    "Africa/Casablanca", "Asia/Tehran", "Asia/Beirut", "America/Santiago", "Pacific/Apia",
]  # fmt: skip
CRONS = [
    "* * * * * *", "* * * * *", "0 * * * *", "*/7 1-3 * * *", "30 2 * * *", "15 0,23 * * *", "0 9 L * *",
    "30 2,20 * * FRI-MON", "5 1,2,3 * 3,10,11 SUN", "@yearly",
]  # fmt: skip
instants = st.datetimes(datetime(2011, 12, 1), datetime(2032, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))


@st.composite
def rules(draw: st.DrawFn) -> ScheduleRule:
    where = draw(st.sampled_from(ZONES))
    start = draw(st.none() | instants)
    until = draw(st.none() | instants.map(lambda at: at + 30 * 366 * DAY))
    if draw(st.integers(0, 3)):
        return parse(cron=draw(st.sampled_from(CRONS)), timezone=where, start_at=start, until=until)
    every = draw(st.sampled_from([61.0, 1800.5, 7 * 3600.0, 86400.0, 3 * 86400.0 + 17]))
    return parse(every=every, timezone=where, start_at=start, until=until)


def one_by_one(rule: ScheduleRule, after: datetime, count: int) -> list[datetime]:
    found: list[datetime] = []
    while len(found) < count and (at := next_after(rule, found[-1] if found else after)) is not None:
        found.append(at)
    return found


@examples(500, quick=40)
@given(rules(), instants)
def test_the_walk_gives_what_one_question_after_another_gives(rule: ScheduleRule, after: datetime) -> None:
    assert list(islice(fires(rule, after), 100)) == one_by_one(rule, after, 100)


def test_the_walk_includes_a_fire_at_the_very_end() -> None:
    start = datetime(2030, 1, 1, tzinfo=UTC)
    rule = parse(every=3600.0, start_at=start, until=start + timedelta(hours=2))
    walked = list(fires(rule, start - DAY))
    assert walked == one_by_one(rule, start - DAY, 9)
    assert walked[-1] == start + timedelta(hours=2)


@pytest.mark.parametrize("where", ZONES)
@pytest.mark.parametrize("cron", ["*/20 * * * *", "30 0,1,2,3,23 * * *"])
@pytest.mark.parametrize("month", [3, 4, 9, 10, 11])
def test_the_walk_agrees_through_the_months_in_which_clocks_change(where: str, cron: str, month: int) -> None:
    rule, after = parse(cron=cron, timezone=where), datetime(2022, month, 1, tzinfo=UTC)
    count = 31 * 24 * 3 if cron.startswith("*") else 31 * 5
    assert list(islice(fires(rule, after), count)) == one_by_one(rule, after, count)


def test_an_offset_is_steady_on_a_day_without_a_change() -> None:
    berlin, apia = zone("Europe/Berlin"), zone("Pacific/Apia")
    assert steady_offset(date(2026, 3, 28), berlin) == timedelta(hours=1)
    assert steady_offset(date(2026, 3, 29), berlin) is None
    assert steady_offset(date(2026, 3, 30), berlin) == timedelta(hours=2)
    assert steady_offset(date(2011, 12, 30), apia) is None  # a day that Apia never had


def applied(
    rule: ScheduleRule, calendar: Calendar, mode: CalendarMode, first: date, days: int
) -> set[datetime]:
    """What each fire of these days becomes, one by one: the definition."""
    found, end = set(), datetime(first.year, first.month, first.day, tzinfo=UTC) + days * DAY
    at = next_after(rule, end - days * DAY)
    while at is not None and at < end:
        found.add(apply(calendar, mode, rule, at))
        at = next_after(rule, at)
    return {at for at in found if at is not None}


@examples(150, quick=12)
@given(
    st.sampled_from([
        parse(cron="0 8 * * *", timezone="Europe/Berlin"),
        parse(cron="30 2,20 * * 1-5", timezone="America/New_York"),
        parse(cron="0 9 L * *", timezone="Pacific/Apia"),
        parse(every=86400.0 * 2 + 61, timezone="Australia/Lord_Howe"),
        parse(at="2026-05-05T00:30:00Z", timezone="America/Nuuk"),
        parse(cron="0 8,9 * * *", start_at="2026-07-07T07:30:00Z", until="2026-11-20T00:00:00Z"),
    ]),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 120)), max_size=5),
    st.sampled_from([frozenset({5, 6}), frozenset(), frozenset({4})]),
    st.sampled_from(["skip", "next_working_day"]),
    st.integers(0, 400),
)  # fmt: skip
def test_long_closures_change_no_run(
    rule: ScheduleRule,
    stretches: list[tuple[int, int]],
    weekend: frozenset[int],
    mode: CalendarMode,
    start: int,
) -> None:
    first, dates = date(2026, 1, 1), set()
    day = first
    for opened, closed in stretches:
        day += opened * DAY
        dates |= {day + i * DAY for i in range(closed)}
        day += closed * DAY
    calendar = Calendar(name="x", dates=frozenset(dates), weekend=weekend)
    after = datetime(2026, 1, 1, tzinfo=UTC) + start * DAY
    expected = sorted(at for at in applied(rule, calendar, mode, first - 10 * DAY, 900) if at > after)[:50]
    days = OpenDays(calendar, zone(rule.timezone))
    last = datetime(2028, 1, 1, tzinfo=UTC)
    found = list(islice(runs(rule, days, mode, after), 50))
    assert [at for at in found if at < last] == [at for at in expected if at < last]


class CountedDates(frozenset[date]):
    """Dates that count how often they are looked at."""

    looks = 0

    def __contains__(self, day: object) -> bool:
        CountedDates.looks += 1
        return super().__contains__(day)


@pytest.mark.parametrize("mode", ["skip", "next_working_day"])
@pytest.mark.parametrize("text", ["* * * * *", "0 8 * * *"])
def test_a_closed_stretch_is_looked_at_a_few_times_and_not_for_each_fire(
    text: str, mode: CalendarMode
) -> None:
    first, dates = date(2026, 1, 1), set()
    for stretch in range(3):
        dates |= {first + (stretch * 361 + i) * DAY for i in range(360)}
    closed = Calendar(name="x", dates=CountedDates(dates), weekend=frozenset())
    after, rule = datetime(2026, 1, 1, tzinfo=UTC), parse(cron=text, timezone="Europe/Berlin")
    CountedDates.looks = 0
    found = list(islice(runs(rule, OpenDays(closed, zone(rule.timezone)), mode, after), 500))
    assert len(found) == 500
    assert CountedDates.looks < 4 * len(dates) + 2 * 500
