"""How a claim is shared between queues."""

from __future__ import annotations

from rota.core.jobs.admission import LAST_RANK, Head, Share, shares


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
