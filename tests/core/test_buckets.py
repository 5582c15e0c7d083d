"""Rates and budgets: what is left of them."""

from __future__ import annotations

from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.buckets import (
    bucket_level,
    bucket_units,
    budget_admits,
    fit,
    give_back,
    take,
    units_at,
)
from rota.core.jobs.limits import Bucket

buckets = st.builds(Bucket, st.integers(1, 50), st.integers(1, 20))
# what happens: after how long, how many units begin, and whether they are given back unused later
steps = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.booleans()), max_size=40)


@examples(500, quick=60)
@given(buckets, steps)
def test_no_window_has_more_units_than_the_bucket_allows(
    bucket: Bucket, steps: list[tuple[int, int, bool]]
) -> None:
    full = now = 0
    begun: list[tuple[int, int]] = []
    for pause, units, back in steps:
        now += pause
        if units > bucket_units(bucket, full, now):
            continue
        full = take(bucket, full, now, units)
        if back:
            now += pause
            full = give_back(bucket, full, now, units, now - pause)
        else:
            begun.append((now, units))
    for place, (start, _) in enumerate(begun):
        for end, _ in begun[place:]:
            inside = sum(units for at, units in begun[place:] if at <= end)
            assert inside <= bucket.burst + (end - start) / bucket.every_ns


@examples(500, quick=60)
@given(buckets, st.integers(0, 2000), st.integers(0, 1000), st.integers(1, 25))
def test_the_time_of_the_next_token_is_the_first_at_which_there_is_enough(
    bucket: Bucket, full: int, now: int, units: int
) -> None:
    full = fit(bucket, full, now)
    when = units_at(bucket, full, now, units)
    if when is None:
        assert units > bucket.burst
        return
    assert when >= now and bucket_units(bucket, full, when) >= units
    assert when == now or bucket_units(bucket, full, when - 1) < units


@examples(200, quick=30)
@given(buckets, st.integers(0, 2000), st.integers(0, 1000), st.integers(1, 20))
def test_units_given_back_at_once_leave_the_bucket_as_it_was(
    bucket: Bucket, full: int, now: int, units: int
) -> None:
    after = give_back(bucket, take(bucket, full, now, units), now, units, now)
    assert max(after, now) == max(full, now)
    assert bucket_level(bucket, after, now) == bucket_level(bucket, full, now)


def test_a_smaller_bucket_is_full_within_its_own_time() -> None:
    assert fit(Bucket(10, 5), 5000, 100) == 150
    assert bucket_units(Bucket(10, 5), 150, 100) == 0
    assert bucket_units(Bucket(10, 5), 150, 119) == 1


def test_a_budget_admits_while_something_is_left_and_no_price_that_is_more() -> None:
    assert budget_admits(50, 49.99, None) and not budget_admits(50, 50, None)
    assert budget_admits(50, 40, 10) and not budget_admits(50, 40, 10.01)
    assert not budget_admits(50, 50, 0)
