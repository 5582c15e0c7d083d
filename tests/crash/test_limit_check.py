"""The checker of limits finds each kind of breach in a spoiled ledger, and none in a clean one."""

from __future__ import annotations

import random

from limit_check import NS, Breach, InForce, LedgerEntry, Waiting, above_rate, above_running, out_of_order

MS = 1_000_000


def ran(
    job: str, began: float, ended: float | None, *scopes: str, units: int = 1, token: int = 1
) -> LedgerEntry:
    """An execution in seconds, claimed a millisecond before it began."""
    at = int(began * NS)
    end = None if ended is None else int(ended * NS)
    return LedgerEntry(job, scopes or ("queue:q",), at, end, at - MS, units, token)


def most(
    running: int | None, called: float = 0, returned: float | None = None, name: str = "queue:q"
) -> InForce:
    return InForce(name, int(called * NS), int((called if returned is None else returned) * NS), running)


def rate(per_s: int, burst: int, called: float = 0, name: str = "queue:q") -> InForce:
    return InForce(name, int(called * NS), int(called * NS), None, NS // per_s, burst)


def test_as_many_as_the_limit_at_once_are_no_breach() -> None:
    ledger = [ran("a", 1, 3), ran("b", 2, 4), ran("c", 3, 5), ran("d", 4, None)]
    assert above_running(ledger, [most(2)]) == []


def test_one_more_than_the_limit_is_found_with_its_moment_and_jobs() -> None:
    ledger = [ran("a", 1, 3), ran("b", 2, 4), ran("c", 2.5, 2.6), ran("d", 5, 6)]
    assert above_running(ledger, [most(2)]) == [
        Breach("queue:q", int(2.5 * NS), 3, 2, ("a", "b", "c")),
    ]


def test_a_job_that_never_ended_counts_until_the_end() -> None:
    assert len(above_running([ran("a", 1, None), ran("b", 900, 901)], [most(1)])) == 1


def test_two_executions_of_one_job_at_once_count_twice() -> None:
    assert len(above_running([ran("a", 1, 9), ran("a", 2, 3, token=3)], [most(1)])) == 1


def test_each_limit_of_a_job_is_checked_by_itself() -> None:
    ledger = [ran("a", 1, 3, "queue:q", "key:k"), ran("b", 2, 4, "queue:q", "key:l")]
    assert above_running(ledger, [most(1, name="key:k"), most(1, name="key:l")]) == []
    assert [breach.name for breach in above_running(ledger, [most(1), most(1, name="key:k")])] == ["queue:q"]


def test_a_lowered_limit_forgives_what_runs_already_and_nothing_that_starts_later() -> None:
    rules = [most(3), most(1, called=5, returned=5.1)]
    running = [ran("a", 1, 9), ran("b", 2, 9), ran("c", 3, 9)]
    assert above_running(running, rules) == []
    assert above_running([*running, ran("d", 5.05, 6)], rules) != []  # four: neither rule admits it
    late = above_running([*running, ran("d", 8, 8.5)], rules)
    assert [(breach.found, breach.allowed) for breach in late] == [(4, 1)]


def test_a_start_while_a_limit_changes_may_be_under_either() -> None:
    rules = [most(1), most(2, called=5, returned=5.5)]
    assert above_running([ran("a", 4, 9), ran("b", 5.2, 6)], rules) == []
    assert len(above_running([ran("a", 4, 9), ran("b", 4.9, 6)], rules)) == 1
    lowered = [most(2), most(1, called=5, returned=5.5)]
    assert above_running([ran("a", 4, 9), ran("b", 5.4, 6)], lowered) == []
    assert len(above_running([ran("a", 4, 9), ran("b", 5.6, 6)], lowered)) == 1


def test_nothing_is_checked_before_a_limit_is_set_or_after_it_is_dropped() -> None:
    rules = [most(1, called=5), most(None, called=10)]
    both = [ran("a", 1, 3), ran("b", 2, 3), ran("c", 12, 14), ran("d", 13, 14)]
    assert above_running(both, rules) == []
    assert len(above_running([*both, ran("e", 6, 8), ran("f", 7, 8)], rules)) == 1


def test_a_burst_and_then_one_per_interval_are_no_breach() -> None:
    starts = [1.0, 1.0, 1.0, 1.1, 1.2, 1.3]
    ledger = [ran(str(n), at, at) for n, at in enumerate(starts)]
    assert above_rate(ledger, [rate(10, 3)]) == []


def test_one_start_too_early_is_found() -> None:
    starts = [1.0, 1.0, 1.0, 1.1, 1.199, 1.3]
    ledger = [ran(str(n), at, at) for n, at in enumerate(starts)]
    assert [breach.jobs for breach in above_rate(ledger, [rate(10, 3)])] == [("4",)]


def test_units_count_and_a_quiet_time_gives_no_more_than_the_burst() -> None:
    ledger = [ran("a", 1, 1, units=3), ran("b", 100, 100, units=3), ran("c", 100.05, 100.05)]
    assert [breach.jobs for breach in above_rate(ledger, [rate(10, 3)])] == [("c",)]


def test_a_window_in_the_middle_is_found_however_slow_the_rest_is() -> None:
    starts = [*range(1, 50), 50, 50, *range(51, 100)]
    ledger = [ran(str(n), at, at) for n, at in enumerate(starts)]
    assert [breach.at // NS for breach in above_rate(ledger, [rate(1, 1)])] == [*range(49, 99)]


def test_a_late_start_is_forgiven_by_as_much_as_it_was_late_and_no_more() -> None:
    held_up = LedgerEntry("a", ("queue:q",), began=1_080 * MS, ended=None, claimed=1_000 * MS)
    prompt = LedgerEntry("b", ("queue:q",), began=1_100 * MS, ended=None, claimed=1_100 * MS)
    assert above_rate([held_up, prompt], [rate(10, 1)]) == []
    assert len(above_rate([held_up, prompt], [rate(10, 1)], by_start=True)) == 1
    assert above_rate([held_up, prompt], [rate(10, 1)], by_start=True, late=80 * MS) == []
    assert len(above_rate([held_up, prompt], [rate(10, 1)], by_start=True, late=79 * MS)) == 1


def test_a_changed_rate_is_checked_from_its_return_on() -> None:
    rules = [rate(10, 1), rate(1, 1, called=2)]
    ledger = [ran(str(n), 1 + n / 10, 1) for n in range(1, 10)]
    assert above_rate(ledger, rules) == []
    slow = [ran("a", 3, 3), ran("b", 3.5, 3.5)]
    assert [breach.jobs for breach in above_rate([*ledger, *slow], rules)] == [("b",)]


def test_every_window_is_found_that_trying_all_pairs_finds() -> None:
    chance = random.Random(1)
    for _ in range(200):
        every, burst = chance.choice([3, 10, 25]), chance.randint(1, 6)
        rule = InForce("queue:q", 0, 0, None, every, burst)
        times = sorted(chance.randint(10, 300) for _ in range(30))
        ledger = [
            LedgerEntry(str(n), ("queue:q",), at, at, at, chance.randint(1, burst))
            for n, at in enumerate(times)
        ]
        found = any(
            sum(entry.units for entry in ledger[i : j + 1]) * every > burst * every + times[j] - times[i]
            for i in range(30)
            for j in range(i, 30)
        )
        assert bool(above_rate(ledger, [rule])) is found


def test_a_job_that_overtakes_one_that_had_waited_is_found() -> None:
    waiting = [Waiting("a", "k", (0, 1.0, "a"), NS), Waiting("b", "k", (0, 2.0, "b"), NS)]
    assert out_of_order([ran("a", 3, 4), ran("b", 5, 6)], waiting) == []
    (breach,) = out_of_order([ran("b", 3, 4), ran("a", 5, 6)], waiting)
    assert breach.jobs == ("b", "a")


def test_a_job_stored_too_late_or_claimed_before_or_of_another_key_is_not_overtaken() -> None:
    ledger = [ran("b", 3, 4), ran("a", 5, 6)]
    late = [Waiting("a", "k", (0, 1.0, "a"), 4 * NS), Waiting("b", "k", (0, 2.0, "b"), NS)]
    assert out_of_order(ledger, late) == []
    other = [Waiting("a", "k", (0, 1.0, "a"), NS), Waiting("b", "l", (0, 2.0, "b"), NS)]
    assert out_of_order(ledger, other) == []
    same = [Waiting("a", "k", (0, 1.0, "a"), NS), Waiting("b", "k", (0, 2.0, "b"), NS)]
    assert out_of_order([ran("b", 3, 4), ran("a", 5, 6, token=3)], same) == []
