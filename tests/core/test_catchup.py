"""Missed fires: the policies as examples, their promises as properties, and years of downtime in seconds."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from effort import LONG, examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.calendars import Calendar
from rota.core.schedules.catchup import CatchUpPlan, fires
from rota.core.schedules.rules import ScheduleRule, next_after, parse
from rota.errors import InvalidSchedule
from rota.model import Missed

T0 = datetime(2026, 3, 2, tzinfo=UTC)  # a Monday
HOURLY = parse(cron="0 * * * *")
WEEKLY = parse(cron="0 6 * * MON")


def hour(n: float) -> datetime:
    return T0 + timedelta(hours=n)


def runs(found: CatchUpPlan) -> list[tuple[float, str]]:
    return [((at - T0) / timedelta(hours=1), origin) for at, origin in found.fire_at]


def times(rule: ScheduleRule, first: datetime, last: datetime) -> Iterator[datetime]:
    at = next_after(rule, first - timedelta(microseconds=1))
    while at is not None and at <= last:
        yield at
        at = next_after(rule, at)


# --- examples --------------------------------------------------------------------------------------


def test_a_fire_within_the_grace_is_on_time_under_every_policy() -> None:
    for policy in ("skip", "latest", "all"):
        found = fires(HOURLY, hour(1), hour(1) + timedelta(seconds=2), policy, grace=5)  # type: ignore[arg-type]
        assert (runs(found), found.next_run_at, found.dropped) == ([(1, "scheduler")], hour(2), 0)


def test_skip_runs_none_of_the_missed() -> None:
    found = fires(HOURLY, hour(1), hour(5.5), "skip", grace=5)
    assert (runs(found), found.next_run_at, found.dropped) == ([], hour(6), 5)


def test_skip_still_runs_the_one_that_is_on_time() -> None:
    found = fires(HOURLY, hour(1), hour(5), "skip", grace=5)
    assert (runs(found), found.next_run_at, found.dropped) == ([(5, "scheduler")], hour(6), 4)


def test_latest_runs_the_newest_missed_one() -> None:
    found = fires(HOURLY, hour(1), hour(5.5), "latest", grace=5)
    assert (runs(found), found.next_run_at, found.dropped) == ([(5, "catchup")], hour(6), 4)


def test_an_on_time_fire_takes_the_place_of_the_latest_missed() -> None:
    found = fires(HOURLY, hour(1), hour(5), "latest", grace=5)
    assert (runs(found), found.dropped) == ([(5, "scheduler")], 4)


def test_all_runs_the_missed_oldest_first() -> None:
    found = fires(HOURLY, hour(1), hour(4), "all", grace=5)
    assert runs(found) == [(1, "catchup"), (2, "catchup"), (3, "catchup"), (4, "scheduler")]
    assert found.dropped == 0


def test_all_keeps_the_newest_up_to_the_cap_and_counts_the_rest() -> None:
    found = fires(HOURLY, hour(1), hour(10.5), "all", cap=3)
    assert [at for at, _ in runs(found)] == [8, 9, 10]
    assert (found.dropped, found.counted, found.next_run_at) == (4, False, hour(11))  # at least four
    found = fires(parse(every="1h", start_at=T0), hour(1), hour(10.5), "all", cap=3)
    assert ([at for at, _ in runs(found)], found.dropped, found.counted) == ([8, 9, 10], 7, True)


@pytest.mark.parametrize(("policy", "expected"), [("all", [8, 9, 10]), ("latest", [10]), ("skip", [])])
def test_what_is_older_than_the_window_is_never_run(policy: Missed, expected: list[float]) -> None:
    assert [at for at, _ in runs(fires(HOURLY, hour(1), hour(10.5), policy, window=3 * 3600))] == expected
    assert runs(fires(WEEKLY, hour(6), hour(30), policy, window=3600)) == []


def test_a_schedule_that_is_not_due_is_left_alone() -> None:
    assert fires(HOURLY, hour(3), hour(2.5), "all") == CatchUpPlan(next_run_at=hour(3))


def test_a_schedule_without_a_next_time_gets_one_and_misses_nothing() -> None:
    assert fires(HOURLY, None, hour(2.5), "all") == CatchUpPlan(next_run_at=hour(3))


def test_a_next_time_that_the_edited_rule_does_not_know_does_not_fire() -> None:
    found = fires(HOURLY, hour(1.25), hour(1.5), "all")
    assert found == CatchUpPlan(next_run_at=hour(2))


def test_one_instant_that_was_missed_runs_once_and_ends() -> None:
    found = fires(parse(at=hour(1)), hour(1), hour(9), "latest")
    assert (runs(found), found.next_run_at) == ([(1, "catchup")], None)


def test_the_last_fire_before_the_end_still_runs() -> None:
    found = fires(parse(cron="0 * * * *", until=hour(2)), hour(1), hour(9), "all")
    assert ([at for at, _ in runs(found)], found.next_run_at) == ([1, 2], None)


def test_a_weekly_job_in_a_system_deployed_daily_runs_weekly() -> None:
    """A scheduler that is awake once a day, and never when the job is due."""
    next_run_at: datetime | None = next_after(WEEKLY, T0)
    ran = []
    for day in range(365):
        found = fires(WEEKLY, next_run_at, hour(24 * day + 13), "latest", grace=5)
        ran += [at for at, _ in found.fire_at]
        next_run_at = found.next_run_at
    assert ran == list(times(WEEKLY, T0, hour(24 * 364 + 13)))


@pytest.mark.parametrize("text", ["* * * * *", "* * * * * *", "*/5 9-17 * * MON-FRI"])
@pytest.mark.parametrize(("policy", "most"), [("skip", 0), ("latest", 1), ("all", 100)])
def test_two_weeks_of_downtime_do_not_flood(text: str, policy: Missed, most: int) -> None:
    rule = parse(cron=text, timezone="America/New_York")
    now = hour(15 * 24 + 20) + timedelta(seconds=0.5)
    began = time.process_time()
    found = fires(rule, next_after(rule, hour(10)), now, policy)
    assert time.process_time() - began < 1
    assert len(found.fire_at) == most
    newest = list(times(rule, now - timedelta(hours={"* * * * * *": 0.5, "* * * * *": 2}.get(text, 96)), now))
    assert [at for at, _ in found.fire_at] == newest[len(newest) - most :]
    assert found.dropped > 0 and not found.counted


def test_ten_years_of_seconds_are_decided_at_once() -> None:
    rule = parse(every=1, start_at=T0)
    began = time.process_time()
    found = fires(rule, T0, T0 + timedelta(days=3650), "all", cap=100)
    assert time.process_time() - began < 0.5
    assert (len(found.fire_at), found.dropped, found.counted) == (100, 3650 * 86400 + 1 - 100, True)


def test_a_calendar_is_respected() -> None:
    holiday = Calendar(name="h", dates=frozenset({date(2026, 3, 3)}))
    daily = parse(cron="0 6 * * *")
    found = fires(daily, hour(6), hour(72), "all", calendar=holiday, mode="skip")
    assert [at for at, _ in runs(found)] == [6, 54]
    found = fires(daily, hour(6), hour(60), "all", calendar=holiday, mode="next_working_day")
    assert [at for at, _ in runs(found)] == [6, 54]  # Tuesday's run falls together with Wednesday's


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"policy": "some"}, "missed='some': must be skip, latest or all"),
        ({"cap": 0}, "cap=0"),
        ({"cap": 10**6}, "cap=1000000"),
        ({"window": -1.0}, "window=-1.0"),
        ({"window": float("nan")}, "window=nan"),
        ({"grace": float("inf")}, "grace=inf"),
    ],
)
def test_a_wrong_policy_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSchedule, match=message):
        fires(HOURLY, T0, T0, **wrong)


# --- properties ------------------------------------------------------------------------------------

RULES = [
    parse(cron="*/7 * * * *", timezone="Europe/Berlin"),
    parse(cron="30 2 * * *", timezone="America/New_York"),
    parse(cron="0 9-17/2 * * MON-FRI", timezone="Australia/Lord_Howe"),
    parse(cron="15 0 L * *", timezone="Africa/Cairo"),
    parse(cron="*/20 * 5 * * 1", timezone="Africa/Casablanca"),
    parse(every="17m", start_at=T0),
    parse(every=1.7, anchor_at=T0),
    parse(every="5d", start_at=T0, until=T0 + timedelta(days=40)),
    parse(at=hour(50)),
]
spans = st.integers(0, 60 * 86400 * 10**6).map(lambda us: timedelta(microseconds=us))


@examples(300)
@given(
    st.sampled_from(RULES),
    spans,
    spans,
    st.sampled_from(["skip", "latest", "all"]),
    st.integers(1, 20),
    st.none() | st.floats(0, 10**6),
    st.floats(0, 3600),
)
def test_what_fires_promises(
    rule: ScheduleRule,
    start: timedelta,
    down: timedelta,
    policy: Missed,
    cap: int,
    window: float | None,
    grace: float,
) -> None:
    due = next_after(rule, T0 + start)
    if due is None:
        return
    now = due + down
    found = fires(rule, due, now, policy, cap, window, grace)
    ran = [at for at, _ in found.fire_at]
    assert found.next_run_at is None or found.next_run_at > now
    assert found.next_run_at == next_after(rule, now)
    assert all(a < b for a, b in pairwise(ran)) and len(ran) <= cap
    assert all(due <= at <= now and next_after(rule, at - timedelta(microseconds=1)) == at for at in ran)
    on_time = now - timedelta(seconds=grace)
    assert all((origin == "scheduler") is (at >= on_time) for at, origin in found.fire_at)
    assert fires(rule, found.next_run_at, now, policy, cap, window, grace).fire_at == ()
    if policy == "all" and window is None:  # nothing newer is left out for something older
        assert not ran or list(times(rule, ran[0], now)) == ran


YEARLONG = [
    rule for rule in RULES if rule.cron not in ("*/7 * * * *", "*/20 * 5 * * 1") and rule.every != 1.7
]


@examples(40, quick=2)
@given(st.sampled_from(YEARLONG), st.integers(0, 2**32))
def test_with_all_nothing_is_lost_or_doubled_through_years_of_downtime(rule: ScheduleRule, seed: int) -> None:
    chance = random.Random(seed)
    end = T0 + timedelta(days=60 if rule.every == 17 * 60 or not LONG else 1000)
    now, ran = T0, []
    due = first = next_after(rule, T0)
    while due is not None and now < end:
        now += timedelta(seconds=chance.choice((60, 3600, 86400, 10 * 86400)) * chance.random())
        found = fires(rule, due, now, "all", cap=10_000, grace=2)
        ran += [at for at, _ in found.fire_at]
        assert found.dropped == 0 and found.counted
        due = found.next_run_at
    assert first is not None and ran == list(times(rule, first, now))
