"""The rules of tenants: what may be set, the periods of budgets, and what a quota refuses."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota import OptionError, QuotaExceeded
from rota.core.jobs.periods import period_begins, period_ends
from rota.core.tenants import (
    PERIODS,
    Wanted,
    budget_text,
    changed,
    check_quota,
    governed,
    is_further,
    level,
    read_budget,
    spending_rows,
)
from rota.model import NewJob, TenantRule, TenantUse

ACME = TenantRule(name="acme")
TIMES = st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def test_a_budget_is_read_as_cents_and_period() -> None:
    assert read_budget("budget", "50.00/day") == (5000.0, "day")
    assert read_budget("budget", "0.5/hour") == (50.0, "hour")
    assert read_budget("budget", " 7 / month ") == (700.0, "month")


@given(st.integers(1, 10**12), st.sampled_from(PERIODS))
def test_a_budget_written_out_is_read_back(cents: int, period: str) -> None:
    rule = changed(ACME, {"budget": f"{cents // 100}.{cents % 100:02}/{period}"})
    assert (rule.budget, rule.period) == (float(cents), period)
    assert changed(ACME, {"budget": budget_text(rule)}) == rule


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budget": "50.00"}, ("budget='50.00'", "has no period", "'50.00/day'")),
        ({"budget": 5000}, ("budget=5000", "has no period")),
        ({"budget": "50.00/year"}, ("budget='50.00/year'", "hour, day, week or month")),
        ({"budget": "-5/day"}, ("budget='-5/day'", "is not a budget")),
        ({"budget": "0.00/day"}, ("budget='0.00/day'", "pause the tenant instead")),
        ({"budget": "1.005/day"}, ("budget='1.005/day'", "is not a budget")),
        ({"budget": "999999999999/day"}, ("out of range",)),
        ({"weight": 0}, ("weight=0", "above 0", "pause it")),
        ({"weight": -1.0}, ("weight=-1.0",)),
        ({"weight": float("nan")}, ("weight=nan",)),
        ({"weight": float("inf")}, ("weight=inf",)),
        ({"weight": True}, ("weight=True",)),
        ({"max_priority": 2**31}, ("max_priority=", "whole number")),
        ({"waiting": -1}, ("waiting=-1", "None for no quota")),
        ({"schedules": 1.5}, ("schedules=1.5",)),
        ({"bytes_per_day": "1M"}, ("bytes_per_day='1M'",)),
        ({"budget": "5/day", "budget_alert": 0}, ("budget_alert=0", "above 0 and up to 1")),
        ({"budget": "5/day", "budget_alert": 1.01}, ("budget_alert=1.01",)),
        ({"budget_alert": 0.8}, ("budget_alert=0.8", "belongs to a budget")),
        ({"retention_days": 0}, ("retention_days=0",)),
        ({"wieght": 3}, ("'wieght'", "did you mean weight?")),
        ({}, ("nothing to change",)),
    ],
)
def test_a_value_out_of_range_names_field_value_and_remedy(given: dict, words: tuple[str, ...]) -> None:
    with pytest.raises(OptionError) as error:
        changed(ACME, given)
    for word in words:
        assert word in str(error.value)


def test_only_the_given_fields_change_and_none_clears_one() -> None:
    rule = changed(ACME, {"weight": 3, "waiting": 10, "budget": "5/day", "budget_alert": 0.5})
    assert rule == TenantRule(
        name="acme", weight=3.0, waiting=10, budget=500.0, period="day", budget_alert=0.5
    )
    assert changed(rule, {"waiting": None}).waiting is None
    assert changed(rule, {"waiting": 0}).waiting == 0
    assert changed(rule, {"weight": None, "waiting": None, "budget": None}).is_empty


@given(TIMES, st.sampled_from(PERIODS))
def test_periods_follow_each_other_without_gaps(now: datetime, period: str) -> None:
    start, end = period_begins(period, now), period_ends(period, now)
    assert start <= now < end
    assert period_begins(period, end) == end
    assert period_begins(period, start) == start
    assert period_ends(period, end - timedelta(microseconds=1)) == end
    assert period != "week" or start.weekday() == 0


@given(TIMES, st.sampled_from(PERIODS))
def test_the_rows_of_a_period_begin_with_it(now: datetime, period: str) -> None:
    unit, since = spending_rows(period, now)
    assert since == period_begins(period, now)
    assert unit == ("day" if period == "week" else period)


def test_without_a_period_spending_is_of_today() -> None:
    assert spending_rows(None, datetime(2026, 3, 4, 5, tzinfo=UTC)) == (
        "day",
        datetime(2026, 3, 4, tzinfo=UTC),
    )


def test_a_budget_has_an_alert_and_an_end() -> None:
    rule = changed(ACME, {"budget": "1.00/day", "budget_alert": 0.8})
    assert [level(rule, spent) for spent in (0, 79.9, 80, 99.9, 100, 300)] == [
        None, None, "alert", "alert", "reached", "reached",
    ]  # fmt: skip
    assert level(changed(ACME, {"budget": "1.00/day"}), 99.9) is None
    assert level(ACME, 1e9) is None
    assert is_further("alert", None)
    assert is_further("reached", "alert")
    assert not is_further("alert", "reached")
    assert not is_further("alert", "alert")


def test_a_job_is_stored_within_its_tenants_priority_and_retention() -> None:
    job = NewJob(id="x", task="t", tenant="acme", priority=9)
    rule = changed(ACME, {"max_priority": 5, "retention_days": 2})
    assert governed(job, None) is job
    assert governed(job, ACME) is job
    assert (governed(job, rule).priority, governed(job, rule).keep) == (5, 172_800.0)
    own = NewJob(id="x", task="t", tenant="acme", priority=-9, keep=60.0)
    assert governed(own, rule) == own


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_a_quota_admits_exactly_what_fits(most: int, used: int, more: int) -> None:
    rule, use = TenantRule(name="acme", waiting=most), TenantUse(name="acme", waiting=used)
    if used + more <= most or more == 0:
        check_quota(rule, use, Wanted(jobs=more))
    else:
        with pytest.raises(QuotaExceeded) as error:
            check_quota(rule, use, Wanted(jobs=more))
        assert (error.value.tenant, error.value.quota) == ("acme", "waiting")


def test_a_refusal_names_tenant_quota_use_and_remedy() -> None:
    rule, use = TenantRule(name="acme", bytes_per_day=1000), TenantUse(name="acme", bytes_today=900)
    check_quota(rule, use, Wanted(jobs=5, bytes=100))
    with pytest.raises(QuotaExceeded) as error:
        check_quota(rule, use, Wanted(jobs=1, bytes=101))
    assert str(error.value) == (
        "tenant 'acme' may have 1,000 bytes of payloads a day, has 900, and this would add 101: "
        "wait until midnight UTC, or raise its quota 'bytes_per_day'"
    )
