"""Which jobs a claim may take: shares of queues and tenants, and what limits and budgets admit. Pure.

Owns the policy; ``buckets.py`` has the arithmetic of rates and budgets. The SQLite store calls it; the
PL/pgSQL of the PostgreSQL store is a copy made for speed, and ``tests/stores/test_postgres_admission.py``
holds it to this one. A store never decides these things by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from .buckets import budget_admits

LAST_RANK = 2**63 - 1  # no rank is larger
LONGEST_IN_HAND_NS = 500_000_000  # what was claimed ahead begins within this time, or is released

Head = tuple[int, Any, str]  # rank (minus the priority), due time and id of a queue's first job


class Share(NamedTuple):
    """What one queue may give in this round of a claim."""

    queue: str
    limit: int  # jobs
    last_rank: int  # jobs of a larger rank wait for the next round


def shares(heads: Mapping[str, Head], limit: int) -> Iterator[Share]:
    """What each queue may contribute to a claim of at most ``limit`` jobs.

    Queues whose best priority is the best of all share evenly, the one whose first job is due longest
    first. A queue that leads alone may give until its priority falls to that of the next. A claim asks
    again, with the heads as they are then, until it is full or the queues are empty.
    """
    best = min((rank for rank, _, _ in heads.values()), default=0)
    leading = sorted((head, queue) for queue, head in heads.items() if head[0] == best)
    others = (rank for rank, _, _ in heads.values() if rank != best)
    last = min(others, default=LAST_RANK + 1) - 1 if len(leading) == 1 else best
    for place, (_, queue) in enumerate(leading):
        share = -(-limit // (len(leading) - place))
        if share:
            yield Share(queue, share, last)
        limit -= share


# --- tenants -------------------------------------------------------------------------------------


def tenant_shares(
    wanted: int,
    weights: Mapping[str, float],
    holds: Mapping[str, int] | None = None,
    carry: Mapping[str, float] | None = None,
    together: float | None = None,
) -> dict[str, float]:
    """How many jobs each of the tenants that wait in a queue is due in a claim, with the fraction.

    What the worker has in hand of those that wait, ``holds``, counts as served already: a tenant whose jobs
    are slow does not end up with every slot. ``carry``: what the claim before left each short of. A tenant
    passes while less than its share has been taken: half a job is a job, and owed next time. ``together``:
    the weights of all that wait, if ``weights`` has only some of them.
    """
    holds, carry = holds or {}, carry or {}
    per_weight = (wanted + sum(holds.values())) / (together or sum(weights.values()))
    return {
        tenant: per_weight * weight - holds.get(tenant, 0) + carry.get(tenant, 0.0)
        for tenant, weight in weights.items()
    }


def carried(
    shares: Mapping[str, float], taken: Mapping[str, int], holds: Mapping[str, int] | None = None
) -> dict[str, float]:
    """What each is owed in the next claim, or owes: what it got less or more than its share, one job at most.

    Where the worker has jobs in hand, they show next time who has too many of them: only parts of a job are
    carried on.
    """
    owed = {tenant: share - taken.get(tenant, 0) for tenant, share in shares.items()}
    if holds:
        return {tenant: part for tenant, part in owed.items() if -1 <= part <= 1}
    return {tenant: part if -1 < part < 1 else 1.0 if part > 0 else -1.0 for tenant, part in owed.items()}


class Turn(NamedTuple):
    """Where the turns of a queue's tenants have come to."""

    last: str = ""  # the tenant that has had its turn
    tenant: str = ""  # whose turn it is still
    left: int = 0  # jobs that it may have in this turn


