"""Rules: what is refused and why, intervals that never drift, and spread."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.schedules.rules import EPOCH, ScheduleRule, next_after, parse, spread
from rota.errors import InvalidSchedule

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
instants = st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
periods = st.integers(1_000_000, 10**13).map(lambda us: us / 1e6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "exactly one of cron, every and at; none was given"),
        ({"cron": "* * * * *", "every": 60}, "cron and every were given: keep one"),
        ({"every": 60, "at": NOON}, "every and at were given"),
        ({"every": 0.5}, "every=0.5: is out of range; choose a duration from 1 s to 3653 d"),
        ({"every": 0}, "every=0: is out of range"),
        ({"every": -60}, "every=-60: is out of range"),
        ({"every": "11y"}, "every='11y': is not a duration; give seconds or text such as '15m'"),
        ({"every": "600w"}, "every='600w': is out of range"),
        ({"every": float("nan")}, "every=nan: is not a duration"),
        ({"every": float("inf")}, "every=inf: is not a duration"),
        ({"every": 10**5000}, "every=1000000000000000.0: is out of range"),
        ({"every": -(10**400)}, "every=-1000000000000000.0: is out of range"),
        ({"every": True}, "every=True: is not a duration"),
        ({"every": ""}, "every='': is not a duration"),
        ({"every": "5m" * 5000}, "every='5m5m"),
        ({"every": "30m1h"}, "every='30m1h': is not a duration"),
        ({"every": []}, r"every=\[\]: is not a duration"),
        ({"at": datetime(2030, 1, 1)}, "at=2030-01-01 00:00:00: has no time zone; add one"),
        ({"at": "2030-01-01T00:00:00"}, "at=2030-01-01T00:00:00: has no time zone"),
        ({"at": "tomorrow"}, "at='tomorrow': is not a date and time; use 2030"),
        ({"at": date(2030, 1, 1)}, "is not a date and time"),
        (
            {"at": datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))},
            "the year must be from 1901 to 2999",
        ),
        ({"every": 60, "start_at": datetime(2030, 1, 1)}, "start_at=2030-01-01 00:00:00: has no time zone"),
        ({"every": 60, "until": "2030-01-01"}, "until=2030-01-01: has no time zone"),
        ({"cron": "* * * * *", "timezone": "America/New_Yrok"}, "did you mean America/New_York?"),
        ({"cron": "* * * * *", "timezone": "berlin"}, "timezone='berlin': .*did you mean Europe/Berlin?"),
        ({"cron": "* * * * *", "timezone": "america/new_york"}, "did you mean America/New_York?"),
        ({"cron": "* * * * *", "timezone": "localtime"}, "differs from machine to machine"),
        ({"cron": "* * * * *", "timezone": "America"}, "there is no such time zone"),
        ({"cron": "* * * * *", "timezone": "../../etc/passwd"}, "there is no such time zone"),
        ({"cron": "* * * * *", "timezone": "x\0y"}, "there is no such time zone"),
        ({"cron": "* * * * *", "timezone": ""}, "must be the IANA name"),
        ({"cron": "* * * * *", "timezone": "x" * 10_000}, "must be the IANA name"),
        ({"cron": "* * * * *", "timezone": 7}, "must be the IANA name"),
        ({"every": 60, "jitter": -1}, "jitter=-1: is out of range; choose a duration from 0 s to 1 d"),
        ({"every": 60, "jitter": "2d"}, "jitter='2d': is out of range"),
        (
            {"every": 60, "start_at": "2030-01-02T00:00:00Z", "until": "2030-01-01T00:00:00Z"},
            "until=2030-01-01T00:00:00.*: is before start_at=2030-01-02",
        ),
        (
            {"cron": "@daily", "start_at": "2030-01-01T01:00:00Z", "until": "2030-01-01T02:00:00Z"},
            "cron=@daily: never fires between start_at and until",
        ),
        ({"at": "2030-01-01T00:00:00Z", "until": "2029-01-01T00:00:00Z"}, "never fires between"),
    ],
)
def test_a_wrong_rule_is_refused_at_once_with_its_reason(given: dict[str, Any], message: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidSchedule, match=message):
        parse(**given)
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("15m", 900), ("1h30m", 5400), ("2d", 172800), ("90s", 90), ("1w", 604800), ("1h 30m", 5400),
        ("1W2D3H4M5S", 788645), ("90", 90), ("1.5", 1.5), (60, 60), (1.25, 1.25), (timedelta(hours=1), 3600),
    ],
)  # fmt: skip
def test_an_interval_is_seconds_or_a_text(text: Any, seconds: float) -> None:
    assert parse(every=text).every == seconds


def test_an_interval_counts_from_its_start() -> None:
    rule = parse(every="15m", start_at="2026-06-01T12:07:00Z")
    assert next_after(rule, datetime(2020, 1, 1, tzinfo=UTC)) == NOON + timedelta(minutes=7)
    assert next_after(rule, NOON + timedelta(minutes=7)) == NOON + timedelta(minutes=22)


def test_an_interval_without_a_start_counts_from_when_it_was_made() -> None:
    rule = parse(every=60, anchor_at=NOON + timedelta(seconds=7))
    assert next_after(rule, NOON + timedelta(seconds=7)) == NOON + timedelta(seconds=67)


def test_an_interval_without_any_anchor_falls_on_round_times() -> None:
    assert next_after(parse(every="15m"), NOON + timedelta(minutes=1)) == NOON + timedelta(minutes=15)


@examples()
@given(periods, instants, instants)
def test_an_interval_never_drifts(every: float, start: datetime, after: datetime) -> None:
    rule = parse(every=every, start_at=start)
    fire = next_after(rule, after)
    assert fire is not None and fire > after and fire >= start
    period = timedelta(seconds=every)
    assert (fire - start) % period == timedelta()
    assert fire == start or fire - period <= after


def test_one_instant_fires_once() -> None:
    rule = parse(at="2026-06-01T14:00:00+02:00")
    assert rule.at == NOON
    assert next_after(rule, NOON - timedelta(microseconds=1)) == NOON
    assert next_after(rule, NOON) is None


def test_start_and_end_are_both_included() -> None:
    rule = parse(cron="0 * * * *", start_at=NOON, until=NOON + timedelta(hours=2))
    fires = []
    after: datetime | None = datetime(2000, 1, 1, tzinfo=UTC)
    while after is not None and (after := next_after(rule, after)):
        fires.append(after.hour)
    assert fires == [12, 13, 14]


def test_fire_times_come_in_utc_whatever_comes_in() -> None:
    rule = parse(cron="0 8 * * *", timezone="Asia/Tokyo")
    fire = next_after(rule, datetime(2026, 6, 1, 12, tzinfo=timezone(timedelta(hours=-7))))
    assert fire == datetime(2026, 6, 1, 23, tzinfo=UTC)
    assert fire is not None and fire.tzinfo is UTC


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="has no time zone"):
        next_after(parse(every=60), datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "rule", [parse(every=60), parse(cron="* * * * *"), parse(cron="@yearly", timezone="Asia/Tokyo")]
)
def test_the_ends_of_time_do_no_harm(rule: ScheduleRule) -> None:
    assert next_after(rule, datetime.max.replace(tzinfo=UTC)) is None
    assert next_after(rule, datetime.min.replace(tzinfo=UTC)) is not None
    assert next_after(rule, datetime(2999, 12, 31, 23, 59, 59, tzinfo=UTC)) in (
        None,
        datetime(3000, 1, 1, tzinfo=UTC),
    )


def test_a_rule_is_a_value() -> None:
    rule = parse(cron="0 8 * * MON", timezone="Europe/Berlin", jitter=30, start_at=NOON)
    assert rule == parse(cron="0 8 * * MON", timezone="Europe/Berlin", jitter="30s", start_at=NOON)
    assert hash(rule) == hash(msgspec.structs.replace(rule))
    assert msgspec.json.decode(msgspec.json.encode(rule), type=ScheduleRule) == rule


@examples()
@given(st.text(max_size=50), st.floats(0, 86400))
def test_spread_is_stable_and_within_the_jitter(key: str, jitter: float) -> None:
    assert timedelta() <= spread(jitter, key) <= timedelta(seconds=jitter)
    assert spread(jitter, key) == spread(jitter, key)


def test_spread_is_even() -> None:
    minutes = [0] * 10
    for n in range(10_000):
        minutes[int(spread(100, f"schedule-{n}") // timedelta(seconds=10))] += 1
    assert min(minutes) > 850 and max(minutes) < 1150


def test_the_epoch_is_where_unanchored_intervals_count_from() -> None:
    assert next_after(parse(every="1d"), EPOCH) == EPOCH + timedelta(days=1)
