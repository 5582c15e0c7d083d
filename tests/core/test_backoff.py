"""How long a failed job waits. Heritage Q3: base 5 s, at most 5 min, 0-1 s of jitter. A3: base 10 s."""

from __future__ import annotations

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.backoff import LONGEST, check, delay
from rota.errors import OptionError
from rota.model import Backoff

policies = st.builds(
    Backoff,
    base=st.floats(0, 1e6),
    factor=st.floats(1, 1e6),
    cap=st.none() | st.floats(0, LONGEST),
    jitter=st.floats(0, 1e4),
)
chances = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [(1, 5), (2, 10), (3, 20), (4, 40), (5, 80), (6, 160), (7, 300), (8, 300), (100, 300)],
)
def test_standard_waits_double_from_five_seconds_to_five_minutes(attempt: int, seconds: float) -> None:
    assert delay(Backoff.standard(), attempt, 0.0) == seconds


@pytest.mark.parametrize(("attempt", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 80), (10, 5120)])
def test_patient_waits_double_from_ten_seconds_without_a_cap(attempt: int, seconds: float) -> None:
    assert delay(Backoff.patient(), attempt, 0.0) == seconds


def test_jitter_adds_up_to_one_second() -> None:
    assert delay(Backoff.standard(), 1, 0.25) == 5.25
    assert delay(Backoff.standard(), 50, 0.999) == pytest.approx(300.999)


@pytest.mark.parametrize("attempt", [0, -1, -(10**9)])
def test_an_attempt_below_one_counts_as_the_first(attempt: int) -> None:
    assert delay(Backoff.standard(), attempt, 0.0) == 5


def test_none_does_not_wait() -> None:
    assert [delay(Backoff.none(), attempt, 0.9) for attempt in (1, 2, 50)] == [0, 0, 0]


@examples()
@given(policies, st.integers(-5, 10**6), chances)
def test_a_wait_is_never_negative_and_always_bounded(policy: Backoff, attempt: int, jitter: float) -> None:
    cap = LONGEST if policy.cap is None else policy.cap
    assert 0 <= delay(policy, attempt, jitter) <= cap + policy.jitter


@examples()
@given(policies, st.integers(1, 500), chances)
def test_waits_never_shrink(policy: Backoff, attempt: int, jitter: float) -> None:
    assert delay(policy, attempt, jitter) <= delay(policy, attempt + 1, jitter)


@examples()
@given(policies)
def test_every_sound_policy_passes_the_check(policy: Backoff) -> None:
    assert check(policy) is policy


@pytest.mark.parametrize(
    "policy",
    [
        Backoff(base=-1),
        Backoff(base=float("nan")),
        Backoff(base=float("inf")),
        Backoff(factor=0.5),
        Backoff(cap=-1),
        Backoff(jitter=LONGEST * 2),
        Backoff(base=True),
        Backoff(base="5"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_out_of_range_is_refused_by_name(policy: Backoff) -> None:
    with pytest.raises(OptionError, match=r"backoff (base|factor|cap|jitter)="):
        check(policy)