def turns(
    tenants: Iterable[str],
    weights: Mapping[str, float],
    wanted: int,
    turn: Turn,
    *,
    mean: float,
    per_weight: float,
    holds: Mapping[str, int],
    chance: Callable[[], float],
) -> tuple[dict[str, int], Turn]:
    """How many jobs each tenant is given in a claim that has less than one for each, where weights differ.

    ``tenants``: those that wait, from the one behind ``turn.last`` on. Each is given what its weight says, on
    average one job, in as many claims as that takes. A part of a job is one by ``chance``, which draws from 0
    up to 1. ``mean``: of the weights of all that wait; ``per_weight``: the jobs that a tenant of weight 1 is
    due, with those in hand. Who has its share in hand is passed over.
    """
    given: dict[str, int] = {}
    left = wanted
    for tenant in tenants:
        weight, held = weights.get(tenant, 1.0), holds.get(tenant, 0)
        due = per_weight * weight
        if held >= ceil(due):
            number = 0
        elif tenant == turn.tenant:
            number = turn.left
        else:
            number = int(max(weight / mean, due - held) + chance())
        given[tenant] = min(number, left)
        left -= given[tenant]
        if left <= 0:
            turn = Turn(turn.last, tenant, number - given[tenant])
            if not turn.left:
                turn = Turn(tenant)
            break
        turn = Turn(tenant)
    return given, turn


# --- limits --------------------------------------------------------------------------------------


