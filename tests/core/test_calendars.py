"""Calendars: which fires are left out, and where the others move."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.calendars import Calendar, apply, next_allowed
from rota.core.schedules.rules import ScheduleRule, next_after, parse
from rota.errors import InvalidSchedule
from rota.model import CalendarMode

DAY = timedelta(days=1)
CHRISTMAS = Calendar(name="de", dates=frozenset({date(2026, 12, 25), date(2026, 12, 26), date(2027, 1, 1)}))


def local_runs(
    rule: ScheduleRule, calendar: Calendar, mode: CalendarMode, first: datetime, n: int
) -> list[str]:
    found, at = [], first
    while len(found) < n and (following := next_allowed(rule, calendar, mode, at)) is not None:
        found.append(f"{following.astimezone(UTC):%m-%d %H:%M}")
        at = following
    return found


def test_skip_leaves_out_excluded_dates_and_keeps_weekends() -> None:
    rule = parse(cron="0 8 * * *")
    start = datetime(2026, 12, 24, 0, tzinfo=UTC)
    assert local_runs(rule, CHRISTMAS, "skip", start, 3) == ["12-24 08:00", "12-27 08:00", "12-28 08:00"]


def test_the_date_is_that_of_the_rules_zone() -> None:
    rule = parse(cron="0 8 * * *", timezone="Pacific/Auckland")  # 19:00 UTC the day before
    assert apply(CHRISTMAS, "skip", rule, datetime(2026, 12, 24, 19, tzinfo=UTC)) is None
    assert apply(CHRISTMAS, "skip", rule, datetime(2026, 12, 26, 19, tzinfo=UTC)) is not None


def test_the_next_working_day_is_neither_excluded_nor_a_weekend() -> None:
    rule = parse(cron="0 8 25 * *", timezone="Europe/Berlin")
    fire = datetime(2026, 12, 25, 7, tzinfo=UTC)  # a Friday; Saturday is excluded, Sunday a weekend
    assert apply(CHRISTMAS, "next_working_day", rule, fire) == datetime(2026, 12, 28, 7, tzinfo=UTC)
    every_day = msgspec.structs.replace(CHRISTMAS, weekend=frozenset())
    assert apply(every_day, "next_working_day", rule, fire) == datetime(2026, 12, 27, 7, tzinfo=UTC)


def test_a_working_day_is_left_alone() -> None:
    fire = datetime(2026, 12, 24, 7, tzinfo=UTC)
    assert apply(CHRISTMAS, "next_working_day", parse(cron="0 7 * * *"), fire) == fire


def test_fires_that_move_to_the_same_time_are_one() -> None:
    rule = parse(cron="0 8 * * *")
    start = datetime(2026, 12, 24, tzinfo=UTC)
    assert local_runs(rule, CHRISTMAS, "next_working_day", start, 3) == [
        "12-24 08:00",
        "12-28 08:00",
        "12-29 08:00",
    ]


def test_fires_of_several_closed_days_run_in_the_order_of_their_local_times() -> None:
    rule = parse(cron="0 20 25 12 *")
    early = Calendar(name="x", dates=frozenset({date(2026, 12, 25)}))
    twice = parse(cron="0 8,20 25-27 12 *")
    start = datetime(2026, 12, 24, 23, tzinfo=UTC)
    assert local_runs(twice, early, "next_working_day", start, 2) == ["12-28 08:00", "12-28 20:00"]
    assert local_runs(rule, early, "next_working_day", start, 1) == ["12-28 20:00"]


def test_a_move_into_a_gap_runs_just_after_it() -> None:
    rule = parse(cron="30 2 * * SAT", timezone="America/New_York")
    sunday_work = Calendar(name="x", dates=frozenset({date(2026, 3, 7)}), weekend=frozenset())
    fire = datetime(2026, 3, 7, 7, 30, tzinfo=UTC)
    assert apply(sunday_work, "next_working_day", rule, fire) == datetime(2026, 3, 8, 7, 0, tzinfo=UTC)


def test_a_move_passes_over_a_date_that_never_was() -> None:
    rule = parse(cron="0 8 29 12 *", timezone="Pacific/Apia")
    calendar = Calendar(name="x", dates=frozenset({date(2011, 12, 29)}), weekend=frozenset())
    fire = next_after(rule, datetime(2011, 12, 1, tzinfo=UTC))
    assert fire is not None
    assert apply(calendar, "next_working_day", rule, fire) == datetime(
        2011, 12, 30, 18, tzinfo=UTC
    )  # the 31st there


def test_a_move_does_not_go_past_the_end() -> None:
    rule = parse(cron="0 8 * * *", until="2026-12-26T00:00:00Z")
    assert next_allowed(rule, CHRISTMAS, "next_working_day", datetime(2026, 12, 24, 12, tzinfo=UTC)) is None


@pytest.mark.parametrize("mode", ["skip", "next_working_day"])
@pytest.mark.parametrize("text", ["* * * * * *", "0 8 * * *", "@yearly"])
def test_a_calendar_that_excludes_everything_gives_up(mode: CalendarMode, text: str) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    never = Calendar(name="never", dates=frozenset(start.date() + i * DAY for i in range(-3000, 3000)))
    began = time.process_time()
    assert next_allowed(parse(cron=text, timezone="Europe/Berlin"), never, mode, start) is None
    assert time.process_time() - began < 2


def test_without_a_calendar_every_fire_is_allowed() -> None:
    rule, now = parse(cron="0 8 * * *"), datetime(2026, 12, 25, tzinfo=UTC)
    assert next_allowed(rule, None, "skip", now) == next_after(rule, now)


@pytest.mark.parametrize("call", [apply, lambda c, m, r, i: next_allowed(r, c, m, i)])
def test_an_unknown_mode_is_refused(call: object) -> None:
    with pytest.raises(InvalidSchedule, match="must be skip or next_working_day"):
        call(CHRISTMAS, "never", parse(every=60), datetime(2026, 1, 1, tzinfo=UTC))  # type: ignore[operator]


def test_a_calendar_is_data() -> None:
    assert msgspec.json.decode(msgspec.json.encode(CHRISTMAS), type=Calendar) == CHRISTMAS


START = datetime(2026, 10, 1, tzinfo=UTC)
RULES = [
    parse(cron="0 8 * * *", timezone="Europe/Berlin"),
    parse(cron="30 2,20 * * *", timezone="America/New_York"),
    parse(cron="15 */5 * * FRI-MON", timezone="Australia/Lord_Howe"),
    parse(every="7h", start_at=START, timezone="America/Nuuk"),
    parse(cron="0 9 L * *"),
]


@examples(60, quick=4)
@given(
    st.sampled_from(RULES),
    st.frozensets(st.integers(0, 70).map(lambda n: START.date() + n * DAY), max_size=30),
    st.sampled_from([frozenset({5, 6}), frozenset(), frozenset({4})]),
    st.sampled_from(["skip", "next_working_day"]),
)
def test_the_next_allowed_times_are_the_applied_fires_in_order(
    rule: ScheduleRule, dates: frozenset[date], weekend: frozenset[int], mode: CalendarMode
) -> None:
    calendar = Calendar(name="x", dates=dates, weekend=weekend)
    last = START + 60 * DAY
    moved, at = set(), next_after(rule, START - 40 * DAY)
    while at is not None and at < last + 30 * DAY:
        moved.add(apply(calendar, mode, rule, at))
        at = next_after(rule, at)
    expected = sorted(m for m in moved if m is not None and START < m <= last)
    found, now = [], next_allowed(rule, calendar, mode, START)
    while now is not None and now <= last:
        found.append(now)
        now = next_allowed(rule, calendar, mode, now)
    assert found == expected
    assert all(a < b for a, b in pairwise(found))
