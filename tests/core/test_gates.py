"""Which gates are active, what they cover, and what they leave of a claim request."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rota.core.jobs.gates import active, narrow_claim, over_job, over_schedule
from rota.model import ClaimRequest, Gate, Scope, gate_id

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ("a", "b", "c")


def gate(scope: Scope, name: str | None = None, **fields: Any) -> Gate:
    return Gate(scope=scope, name=name, since_at=NOW, **fields)


def want(**fields: Any) -> ClaimRequest:
    return ClaimRequest(worker="w", limit=10, lease_s=30, **{"tasks": NAMES, **fields})


def test_a_pause_is_in_force_until_its_end_and_not_at_it() -> None:
    ends = [None, NOW - timedelta(seconds=1), NOW, NOW + timedelta(seconds=1)]
    gates = [gate("queue", str(n), until_at=end) for n, end in enumerate(ends)]
    assert [one.name for one in active(gates, NOW)] == ["0", "3"]


def test_the_gates_over_a_job_come_widest_first() -> None:
    gates = [gate("tenant", "acme"), gate("task", "send"), gate("queue", "mail"), gate("all")]
    found = over_job([*gates, gate("queue", "other")], "mail", "send", "acme")
    assert [one.id for one in found] == ["all", "queue:mail", "task:send", "tenant:acme"]
    assert over_job([gate("queue", "mail")], "default", "send", "acme") == []


def test_a_schedule_stops_for_its_own_gate_only() -> None:
    own = gate("schedule", "nightly", tenant="acme")
    others = [gate("all"), gate("tenant", "acme"), gate("schedule", "nightly", tenant="default")]
    assert over_schedule([*others, own], "acme", "nightly") is own
    assert over_schedule(others, "acme", "nightly") is None


def test_names_with_colons_and_slashes_are_not_mistaken() -> None:
    assert over_job([gate("queue", "a:b")], "a", "b", "c") == []
    assert gate_id("schedule", "b/c", "a") != gate_id("schedule", "c", "a")


@pytest.mark.parametrize(
    ("gates", "left"),
    [
        ([], {}),
        ([gate("queue", "a")], {"exclude_queues": ("a",)}),
        ([gate("task", "a")], {"tasks": ("b", "c")}),
        ([gate("tenant", "a"), gate("tenant", "b")], {"exclude_tenants": ("a", "b")}),
        ([gate("schedule", "a", tenant="b")], {}),
    ],
)
def test_gates_narrow_a_claim(gates: list[Gate], left: dict[str, Any]) -> None:
    assert narrow_claim(want(), gates) == want(**left)


def test_a_narrowed_claim_keeps_its_own_exclusions() -> None:
    left = narrow_claim(want(queues=("a", "b"), exclude_queues=("x",)), [gate("queue", "a")])
    assert left is not None
    assert (left.queues, left.exclude_queues) == (("b",), ("x", "a"))


@pytest.mark.parametrize(
    ("claim", "gates"),
    [
        (want(), [gate("all")]),
        (want(), [gate("task", name) for name in NAMES]),
        (want(queues=("a",)), [gate("queue", "a")]),
    ],
)
def test_no_claim_is_left_when_all_it_names_is_paused(claim: ClaimRequest, gates: list[Gate]) -> None:
    assert narrow_claim(claim, gates) is None


some = st.sampled_from(NAMES)
gates_of = st.lists(
    st.builds(gate, st.sampled_from(["queue", "task", "tenant"]), some) | st.builds(gate, st.just("all"))
)


@examples()
@given(gates=gates_of, queue=some, task=some, tenant=some, queues=st.none() | st.just(("a", "b")))
def test_a_narrowed_claim_asks_for_exactly_the_jobs_that_are_not_paused(
    gates: list[Gate], queue: str, task: str, tenant: str, queues: tuple[str, ...] | None
) -> None:
    claim = want(queues=queues)
    asked = queues is None or queue in queues
    left = narrow_claim(claim, gates)
    covers = (
        left is not None
        and (left.queues is None or queue in left.queues)
        and queue not in left.exclude_queues
        and task in (left.tasks or ())
        and tenant not in left.exclude_tenants
    )
    assert covers is (asked and not over_job(gates, queue, task, tenant))
