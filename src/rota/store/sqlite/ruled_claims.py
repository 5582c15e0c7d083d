"""A claim where more than order matters: tenants that share, limits, budgets, jobs that are held.

First come, first served while that is fair: the next jobs of a queue pass as far as their limits admit
them, and each tenant with its share at most. What a limit, a budget or a pause holds up leaves the line,
once, and is served from its lane; a claim looks into some lanes always, and into more if it is short.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from math import ceil, inf
from typing import NamedTuple, TypeVar

import msgspec

from ...core.jobs.admission import (
    LAST_RANK,
    Fairness,
    Head,
    Turn,
    admit,
    carried,
    shares,
    tenant_shares,
    turns,
)
from ...core.jobs.order import claim_order
from ...model import ClaimRequest, Job
from .allowances import Allowances, Met, read_met
from .claimed_jobs import take
from .lanes import NOWHERE, TENANT, ClaimMemory, HeldLane, Queues, Signs, is_open, open_lanes
from .rows import as_json
from .statements import MET, MET_BRIEFLY, statement
from .writer import Transaction

T = TypeVar("T")

MERGED = 50  # lanes in one statement
SELDOM = 4  # in every fourth claim tenants are asked that are not among the next, where those share evenly
LEAST_ASKED = 8  # tenants that small claims ask together: what each is owed is known only of those
ALWAYS = 16  # held lanes that every claim looks into
MOST_LANES = 2048  # those that it looks into if it is short of jobs
LEAST_AHEAD = 8  # jobs that are looked at although there is no free slot: they may be under no limit
LEAST_REACH, MOST_REACH = 32, 4096  # jobs of the line that are looked at together
MOST_CLOSED = 256  # jobs of full tasks that are looked at, for the order of keys
MOST_HELD = 8192  # jobs that leave the line in one claim
TENANTS_US = 1_000_000  # for how long the tenants of a queue are remembered
MOST_TENANTS = 10_000

AnySet = set[T] | frozenset[T]
Freed = tuple[str, str, str]  # queue, tenant and lane in which a slot may be free

_NAMES = msgspec.json.Decoder(list[str])


class _Shares(NamedTuple):
    """How tenants share what is left of a claim at the rank at which it ends."""

    rank: int
    fairness: Fairness
    asked: Sequence[str]  # tenants that are not among the next jobs, or all whose turn it is
    wanted: int  # jobs of this rank
    in_turns: bool = False


class _Lane:
    """Held jobs of one lane and task, as far as they were read."""

    __slots__ = ("end", "is_closed", "jobs")

    def __init__(self, jobs: list[Met], is_all: bool) -> None:
        self.jobs = jobs
        self.end = None if is_all else jobs[-1]  # there may be more behind this one
        self.is_closed = False  # one of them could not begin


class RuledClaim:
    def __init__(
        self,
        transaction: Transaction,
        want: ClaimRequest,
        now: int,
        memory: ClaimMemory,
        signs: Signs,
        jobs: list[Job],
    ) -> None:
        self._transaction = transaction
        self._want = want
        self._now = now
        self._memory = memory
        self._signs = signs
        self._jobs = jobs
        self._free = want.limit if want.free is None else want.free
        self._excluded = frozenset(want.exclude_tenants)
        self._holds = dict(want.holds)
        self._rules = memory.rules(transaction, signs.version)
        self._allowances = Allowances(transaction, self._rules, now, want.limit)
        self._is_brief = not (signs.held or self._rules.has_limits or self._rules.budgets)
        self._lanes: defaultdict[str, dict[tuple[str, str, str], _Lane]] = defaultdict(dict)
        self._asked: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        self._spent: dict[str, int] = {}  # queues that have no more to give, and up to which rank
        self._stuck: dict[
            tuple[str, str, str], Met
        ] = {}  # by queue, tenant and key: held up by something else
        self._stopped_keys: set[str] = set()  # lanes of keys with jobs that wait for others of them
        self._reach: dict[str, int] = {}
        self._closed_tasks: Sequence[str] = ()  # of the queue that is served: they are full
        self._held = 0  # jobs that left the line
        self._is_unfinished = False

    def run(self, queues: Queues, freed: Set[Freed]) -> tuple[Sequence[Job], int | None]:
        """The jobs that begin, and when something that holds others up will admit them by itself."""
        if self._signs.laned and not self._signs.fair:
            self._transaction.execute("UPDATE rota_claiming SET fair = 1")
        cursor = self._memory.cursor
        if self._signs.held:
            self._read_freed_lanes(freed)
            self._read_next_lanes(ALWAYS)
        self._go_round(queues)
        if self._signs.held:
            self._go_round_all_lanes(cursor)
        self._allowances.write()
        self._memory.is_holding = bool(self._signs.held or self._held)
        self._memory.is_ruled = self._rules.has_limits
        again_at = self._now if self._is_unfinished else self._allowances.opens_at()
        self._jobs.sort(key=claim_order)
        return self._jobs, again_at

    @property
    def _wanted(self) -> int:
        return self._want.limit - len(self._jobs)

    # --- queues ----------------------------------------------------------------------------------

    def _go_round(self, queues: Queues) -> None:
        """Serve the queues by their shares until the claim is full or nothing more can begin."""
        self._spent.clear()
        while self._wanted > 0 and (heads := self._heads(queues)):
            for queue, share, last_rank in shares(heads, self._wanted):
                tasks = self._open_tasks(queues.get(queue, {}))
                head = self._head(queue, tasks)
                # else what it had at this rank is closed since the queue before it was served
                if head is not None and head[0] <= last_rank:
                    self._closed_tasks = [task for task in queues.get(queue, {}) if task not in tasks]
                    self._serve(queue, list(tasks), share, last_rank)
            if self._wanted > 0:
                queues = open_lanes(self._transaction, self._want)
        for queue in [queue for queue, rank in self._spent.items() if rank < LAST_RANK]:
            while self._wanted > 0 and self._spent.get(queue) != LAST_RANK:
                tasks = self._open_tasks(queues.get(queue, {}))
                if self._is_closed(f"queue:{queue}") or self._head(queue, tasks) is None:
                    break
                self._closed_tasks = [task for task in queues.get(queue, {}) if task not in tasks]
                self._serve(queue, list(tasks), self._wanted, LAST_RANK)
                queues = open_lanes(self._transaction, self._want)

    def _heads(self, queues: Queues) -> Mapping[str, Head]:
        """The first job of each queue that has something to give, as far as known."""
        return {
            queue: head
            for queue in {*queues, *self._lanes}.difference(self._spent)
            if not self._is_closed(f"queue:{queue}")
            and (head := self._head(queue, self._open_tasks(queues.get(queue, {})))) is not None
        }

    def _head(self, queue: str, tasks: Mapping[str, Head]) -> Head | None:
        held = [lane.jobs[0][:3] for lane in self._lanes[queue].values() if lane.jobs]
        return min([*tasks.values(), *held], default=None)

    def _open_tasks(self, tasks: Mapping[str, Head]) -> Mapping[str, Head]:
        if not self._rules.has_limits:
            return tasks
        return {task: head for task, head in tasks.items() if not self._is_closed(f"task:{task}")}

    def _is_closed(self, limit: str) -> bool:
        """Whether nothing can begin under a limit: it is full, or tight and the worker has no free slot."""
        return limit in self._rules.limits and (
            self._allowances.is_full(limit) or (self._free <= 0 and not self._allowances.is_ample(limit))
        )

    def _serve(self, queue: str, tasks: Sequence[str], wanted: int, last_rank: int) -> None:
        """Begin up to ``wanted`` jobs of the queue; hold what is in their way and cannot begin."""
        wanted = self._within_limits(queue, tasks, wanted)
        is_ahead = self._rules.has_limits and self._free < wanted
        if is_ahead:  # of jobs under tight limits no more than the free slots can begin: are these?
            wanted = min(wanted, max(self._free, self._memory.ahead.get(queue, LEAST_AHEAD)))
        reach = max(self._reach.get(queue, 0), wanted)
        line = self._line(queue, tasks, last_rank, reach + 1)
        is_cut = len(line) > reach
        del line[reach:]
        end = line[-1] if is_cut else None
        fair = self._fairness(queue, [*line, *self._held_jobs(queue, last_rank)], wanted, is_cut)
        if fair is not None and fair.asked:
            line += self._of_absent_tenants(queue, tasks, fair)
        if self._signs.held:
            asked = -1
            while asked < (asked := len(self._asked[queue])):  # lanes may have jobs of other keys
                self._read_lanes_of(queue, [*line, *self._held_jobs(queue, last_rank)])
        # what the line has at better ranks goes first, also where it was not read so far
        waiting = list(self._held_jobs(queue, last_rank if end is None else end.rank))
        if end is not None:
            line, waiting = self._close_gaps(queue, tasks, line, waiting, end)
        jobs = _in_order(line, waiting)
        open_, stopped = self._stop(queue, jobs, last_rank, end)
        self._stopped_keys.update([lane for lane in stopped.values() if lane is not None and lane != TENANT])
        self._join_lanes(queue, stopped)
        begun, rejected = self._admit(queue, open_, wanted, fair)
        if self._stopped_keys and any([f"k:{job.key}" in self._stopped_keys for job in begun]):
            self._is_unfinished = True  # a strict key waited for this one only
        self._note_stuck(queue, rejected)
        stopped |= rejected
        held = self._hold(stopped)
        self._jobs += take(self._transaction, [job.rowid for job in begun], self._want, self._now)
        self._forget(queue, begun, stopped)  # reads lanes on, so what begins has to be out of them
        if is_ahead:
            many = wanted * 4 if len(begun) == wanted else len(begun)
            self._memory.ahead[queue] = min(max(many, LEAST_AHEAD), MOST_REACH)
        if begun:
            return
        self._reach[queue] = min(max(reach, LEAST_REACH) * 4, MOST_REACH)
        if self._held > MOST_HELD:
            self._is_unfinished = True
        sees_more = is_cut and self._reach[queue] > reach and len(open_) < len(jobs)
        # whether the next round finds others: a strict key's retry that may not begin comes back each time
        is_other = held or sees_more or any([job.due == 2 for job in stopped])
        is_other = is_other or any([self._is_closed(f"task:{task}") for task in tasks])
        if self._held > MOST_HELD or not is_other:
            self._spent[queue] = last_rank

    def _within_limits(self, queue: str, tasks: Sequence[str], wanted: int) -> int:
        """As many as the limit of the queue, or of its only task, admits: tenants share what can begin."""
        if not self._rules.has_limits:
            return wanted
        names = [f"queue:{queue}"]
        if len(of := {*tasks, *(task for _, _, task in self._lanes[queue])}) == 1:
            names += [f"task:{task}" for task in of]
        slots = [most for name in names if (most := self._allowances.slots(name)) is not None]
        return max(1, min([wanted, *slots]))

    def _line(self, queue: str, tasks: Sequence[str], rank: int, limit: int) -> list[Met]:
        found: list[Met] = []
        for start in range(0, len(tasks), MERGED):
            merged = tasks[start : start + MERGED]
            params = [value for task in merged for value in (queue, task, rank)]
            query = merged_line(len(merged), self._is_brief)
            (text,) = self._transaction.execute(query, (*params, limit)).fetchone()
            found += read_met(text)
        if len(tasks) > MERGED:
            found.sort()
        return found[:limit]

    def _held_jobs(self, queue: str, last_rank: int) -> Iterator[Met]:
        for lane in self._lanes[queue].values():
            yield from [job for job in lane.jobs if job.rank <= last_rank]

    def _close_gaps(
        self, queue: str, tasks: Sequence[str], line: list[Met], held: list[Met], end: Met
    ) -> tuple[list[Met], list[Met]]:
        """The same where tenants have held jobs behind ``end``, up to which the line was read.

        With the jobs that those tenants have in the line before these, and without held jobs before which
        there may be more of them.
        """
        behind = Counter([job.tenant for job in held if job > end])
        if not behind:
            return line, held
        if not self._signs.laned:
            return line, [job for job in held if job <= end]
        known = Counter([job.tenant for job in line])
        numbers = {tenant: known[tenant] + n for tenant, n in behind.items()}
        found = self._first_of_tenants(queue, tasks, end.rank, numbers)
        met = Counter([job.tenant for job in found])
        ends = {job.tenant: job for job in sorted(found) if met[job.tenant] >= numbers[job.tenant]}
        return line + found, [job for job in held if job <= ends.get(job.tenant, job)]

    # --- admission -------------------------------------------------------------------------------

    def _stop(
        self, queue: str, jobs: Sequence[Met], last_rank: int, end: Met | None
    ) -> tuple[Sequence[Met], dict[Met, str | None]]:
        """Part the jobs: those that may begin if their limits admit them, and the others with their lanes.

        The others are jobs of excluded tenants, of strict keys that wait for a retry, and of the line behind
        held ones of their lane that were not read. What would overtake jobs of another task is in neither.
        ``end``: how far the line was read; None: to its end.
        """
        retried, blocked = self._retried(queue, jobs, last_rank)
        awaited = {job.rowid for job in retried}
        if end is not None:
            retried = [job for job in retried if job <= end]
        jobs = self._without_overtaking(queue, jobs, last_rank)
        ends: dict[tuple[str, str], Met] = {}
        read_on: dict[str, Met] = {}  # by tenant: how far its lane is read, where it is read on
        for (tenant, held_lane, _), known in self._lanes[queue].items():
            if known.end is not None:
                ends[tenant, held_lane] = min(known.end, ends.get((tenant, held_lane), known.end))
                if (held_lane or TENANT) == TENANT and not known.is_closed:
                    read_on[tenant] = min(known.end, read_on.get(tenant, known.end))
        if not (ends or blocked or self._excluded or self._stuck):
            return jobs, {}
        open_: list[Met] = []
        stopped: dict[Met, str | None] = {}
        for job in sorted({job.rowid: job for job in [*jobs, *retried]}.values()):
            lane = self._lane_behind(job, ends) if job.due == 1 and job not in retried else None
            if job.tenant in self._excluded:
                lane = TENANT
            elif job.key in blocked and job.rowid not in awaited:
                lane = f"k:{job.key}"
            if lane is not None:
                stopped[job] = lane
            elif job.key is not None and self._stuck.get((queue, job.tenant, job.key), job) < job:
                stopped[job] = None
            elif job.due == 1 or job <= read_on.get(job.tenant, job):
                open_.append(job)  # else others may come before it, which were not read
        return open_, stopped

    def _lane_behind(self, job: Met, ends: Mapping[tuple[str, str], Met]) -> str | None:
        for lane in (TENANT, f"k:{job.key}"):
            end = ends.get((job.tenant, lane))
            if end is not None and end < job:
                return lane
        return None

    def _note_stuck(self, queue: str, rejected: Mapping[Met, str | None]) -> None:
        """What another limit than its key's holds up is not overtaken by others of the key in this claim."""
        if not self._rules.has_keys:
            return
        for job, lane in rejected.items():
            if job.key is None or lane == f"k:{job.key}":
                continue
            rule = self._rules.of_key(job.key)
            if rule is not None and rule.running is not None:
                name = (queue, job.tenant, job.key)
                self._stuck[name] = min(job, self._stuck.get(name, job))

    def _without_overtaking(self, queue: str, jobs: Sequence[Met], last_rank: int) -> Sequence[Met]:
        """Without those whose key has an earlier job in the line of a full task, among the first there."""
        if not (self._closed_tasks and self._rules.has_keys):
            return jobs
        keys = {key for job in jobs if (key := job.key) is not None}
        ordered = {
            key for key in keys if (rule := self._rules.of_key(key)) is not None and rule.running is not None
        }
        if not ordered:
            return jobs
        first: dict[tuple[str, str | None], Met] = {}
        for job in self._line(queue, self._closed_tasks, last_rank, MOST_CLOSED):
            if job.key in ordered:
                first.setdefault((job.tenant, job.key), job)
        return [job for job in jobs if job <= first.get((job.tenant, job.key), job)]

    def _retried(self, queue: str, jobs: Sequence[Met], last_rank: int) -> tuple[Sequence[Met], Set[str]]:
        """The jobs for which strict keys wait, as far as they are due here; and those keys."""
        if not self._rules.has_strict:
            return (), frozenset()
        keys = {job.key for job in jobs if job.key is not None}
        strict = [key for key in keys if (rule := self._rules.of_key(key)) is not None and rule.strict]
        if not strict:
            return (), frozenset()
        (text,) = self._transaction.execute(statement("retried"), (as_json(strict),)).fetchone()
        found = read_met(text)
        due = [
            job
            for job in found
            if job.due
            and job.queue == queue
            and job.rank <= last_rank
            and is_open(self._want, queue, job.task)
        ]
        return due, {job.key for job in found if job.key is not None}

    def _admit(
        self, queue: str, jobs: Sequence[Met], wanted: int, fair: _Shares | None
    ) -> tuple[Sequence[Met], dict[Met, str | None]]:
        """Those that begin, and those that something does not admit, each with the lane to wait in."""
        sure = jobs if fair is None else [job for job in jobs if job.rank < fair.rank]
        begun, rejected = self._admit_some(sure, wanted, None)
        if fair is not None:
            contested = [job for job in jobs if job.rank == fair.rank]
            more, others = self._admit_some(contested, wanted - len(begun), fair.fairness)
            if not fair.in_turns:
                taken = Counter([job.tenant for job in more])
                self._memory.carry[queue] = carried(fair.fairness.shares, taken, self._holds)
            begun, rejected = [*begun, *more], rejected | others
        return begun, rejected

    def _admit_some(
        self, jobs: Sequence[Met], wanted: int, fairness: Fairness | None
    ) -> tuple[list[Met], dict[Met, str | None]]:
        if not jobs or wanted <= 0:
            return [], {}
        if fairness is None and self._is_brief:
            return list(jobs[:wanted]), {}
        candidates = self._allowances.candidates(jobs)
        found = admit(candidates, self._allowances.by_name, wanted, self._free, fairness)
        self._free -= found.tight
        rejected = {jobs[place]: _lane_of(name) for place, name in found.held.items()}
        return [jobs[place] for place in found.begin], rejected

    def _hold(self, stopped: Mapping[Met, str | None]) -> int:
        """Jobs of the line leave it for their lanes; one that waited for its tenant may wait for its key."""
        moves = [
            (job.rowid, lane)
            for job, lane in stopped.items()
            if lane is not None and (job.due == 1 or (lane != TENANT and job.lane != lane))
        ]
        if moves:
            self._transaction.execute(statement("hold"), (as_json(moves),))
        self._held += len(moves)
        return len(moves)

    def _join_lanes(self, queue: str, stopped: Mapping[Met, str | None]) -> None:
        """Jobs of the line that wait behind others of a lane are read with it, up to its end."""
        lanes = self._lanes[queue]
        read = {(tenant, name) for tenant, name, _ in lanes}
        for job, lane in stopped.items():
            if lane is None or job.due == 2 or (job.tenant, lane) not in read:
                continue
            known = lanes.setdefault((job.tenant, lane, job.task), _Lane([], is_all=True))
            if known.end is None or job < known.end:
                insort(known.jobs, job._replace(due=2, lane=lane))

    def _forget(self, queue: str, begun: Sequence[Met], stopped: Mapping[Met, str | None]) -> None:
        """Held jobs that begin, or cannot begin in this claim."""
        gone = {job.rowid for job in (*begun, *stopped) if job.due == 2}
        if not gone:
            return
        stay = {
            job.rowid for job, lane in stopped.items() if job.due == 2 and lane in (None, TENANT, job.lane)
        }
        for lane_and_task, lane in list(self._lanes[queue].items()):
            lane.is_closed |= any(job.rowid in stay for job in lane.jobs)
            lane.jobs = [job for job in lane.jobs if job.rowid not in gone]
            if not lane.jobs and lane.end is not None and not lane.is_closed:
                tenant, name, _ = lane_and_task
                del self._lanes[queue][lane_and_task]
                self._add_lanes(self._lane_heads(queue, [(tenant, name or TENANT)]))

    # --- tenants ---------------------------------------------------------------------------------

    def _fairness(self, queue: str, jobs: Sequence[Met], wanted: int, is_cut: bool) -> _Shares | None:
        """The shares of tenants at the rank at which the claim ends; None: there is enough, or only one."""
        if not is_cut and len(jobs) <= wanted:
            return None
        ranks = sorted(job.rank for job in jobs)
        rank = ranks[min(wanted, len(ranks)) - 1]
        before = sum(one < rank for one in ranks)
        if not is_cut and len(ranks) - before <= wanted - before:
            return None
        present = Counter([job.tenant for job in jobs if job.rank == rank])
        waiting = self._tenants(queue, rank)
        if not waiting.issuperset(present):
            waiting = waiting.union(present)
        if shut := {tenant for tenant in self._excluded | self._rules.tenants if self._is_shut(tenant)}:
            waiting = waiting - shut
        if len(waiting) < 2:
            return None
        wanted -= before
        known = {tenant: weight for tenant, weight in self._rules.weights.items() if tenant in waiting}
        together = len(waiting) + sum(known.values()) - len(known)
        holds = {tenant: n for tenant, n in self._holds.items() if tenant in waiting}
        if known and _lightest(known, len(waiting)) * wanted < together:
            return self._turns(queue, rank, waiting, present, wanted, known, together, holds)
        asked = self._whom_to_ask(queue, waiting, present, wanted)
        weights = {tenant: known.get(tenant, 1.0) for tenant in (*present, *asked) if tenant not in shut}
        carry = self._memory.carry.get(queue)
        shares = tenant_shares(wanted, weights, holds, carry, together)
        if not asked and all([n < shares.get(tenant, 0) + 1 for tenant, n in present.items()]):
            return None  # as they come is as fair
        return _Shares(rank, Fairness(weights, shares), asked, wanted)

    def _turns(
        self, queue: str, rank: int, waiting: AnySet[str], present: Counter[str], wanted: int,
        weights: Mapping[str, float], together: float, holds: Mapping[str, int],
    ) -> _Shares:  # fmt: skip
        """The shares where weights differ and the claim has less than a job for some tenant."""
        memory = self._memory
        turn = memory.turns.get(queue, Turn())
        given, memory.turns[queue] = turns(
            _from(sorted(waiting), turn.last),
            weights,
            wanted,
            turn,
            mean=together / len(waiting),
            per_weight=(wanted + sum(holds.values())) / together,
            holds=holds,
            chance=memory.draw,
        )
        known = {tenant: weights.get(tenant, 1.0) for tenant in (*present, *given)}
        asked = [tenant for tenant, n in given.items() if n]
        fairness = Fairness(known, {tenant: given.get(tenant, 0) for tenant in known})
        return _Shares(rank, fairness, asked, wanted, in_turns=True)

    def _is_shut(self, tenant: str) -> bool:
        return tenant in self._excluded or (
            tenant in self._rules.tenants
            and (self._allowances.is_full(f"tenant:{tenant}") or self._allowances.is_full(f"budget:{tenant}"))
        )

    def _whom_to_ask(
        self, queue: str, waiting: AnySet[str], present: Counter[str], wanted: int
    ) -> Sequence[str]:
        """Tenants that are not among the next jobs, in turn: for what those leave, and always a few."""
        if len(waiting) == len(present):
            return ()
        each = -(-wanted // len(waiting))
        passing = sum([n if n < each else each for n in present.values()])
        self._memory.claims += 1
        most = max(wanted - passing, wanted // ALWAYS, LEAST_ASKED if wanted < LEAST_ASKED else 1)
        if passing >= wanted >= ALWAYS and self._memory.claims % SELDOM:
            return ()
        absent = sorted(waiting.difference(present))
        asked = _from(absent, self._memory.turn.get(queue, ""))[:most]
        if asked:
            self._memory.turn[queue] = asked[-1]
        return asked

    def _tenants(self, queue: str, rank: int) -> AnySet[str]:
        """The tenants that wait in a queue: asked once a second, and noted as jobs are stored."""
        if not self._signs.laned:
            return frozenset()
        known = self._memory.tenants.get((queue, rank))
        if known is None or not self._now - TENANTS_US < known[0] <= self._now:
            given = {"queue": queue, "rank": rank, "most": MOST_TENANTS}
            (text,) = self._transaction.execute(statement("tenants_in_line"), given).fetchone()
            known = self._memory.remember_tenants(queue, rank, self._now, _NAMES.decode(text))
        return known[1]

    def _of_absent_tenants(self, queue: str, tasks: Sequence[str], fair: _Shares) -> Sequence[Met]:
        """The first jobs of the tenants that are not among the next."""
        each = -(-fair.wanted // len(fair.asked))
        numbers = {tenant: ceil(fair.fairness.shares[tenant]) for tenant in fair.asked}
        if not fair.in_turns:
            numbers = {tenant: max(each, share) for tenant, share in numbers.items()}
        found = self._first_of_tenants(queue, tasks, fair.rank, numbers)
        missing = set(fair.asked).difference([job.tenant for job in found])
        if missing:
            self._memory.forget_tenants(queue, fair.rank, missing)
        return found

    def _first_of_tenants(
        self, queue: str, tasks: Sequence[str], rank: int, numbers: Mapping[str, int]
    ) -> list[Met]:
        """The first jobs of these tenants in the line, up to each one's number."""
        by_number: defaultdict[int, list[str]] = defaultdict(list)
        for tenant, number in numbers.items():
            by_number[number].append(tenant)
        found: list[Met] = []
        for number, tenants in by_number.items():
            given = {
                "tenants": as_json(tenants), "queue": queue, "rank": rank, "tasks": as_json(tasks),
                "each": number,
            }  # fmt: skip
            found += read_met(self._transaction.execute(statement("tenant_heads"), given).fetchone()[0])
        return found

    # --- held lanes ------------------------------------------------------------------------------

    def _read_freed_lanes(self, lanes: Set[Freed]) -> None:
        """Settlements of this turn may have freed slots for these."""
        by_queue: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for queue, tenant, lane in lanes:
            by_queue[queue].append((tenant, lane))
        for queue, asked in by_queue.items():
            self._add_lanes(self._lane_heads(queue, asked))

    def _read_lanes_of(self, queue: str, line: Sequence[Met]) -> None:
        """What is held of the same tenants and keys comes first."""
        asked = {(job.tenant, TENANT) for job in line}
        asked |= {(job.tenant, f"k:{job.key}") for job in line if job.key is not None}
        unknown = asked - self._asked[queue]
        self._asked[queue] |= unknown
        if unknown:
            self._add_lanes(self._lane_heads(queue, sorted(unknown)))

    def _lane_heads(self, queue: str, lanes: Sequence[tuple[str, str]]) -> list[Met]:
        given = {"queue": queue, "lanes": as_json(lanes)}
        return read_met(self._transaction.execute(statement("lane_heads"), given).fetchone()[0])

    def _add_lanes(self, heads: Iterable[Met]) -> None:
        """Read the lanes of these held jobs, as far as something of them may begin."""
        heads = [
            job
            for job in heads
            if is_open(self._want, job.queue, job.task)
            and job.tenant not in self._excluded
            and (job.tenant, job.lane, job.task) not in self._lanes[job.queue]
        ]
        self._allowances.candidates(heads)
        for job in heads:
            lane, most = job.lane or TENANT, self._wanted
            if lane != TENANT and job.key is not None:
                slots = self._allowances.slots_of_key(job.key)
                most = most if slots is None else min(most, slots)
            if most <= 0 or self._is_shut(job.tenant):
                continue
            jobs, is_all = [job], False
            if most > 1:
                asked = (job.queue, job.tenant, lane, job.task, most)
                jobs = read_met(self._transaction.execute(statement("lane_jobs"), asked).fetchone()[0])
                is_all = len(jobs) < most
            if jobs:
                self._lanes[job.queue][job.tenant, lane, job.task] = _Lane(jobs, is_all)

    def _go_round_all_lanes(self, cursor: HeldLane) -> None:
        """A claim that is short of jobs looks into all lanes, a part at a time if there are too many."""
        memory = self._memory
        if self._wanted <= 0:
            memory.round_start = None
            return
        if memory.round_start is None:
            memory.round_start, memory.has_wrapped = cursor, memory.cursor <= cursor
        left = MOST_LANES
        while self._wanted > 0 and left > 0 and memory.round_start is not None:
            left -= max(1, self._read_next_lanes(left))
            self._go_round(open_lanes(self._transaction, self._want))
        if self._wanted > 0 and memory.round_start is not None:
            self._is_unfinished = True

    def _read_next_lanes(self, most: int) -> int:
        """Look into the next lanes; how many there were. At the end it begins again at the first."""
        memory = self._memory
        queue, tenant, lane, task = memory.cursor
        given = {
            "queue": queue, "tenant": tenant, "lane": lane, "task": task, "most": most,
            "queues": as_json(self._want.exclude_queues), "tenants": as_json(sorted(self._excluded)),
        }  # fmt: skip
        heads = read_met(self._transaction.execute(statement("held_lanes"), given).fetchone()[0])
        places = [(job.queue, job.tenant, job.lane or TENANT, job.task) for job in heads]
        self._add_lanes(heads)
        is_last = len(heads) < most
        start = memory.round_start
        if start is not None and memory.has_wrapped and (is_last or places[-1] >= start):
            memory.round_start = None
        elif start is not None and is_last:
            memory.has_wrapped = True
            if start == NOWHERE:
                memory.round_start = None
        memory.cursor = NOWHERE if is_last else places[-1]
        return len(heads)


def _in_order(line: list[Met], held: list[Met]) -> list[Met]:
    """Each once. A tenant's first job may be among the next and among those that were asked for."""
    jobs = line + held
    once = {job.rowid: job for job in jobs}
    if len(once) < len(jobs):
        jobs = list(once.values())
    jobs.sort()
    return jobs


def _from(names: Sequence[str], last: str) -> Sequence[str]:
    """The names, which are sorted, from the one behind ``last`` on and round."""
    start = bisect_right(names, last)
    return [*names[start:], *names[:start]]


def _lightest(known: Mapping[str, float], tenants: int) -> float:
    """The least weight of these tenants, of which some have one; infinite if all have the same."""
    weights = {*known.values(), *((1.0,) if len(known) < tenants else ())}
    return min(weights) if len(weights) > 1 else inf


def _lane_of(name: str) -> str | None:
    """Where a job waits that is not admitted. Queues and tasks need no lane: the line has lanes of theirs."""
    scope, _, subject = name.partition(":")
    if scope == "key":
        return f"k:{subject}"
    return TENANT if scope in ("tenant", "budget") else None


@cache
def merged_line(lanes: int, is_brief: bool = False) -> str:
    """Reads lanes as one: see ``claims.merged_select``."""
    selects = "\nUNION ALL\n".join([statement("select_line_briefly" if is_brief else "select_line")] * lanes)
    columns = ", ".join(MET_BRIEFLY if is_brief else MET)
    merged = f"{selects}\nORDER BY rank, run_at, id LIMIT ?"
    return f"SELECT json_group_array(json_array({columns})) FROM (\n{merged}\n)"
