"""How a claim is shared between queues and tenants, and what limits and budgets admit."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.admission import (
    LAST_RANK,
    Admission,
    Allowance,
    Candidate,
    Fairness,
    Head,
    Share,
    Turn,
    admit,
    carried,
    is_ample,
    shares,
    tenant_shares,
    turns,
)


def heads(**queues: tuple[int, int]) -> dict[str, Head]:
    """By name: priority of the first job, and when it was due."""
    return {name: (-priority, due, f"id-{name}") for name, (priority, due) in queues.items()}


def test_without_queues_there_are_no_shares() -> None:
    assert list(shares({}, 10)) == []


def test_a_queue_alone_may_fill_the_claim() -> None:
    assert list(shares(heads(a=(0, 1)), 10)) == [Share("a", 10, LAST_RANK)]


def test_queues_of_equal_priority_share_evenly_and_the_longest_due_comes_first() -> None:
    assert list(shares(heads(a=(0, 2), b=(0, 1), c=(0, 3)), 7)) == [
        Share("b", 3, 0),
        Share("a", 2, 0),
        Share("c", 2, 0),
    ]


def test_a_claim_smaller_than_the_number_of_queues_serves_the_longest_due() -> None:
    assert [share.queue for share in shares(heads(a=(0, 2), b=(0, 1), c=(0, 3)), 2)] == ["b", "a"]


def test_a_queue_that_leads_alone_gives_until_it_falls_to_the_next_priority() -> None:
    assert list(shares(heads(a=(5, 1), b=(2, 1), c=(0, 1)), 4)) == [Share("a", 4, -3)]


def test_queues_of_lower_priority_wait_for_the_next_round() -> None:
    assert {share.queue for share in shares(heads(a=(5, 1), b=(5, 2), c=(0, 0)), 9)} == {"a", "b"}


# --- tenants -------------------------------------------------------------------------------------


def test_tenants_share_by_weight_and_what_the_worker_holds_counts() -> None:
    assert tenant_shares(8, {"a": 1, "b": 3}) == {"a": 2, "b": 6}
    assert tenant_shares(2, {"a": 1, "b": 1}, {"a": 6}) == {"a": -2, "b": 4}
    assert tenant_shares(8, {"a": 1}, together=4) == {"a": 2}


@pytest.mark.parametrize("size", [1, 2, 5, 7, 10, 64])
def test_weights_come_out_whatever_the_size_of_a_claim(size: int) -> None:
    weights = {"a": 1.0, "b": 3.0, "c": 0.5}
    line = [Candidate(tenant) for tenant in "a" * size + "b" * size + "c" * size]
    carry: dict[str, float] = {}
    served: Counter[str] = Counter()
    for _ in range(9000 // size):
        due = tenant_shares(size, weights, None, carry)
        begin = admit(line, {}, size, size, Fairness(weights, due)).begin
        taken = Counter(line[place].tenant for place in begin)
        carry = carried(due, taken)
        served += taken
    assert served.total() == 9000 // size * size
    for tenant, weight in weights.items():
        assert served[tenant] == pytest.approx(9000 * weight / 4.5, rel=0.03)


def test_a_tenant_that_holds_every_slot_still_gets_what_nobody_else_wants() -> None:
    due = tenant_shares(1, {"a": 1}, {"a": 9}, {"a": -1.0})
    assert admit([Candidate("a")], {}, 1, 1, Fairness({"a": 1}, due)).begin == [0]


# --- limits --------------------------------------------------------------------------------------


def test_in_turns_each_tenant_is_given_what_its_weight_says() -> None:
    in_turn = ["a", "b", "c", "d"]
    weights = {"a": 4.0, "c": 0.5}
    due: dict[str, Any] = {"mean": 1.6, "per_weight": 0.5, "holds": {}}
    never, mostly = {"chance": lambda: 0.0}, {"chance": lambda: 0.9}
    assert turns(in_turn, weights, 3, Turn(), **due, **never) == ({"a": 2, "b": 0, "c": 0, "d": 0}, Turn("d"))
    assert turns(in_turn, weights, 4, Turn(), **due, **mostly) == ({"a": 3, "b": 1}, Turn("b"))
    due["holds"] = {"a": 2}
    assert turns(in_turn, weights, 2, Turn(), **due, **mostly) == ({"a": 0, "b": 1, "c": 1}, Turn("c"))


def test_a_turn_takes_as_many_claims_as_it_needs() -> None:
    due: dict[str, Any] = {"mean": 1.0, "per_weight": 0.5, "holds": {}, "chance": lambda: 0.0}
    weights = {"b": 3.0}
    given, turn = turns(["a", "b"], weights, 2, Turn(), **due)
    assert (given, turn) == ({"a": 1, "b": 1}, Turn("a", "b", 2))
    given, turn = turns(["b", "c", "a"], weights, 1, turn, **due)
    assert (given, turn) == ({"b": 1}, Turn("a", "b", 1))
    given, turn = turns(["b", "c", "a"], weights, 2, turn, **due)
    assert (given, turn) == ({"b": 1, "c": 1}, Turn("c"))


def test_a_full_limit_holds_up_only_what_is_under_it() -> None:
    line = [Candidate(under=("k",)), Candidate(under=("k",)), Candidate(), Candidate(under=("q",))]
    found = admit(line, {"k": Allowance(running=1), "q": Allowance(running=1)}, 10, 10)
    assert found == Admission([0, 2, 3], {1: "k"}, [])


def test_a_job_that_a_second_limit_does_not_admit_takes_nothing_of_the_first() -> None:
    allowances = {"a": Allowance(running=1, units=1), "b": Allowance(running=0)}
    found = admit([Candidate(under=("a", "b")), Candidate(under=("a",))], allowances, 10, 10)
    assert (found.begin, found.held) == ([1], {0: "b"})


def test_a_job_that_needs_more_units_than_there_are_is_not_overtaken() -> None:
    line = [Candidate(units=3, under=("k",)), Candidate(units=3, under=("k",)), Candidate(under=("k",))]
    assert admit(line, {"k": Allowance(units=5)}, 10, 10) == Admission([0], {1: "k", 2: "k"}, [])


def test_jobs_under_a_limit_are_not_claimed_ahead() -> None:
    line = [Candidate(under=("k",), limited=True), Candidate(), Candidate(under=("k",), limited=True)]
    assert admit(line, {"k": Allowance(running=9)}, 10, 1) == Admission([0, 1], {}, [2], 1)
    assert admit(line, {"k": Allowance(running=9)}, 10, 0) == Admission([1], {}, [0, 2])


def test_jobs_are_claimed_ahead_while_all_their_limits_are_ample() -> None:
    def allowances() -> dict[str, Allowance]:
        return {"q": Allowance(running=99, asked=10), "k": Allowance(running=3, asked=1)}

    line = [Candidate(under=("k", "q"), limited=True)] * 4 + [Candidate(under=("q",), limited=True)] * 2
    assert admit(line, allowances(), 10, 0) == Admission([0, 1, 4, 5], {}, [2, 3])
    assert admit(line, allowances(), 10, 1) == Admission([0, 1, 2, 4, 5], {3: "k"}, [], 1)


def test_a_job_that_waits_for_a_free_slot_is_not_overtaken_by_one_under_the_same_limit() -> None:
    line = [Candidate(units=9, under=("k",), limited=True), Candidate(under=("k",), limited=True)]
    allowance = {"k": Allowance(units=30, asked=25, every_ns=10**9)}
    assert admit(line, allowance, 10, 0) == Admission([], {}, [0, 1])


@given(st.integers(0, 10**6), st.integers(1, 1000), st.integers(1, 10**12))
def test_a_limit_is_ample_if_another_claim_and_what_grows_back_in_hand_are_left(
    left: int, asked: int, every_ns: int
) -> None:
    assert is_ample(left, asked) == (left >= asked)
    assert is_ample(left, asked, every_ns) == (left >= asked and 2 * left * every_ns >= 10**9)


def test_a_budget_admits_until_it_is_spent_and_reserves_the_prices_of_what_begins() -> None:
    line = [Candidate(price=4, under=("t",)), Candidate(price=4, under=("t",)), Candidate(under=("t",))]
    assert admit(line, {"t": Allowance(budget=10, spent=1)}, 10, 10).begin == [0, 1, 2]
    assert admit(line, {"t": Allowance(budget=10, spent=3)}, 10, 10).begin == [0]
    assert admit(line[2:], {"t": Allowance(budget=10, spent=10)}, 10, 10).begin == []
    assert Allowance(budget=10, spent=10).is_full and not Allowance(budget=10, spent=9).is_full


NAMES = "abcd"
candidates = st.builds(
    lambda tenant, units, allowances: Candidate(
        tenant, units, None, tuple(sorted(allowances)), bool(allowances)
    ),
    st.sampled_from("xyz"),
    st.integers(1, 3),
    st.sets(st.sampled_from(NAMES), max_size=3),
)
allowance_numbers = st.tuples(
    st.none() | st.integers(0, 9), st.none() | st.integers(0, 19), st.integers(1, 9)
)


@examples(1000, quick=100)
@given(
    st.lists(candidates, max_size=30),
    st.tuples(allowance_numbers, allowance_numbers, allowance_numbers, allowance_numbers),
    st.integers(0, 12),
    st.integers(0, 12),
    st.none() | st.dictionaries(st.sampled_from("xyz"), st.floats(-2, 9), max_size=3),
)
def test_an_admission_keeps_every_limit_and_leaves_nothing_that_could_begin(
    line: list[Candidate],
    numbers: tuple[tuple[int | None, int | None, int], ...],
    wanted: int,
    free: int,
    due: dict[str, float] | None,
) -> None:
    allowances = {
        name: Allowance(running=running, units=units, asked=asked)
        for name, (running, units, asked) in zip(NAMES, numbers, strict=True)
    }
    fair = None if due is None else Fairness({"x": 1.0, "y": 3.0}, due)
    found = admit(line, allowances, wanted, free, fair)
    assert sorted([*found.begin, *found.held, *found.left]) == list(range(len(line)))
    assert len(found.begin) <= wanted
    assert found.tight <= free
    for name, (running, units, asked) in zip(NAMES, numbers, strict=True):
        begun = [line[place].units for place in found.begin if name in line[place].under]
        assert running is None or len(begun) <= running
        assert running is None or len(begun) <= max(running - asked, 0) + found.tight
        assert units is None or sum(begun) <= units
        assert units is None or sum(begun) <= max(units - asked, 0) + 3 * found.tight
    if len(found.begin) < wanted:  # work conserving
        assert all(line[place].limited for place in found.left)
        assert not found.left or found.tight == free
    begun_of: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    waiting_of: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
    for place, job in enumerate(line):
        (begun_of if place in found.begin else waiting_of)[job.tenant, job.under].append(place)
    for kind, begun_places in begun_of.items():  # no job overtakes one of its tenant under the same limits
        assert not waiting_of[kind] or max(begun_places) < min(waiting_of[kind])
