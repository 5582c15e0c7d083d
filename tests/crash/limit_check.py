"""Finds moments above a limit and windows above a rate in a ledger that the tasks wrote. Pure.

Owns what "above a limit" means for an outside observer. Knows nothing of stores: its input is when the code
of each task ran, and which limits were in force when. All times are nanoseconds of one clock.

A rule that changes is in force from some moment between the call that set it and its return, so a start is
compared with the most generous rule that it could have been admitted under: one in force between its claim
and its start. While a rule stays as it is, nothing is forgiven, except that a rate may be judged by the time
of the claim (the store's clock; the default) or of the start; then ``late`` is how long after its claim a
job may start, because a claim under the rate may start that much closer to the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

NS = 1_000_000_000
FOR_EVER = 1 << 62


@dataclass(frozen=True)
class LedgerEntry:
    """One execution, as the task itself recorded it."""

    job: str
    scopes: tuple[str, ...]  # the names of the limits it is under
    began: int
    ended: int | None  # None: it still runs
    claimed: int  # by the store's clock, not after it began
    units: int = 1
    token: int = 1  # the lease token: 1 if the job was never claimed before


@dataclass(frozen=True)
class InForce:
    """A limit from when it was set (``called`` and ``returned``) until the next one of that name."""

    name: str
    called: int
    returned: int
    running: int | None = None
    every_ns: int | None = None  # of a rate: the time in which one unit comes back
    burst: int = 1


@dataclass(frozen=True)
class Waiting:
    """A job of a serial key: its place in the order, and since when it has waited, stored and due."""

    job: str
    key: str
    place: tuple[int, float, str]  # minus its priority, due time, id
    since: int


@dataclass(frozen=True)
class Breach:
    """Where the ledger shows something that may not be."""

    name: str
    at: int
    found: int
    allowed: int
    jobs: tuple[str, ...]


def above_running(ledger: Sequence[LedgerEntry], rules: Sequence[InForce]) -> list[Breach]:
    """Starts that made more run at once than a limit in force between their claim and their start admits."""
    found = []
    for name, periods in _periods(rules).items():
        if any(rule.running is not None for rule, _ in periods):
            found += _above_running(name, _under(ledger, name), periods)
    return found


def _above_running(
    name: str, entries: list[LedgerEntry], periods: list[tuple[InForce, InForce]]
) -> Iterator[Breach]:
    running: dict[tuple[str, int], int] = {}
    for entry in sorted(entries, key=lambda entry: entry.began):
        running = {key: ended for key, ended in running.items() if ended > entry.began}
        running[entry.job, entry.token] = FOR_EVER if entry.ended is None else entry.ended
        admitting = [
            FOR_EVER if rule.running is None else rule.running
            for rule, following in periods
            if rule.called <= entry.began and entry.claimed <= following.returned
        ]
        allowed = max(admitting)
        if len(running) > allowed:
            yield Breach(name, entry.began, len(running), allowed, tuple(job for job, _ in running))


def above_rate(
    ledger: Sequence[LedgerEntry], rules: Sequence[InForce], *, by_start: bool = False, late: int = 0
) -> list[Breach]:
    """Starts with which the units of some window that ends there exceed burst + rate × window.

    The fullest window that ends at a start is found without trying all: going from start to start, what
    a window holds in excess of its rate falls with time and never below none, in which case a window that
    begins later is the fuller one.
    """
    found = []
    for name, periods in _periods(rules).items():
        entries = _under(ledger, name)
        for rule, following in periods:
            if rule.every_ns is not None:
                found += _above_rate(rule, following.called, entries, by_start, late)
    return found


def _above_rate(
    rule: InForce, until: int, entries: list[LedgerEntry], by_start: bool, late: int
) -> Iterator[Breach]:
    assert rule.every_ns is not None
    most = rule.burst * rule.every_ns + late
    excess, before = 0, 0
    for entry in sorted(entries, key=lambda entry: entry.began if by_start else entry.claimed):
        at = entry.began if by_start else entry.claimed
        if not (rule.returned < entry.claimed and at < until):
            continue
        excess = max(excess - (at - before), 0) + entry.units * rule.every_ns
        before = at
        if excess > most:
            yield Breach(rule.name, at, -(-excess // rule.every_ns), rule.burst, (entry.job,))


def out_of_order(ledger: Sequence[LedgerEntry], waiting: Iterable[Waiting]) -> list[Breach]:
    """Starts of a serial key at which a job that comes before, and had waited already, was not begun yet.

    Only first claims count: a job that was claimed and returned has a new place.
    """
    started = {entry.job: entry for entry in ledger if entry.token == 1}
    keys: dict[str, list[Waiting]] = defaultdict(list)
    for job in waiting:
        if job.job in started:
            keys[job.key].append(job)
    return [breach for key, jobs in keys.items() for breach in _out_of_order(key, jobs, started)]


def _out_of_order(key: str, jobs: list[Waiting], started: dict[str, LedgerEntry]) -> Iterator[Breach]:
    for job in jobs:
        entry = started[job.job]
        passed = [
            other.job
            for other in jobs
            if other.place < job.place
            and other.since < entry.claimed
            and started[other.job].began > entry.began
        ]
        if passed:
            yield Breach(key, entry.began, len(passed), 0, (job.job, *passed))


def _under(ledger: Sequence[LedgerEntry], name: str) -> list[LedgerEntry]:
    return [entry for entry in ledger if name in entry.scopes]


def _periods(rules: Sequence[InForce]) -> dict[str, list[tuple[InForce, InForce]]]:
    """The rules of each name in order, each with the one that replaces it. The first one replaces none."""
    by_name: dict[str, list[InForce]] = defaultdict(list)
    for rule in sorted(rules, key=lambda rule: rule.called):
        by_name[rule.name].append(rule)
    return {
        name: list(pairwise([InForce(name, -1, -1), *same, InForce(name, FOR_EVER, FOR_EVER)]))
        for name, same in by_name.items()
    }