def is_ample(left: int, asked: int, every_ns: int | None = None) -> bool:
    """Whether a limit that has this much left keeps no other job waiting: its own may be claimed ahead.

    ``asked`` is the size of the claim: as much again could begin elsewhere. What waits in hand counts as
    running, so it takes a slot early and never one too many. ``every_ns``, of a rate: it is begun later
    than its units were taken, so what grows back in the longest such time has to be left too.
    """
    return left >= (asked if every_ns is None else max(asked, -(-LONGEST_IN_HAND_NS // every_ns)))


class Allowance:
    """What one limit, or one budget, still admits in this claim.

    Once it has not admitted a job it admits none of those behind it: they would overtake.
    """

    __slots__ = ("asked", "budget", "closed", "every_ns", "lacking", "running", "spent", "units")

    def __init__(
        self,
        *,
        running: int | None = None,
        units: int | None = None,
        budget: float | None = None,
        spent: float = 0.0,
        closed: bool = False,
        asked: int = LAST_RANK,
        every_ns: int | None = None,
    ) -> None:
        self.running = running  # jobs that may begin beside those that run; None: any number
        self.units = units  # of the bucket; None: any number
        self.budget = budget  # cents; None: any amount
        self.spent = spent  # of the budget: in its period, and reserved by what runs
        self.closed = closed
        self.asked = asked  # how many have to be left for others, or none is claimed ahead
        self.every_ns = every_ns  # of the bucket: in which time it gets one unit
        self.lacking = 0  # units that the first job needs that was not admitted for want of them

    @property
    def is_full(self) -> bool:
        """Whether it would admit no job at all."""
        return (
            self.closed
            or (self.running is not None and self.running <= 0)
            or (self.units is not None and self.units <= 0)
            or (self.budget is not None and self.spent >= self.budget)
        )

    def admits(self, units: int, price: float | None) -> bool:
        return not (
            self.closed
            or (self.running is not None and self.running <= 0)
            or (self.units is not None and self.units < units)
            or (self.budget is not None and not budget_admits(self.budget, self.spent, price))
        )

    def is_ample(self, units: int) -> bool:
        """Whether a job of this many units may be claimed ahead, as far as this one is concerned."""
        return (self.running is None or is_ample(self.running - 1, self.asked)) and (
            self.units is None or is_ample(self.units - units, self.asked, self.every_ns)
        )

    def take(self, units: int, price: float | None) -> None:
        if self.running is not None:
            self.running -= 1
        if self.units is not None:
            self.units -= units
        if self.budget is not None:
            self.spent += price or 0.0


class Candidate(NamedTuple):
    """A job that a claim has met, and the names of all that it is under."""

    tenant: str = "default"
    units: int = 1
    price: float | None = None
    under: tuple[str, ...] = ()  # limits and budgets: it begins only if all of them admit it
    limited: bool = False  # whether one of them is a limit: claimed ahead only while all of them are ample


class Admission(NamedTuple):
    """The places of the candidates that begin, of those that something holds up, and of the others."""

    begin: Sequence[int]  # in order
    held: Mapping[int, str]  # and by which of its allowances
    left: Sequence[int]  # nothing is in their way but the size of the claim
    tight: int = 0  # of those that begin, how many are under a limit that is not ample


class Fairness(NamedTuple):
    """How the tenants that wait in a queue share a claim."""

    weights: Mapping[str, float]
    shares: Mapping[str, float]  # as ``tenant_shares`` says


def admit(
    candidates: Sequence[Candidate],
    allowances: Mapping[str, Allowance],
    wanted: int,
    free: int,
    fair: Fairness | None = None,
) -> Admission:
    """Which of the candidates, which come in order, begin: at most ``wanted``.

    Of those under a limit that is not ample at most ``free``: one that waits keeps others from running.
    First each tenant passes with at most its share; what is left goes by weight to those that have more.
    Without ``fair`` they pass in order, of any tenant.
    """
    taken: dict[str, int] = defaultdict(int)
    begin: list[int] = []
    held: dict[int, str] = {}
    tight = 0
    kept: set[str] = set()  # limits of jobs for which no slot is free: nothing under them overtakes
    barred: set[tuple[str, str]] = (
        set()
    )  # keys of tenants: something else holds up a job, so others wait behind it
    waiting: list[int] = list(range(len(candidates)))
    most = None if fair is None else {tenant: ceil(share) for tenant, share in fair.shares.items()}
    rounds = 0
    while waiting and len(begin) < wanted:
        later: list[int] = []
        for n, place in enumerate(waiting):
            if len(begin) == wanted:
                later += waiting[n:]
                break
            job = candidates[place]
            tenant = job.tenant
            if most is not None and taken[tenant] >= most.get(tenant, 1):
                later.append(place)
                continue
            if job.under:
                if not kept.isdisjoint(job.under) or (
                    barred and any([(tenant, name) in barred for name in job.under])
                ):
                    later.append(place)
                    continue
                if full := _full(job, allowances):
                    held[place] = full
                    if not is_key(full):
                        barred.update(
                            [(tenant, name) for name in job.under if _keeps_order(name, allowances)]
                        )
                    continue
                narrow = [name for name in job.under if not allowances[name].is_ample(job.units)]
                is_tight = job.limited and bool(narrow)
                if is_tight and tight >= free:
                    kept.update(narrow, [name for name in job.under if is_key(name)])
                    later.append(place)
                    continue
                for name in job.under:
                    allowances[name].take(job.units, job.price)
                tight += is_tight
            begin.append(place)
            taken[tenant] += 1
        is_stuck = len(later) == len(waiting) and rounds > 0
        waiting, rounds = later, rounds + 1
        if fair is None or is_stuck or not waiting:
            break
        weights = {
            tenant: fair.weights.get(tenant, 1.0) for tenant in {candidates[n].tenant for n in waiting}
        }
        more = tenant_shares(wanted - len(begin), weights)
        most = {tenant: taken[tenant] + ceil(share) for tenant, share in more.items()}
    return Admission(sorted(begin), held, waiting, tight)


def is_key(name: str) -> bool:
    return name.startswith("key:")


def _keeps_order(name: str, allowances: Mapping[str, Allowance]) -> bool:
    return is_key(name) and allowances[name].running is not None


def _full(job: Candidate, allowances: Mapping[str, Allowance]) -> str | None:
    for name in job.under:
        allowance = allowances[name]
        if not allowance.admits(job.units, job.price):
            if not allowance.closed and allowance.units is not None and allowance.units < job.units:
                allowance.lacking = job.units
            allowance.closed = True
            return name
    return None
