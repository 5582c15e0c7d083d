"""Turns with the store: outcomes go in and claimed jobs come out, in one round trip.

Owns every outcome from the moment an execution ends until the store has accepted or rejected it, and how
much is claimed. Two turns may be under way at once. Never runs a task and never sleeps: ``slots.py`` runs
what is claimed, ``loop.py`` decides when the next turn is due.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ..core.jobs.gates import narrow_claim
from ..core.jobs.lifecycle import Outcome, Succeeded, decide, fault_json
from ..errors import StoreError, StoreUnavailable
from ..model import (
    ClaimRequest,
    ErrorRecord,
    Job,
    JobFilter,
    JobId,
    PageRequest,
    Settlement,
    State,
    TurnResult,
)
from ..runtime.clock import monotonic
from ..runtime.events import about
from ..runtime.failpoints import hit
from ..store.calls import settle
from ..store.protocol import Store
from .claim_size import MOST_AT_ONCE, Throughput, begin_at_once, claim_size, seconds_until, wait_unfinished
from .deadline import StoreDeadline
from .environment import WorkerEnvironment
from .execution import FENCE, Execution, note_overrun
from .reporting import Settled
from .slots import STALE_S, Slots
from .strays import Strays

log = logging.getLogger("rota.worker")

MAX_SETTLEMENTS = 1000
MAX_BYTES = 16 * 1024 * 1024
SECOND_TURN_FROM = 200  # outcomes that justify a turn beside the one under way
STORE_WAIT_AT_STOP_S = 2.0  # how long a stopping worker waits for an unavailable store
NO_JOBS = TurnResult()


class PendingSettlements(deque[Settled]):
    """Outcomes that are not stored yet. What ``take`` returns is either ``confirmed`` or ``put_back``."""

    def __init__(self) -> None:
        super().__init__()
        self._uncertain: set[JobId] = set()  # sent once, without an answer

    def take(self) -> list[Settled]:
        """The next batch, bounded in number and in bytes."""
        batch: list[Settled] = []
        size = 0
        while self and len(batch) < MAX_SETTLEMENTS:
            settlement = self[0][1]
            if settlement.output_json is not None or settlement.error_json is not None:
                size += len(settlement.output_json or "") + len(settlement.error_json or "")
                if batch and size > MAX_BYTES:
                    break
            batch.append(self.popleft())
        return batch

    def put_back(self, batch: Sequence[Settled]) -> None:
        """Keep a batch, in order, that was sent without an answer: it may or may not be stored."""
        self.extendleft(reversed(batch))
        self._uncertain.update(settlement.id for _, settlement in batch)

    async def confirmed(
        self, batch: Sequence[Settled], refused: frozenset[JobId], store: Store
    ) -> frozenset[JobId]:
        """Of the refused ids, those whose lease was lost: not merely stored by a call without an answer."""
        if not self._uncertain:
            return refused
        lost = set(refused)
        uncertain = tuple(lost & self._uncertain)
        if uncertain:
            sent = {settlement.id: settlement for _, settlement in batch}
            found = await store.jobs(JobFilter(ids=uncertain), PageRequest(limit=len(uncertain)))
            lost.difference_update(job.id for job in found.items if _is_stored(sent[job.id], job))
        self._uncertain.difference_update(settlement.id for _, settlement in batch)
        return frozenset(lost)


def _is_stored(sent: Settlement, job: Job) -> bool:
    """Whether the job shows that this settlement was stored, though the answer was lost.

    QUEUED counts whatever was sent. Every claim and reclaim raises the lease token, so with ours still on
    it, only our settlement can have ended the attempt; then an operator has queued the job again.
    """
    return job.lease_token == sent.lease_token and job.state in (sent.state, State.QUEUED)


class Turns:
    """The claims and settlements of one worker, and the executions between them.

    Never loops, sleeps or retries: ``TurnLoop`` and ``Shutdown`` call ``turn`` as often as it takes.
    """

    def __init__(self, environment: WorkerEnvironment) -> None:
        self.slots = Slots(environment, self.add)
        self.deadline = StoreDeadline(environment.options.lease_s)
        self.changed = asyncio.Event()  # an execution ended, a gate changed, or the worker should stop
        self.second_turn = asyncio.Event()  # outcomes pile up while a turn is under way
        self.stopping = asyncio.Event()
        self.stopping_at = monotonic()
        self.is_idle = False
        self.reached_max_jobs = False
        self.left_idleness = asyncio.Event()
        self.under_way = 0  # turns without an answer
        self.sent_at = monotonic()  # when the last turn was sent
        self._environment = environment
        self._clock = environment.clock
        self.next_due_at: datetime | None = None  # when a claim can bring more, as the last one said
        self._fruitless = 0  # claims in a row that brought nothing, though the store wants to look further
        self._released = 0  # claimed jobs that were released before they started
        self._requested = 0  # jobs that the turns under way may bring
        self._pending = PendingSettlements()
        self._strays = Strays(environment)
        self._throughput = Throughput(monotonic())

    def __len__(self) -> int:
        """Outcomes that are not stored yet."""
        return len(self._pending)

    @property
    def has_work(self) -> bool:
        return bool(len(self.slots) or self._pending or self.under_way)

    def add(self, execution: Execution, outcome: Outcome, now: datetime) -> None:
        """Decide what becomes of a job. The first outcome of an execution counts, a later one is ignored."""
        if execution.ended:
            return
        execution.ended = True
        if execution.timer is not None:
            execution.timer.cancel()
        if execution.context.stop_reason == "lost":
            self._environment.reporter.on_rejected(execution, None)
        else:
            if execution.timeout is not None and isinstance(outcome, Succeeded):
                note_overrun(execution, now)
            settlement = decide(
                execution.job,
                outcome,
                now,
                self._clock.jitter(),
                execution.task.chosen.backoff,
                execution.report(),
            )
            self._pending.append((execution, settlement))
            if len(self._pending) >= SECOND_TURN_FROM and self.under_way == 1:
                self.second_turn.set()
        self.changed.set()

    async def turn(self) -> float:
        """Settle what is pending and claim what fits; the seconds that may pass before the next turn."""
        lease_s = self._environment.options.lease_s
        if monotonic() - self.sent_at > lease_s * FENCE:  # perhaps suspended: give up before anything else
            self.slots.stops.stop_lost(self.slots.outdated())
        if self._strays.is_due and not self.under_way:
            await self.deadline.answer(self._strays.release(self._known))
        request = await self._claim_request()
        if request is None and not self._pending:
            if not self.has_work and not self.stopping.is_set():
                self._found_nothing()
            return self._delay_after(NO_JOBS, request)
        batch = self._pending.take()
        limit = 0 if request is None else request.limit
        result = NO_JOBS
        self.under_way += 1
        self._requested += limit
        self.sent_at = sent_at = monotonic()
        hit("settle.before" if batch else "claim.before")
        try:
            sent = [settlement for _, settlement in batch]
            store = self._environment.store
            result = await self.deadline.answer(store.turn(sent, request, self._clock.store_now))
            if result.at is not None and self._clock.correct(result.at, sent_at) > lease_s / 3:
                self.slots.jumps += 1
        except BaseException as error:
            if request is not None and (
                isinstance(error, StoreUnavailable) or not isinstance(error, StoreError)
            ):
                self._strays.suspect(sent_at + lease_s)
            await self._recover(batch, error)
            return 0.0  # nothing was claimed, and more may be due
        else:
            if request is not None:
                self.next_due_at = result.next_due_at
            hit("claim.after" if result.jobs else "settle.after")
            await self._report(batch, result.refused)
        finally:  # whatever happens to the report: these leases are ours
            self.under_way -= 1
            self._requested -= limit
            if result.jobs:
                if self.is_idle:
                    self.is_idle = False
                    self.left_idleness.set()
                self.slots.take(result.jobs, sent_at)
        return self._delay_after(result, request)

    async def _claim_request(self) -> ClaimRequest | None:
        """What to claim now; None: nothing."""
        gates, options = self._environment.gates, self._environment.options
        self.release_waiting(STALE_S)
        rate = self._throughput.per_second(self.slots.finished, monotonic())
        limit = claim_size(options.concurrency, rate, len(self.slots), self._requested)
        if options.max_jobs is not None:
            claimed = self._environment.metrics.claims - self._released - self.slots.late
            left = options.max_jobs - claimed - self._requested
            if left <= 0 and not self.has_work:
                self.reached_max_jobs = True
                self.drain()
            limit = min(limit, left)
        names = self._environment.registry.names
        if limit <= 0 or not names or self.stopping.is_set():
            return None
        await self.deadline.answer(gates.refresh(options.poll_s))
        request = ClaimRequest(
            worker=self._environment.worker,
            limit=limit,
            lease_s=options.lease_s,
            queues=options.queues,
            exclude_queues=options.exclude_queues,
            tasks=names,
            until=self._clock.now() + timedelta(seconds=options.lease_s),
            free=min(
                limit,
                begin_at_once(
                    options.concurrency, rate, len(self.slots), self._requested, self.slots.has_keyed
                ),
            ),
            holds=self.slots.holds(),
        )
        return narrow_claim(request, gates.active())

    def _known(self) -> set[tuple[JobId, int]] | None:
        """The leases that this worker knows it holds; None while a turn may bring more."""
        if self.under_way:
            return None
        jobs = [execution.job for execution in self.slots.held()]
        jobs += [execution.job for execution, _ in self._pending]
        return {(job.id, job.lease_token) for job in jobs}

    def _delay_after(self, result: TurnResult, request: ClaimRequest | None) -> float:
        """The seconds until a job is due or a gate opens by itself, at most until the next poll."""
        if request is not None and len(result.jobs) >= request.limit:
            return 0.0  # more may be due
        fleet, options = self._environment.fleet, self._environment.options
        now, poll_s = self._clock.now(), fleet.poll_s(options.poll_s)
        is_unfinished = self._is_unfinished(result, now)
        self._fruitless = self._fruitless + 1 if is_unfinished and not result.jobs else 0
        has_looked = not is_unfinished or self._fruitless > MOST_AT_ONCE
        if request is not None and not result.jobs and not self.has_work and has_looked:
            self._found_nothing()
        if is_unfinished:
            return wait_unfinished(self._fruitless, poll_s)
        until_open_s = seconds_until(self._environment.gates.next_end_at(), now, poll_s)
        until_due_s = seconds_until(result.next_due_at, now, poll_s)
        if until_due_s < poll_s:  # the others know of that job, too
            until_due_s += fleet.hold_back_s(1, options.poll_s)
        return min(until_open_s, until_due_s, poll_s)

    @staticmethod
    def _is_unfinished(result: TurnResult, now: datetime) -> bool:
        """Whether the store has not looked at all lanes of waiting jobs, and is to be asked again."""
        return result.next_due_at is not None and result.next_due_at <= (result.at or now)

    def _found_nothing(self) -> None:
        if self._environment.options.burst:
            self.drain()
        if not self.is_idle:
            self.is_idle = True
            self._environment.reporter.emit("worker.idle")

    async def _recover(self, batch: list[Settled], error: BaseException) -> None:
        """After a failed turn: keep its outcomes. If the store rejects them as a whole, settle one by one."""
        if not batch or isinstance(error, StoreUnavailable) or not isinstance(error, StoreError):
            self._pending.put_back(batch)
            raise error
        rest, stuck = deque(batch), list[Settled]()
        try:
            while rest:
                try:
                    stored, refused = await self._settle_alone(*rest[0])
                except StoreUnavailable:
                    raise
                except StoreError as failure:
                    stuck.append(rest.popleft())
                    error = failure
                    continue
                await self._report([(rest.popleft()[0], stored)], refused)
        finally:
            self._pending.put_back([*self._still_leased(stuck), *rest])
        if stuck:
            raise error

    def _still_leased(self, stuck: Sequence[Settled]) -> list[Settled]:
        """Those to try again; the others are dropped, for no turn succeeds with them, and rescued."""
        since = monotonic() - self._environment.options.lease_s
        kept = [one for one in stuck if one[0].renewed_at > since]
        for execution, settlement in stuck:
            if execution.renewed_at <= since:
                self._environment.reporter.on_rejected(execution, settlement)
        return kept

    async def _settle_alone(
        self, execution: Execution, settlement: Settlement
    ) -> tuple[Settlement, frozenset[JobId]]:
        """Settle one job; if the store cannot take its outcome, fail it. What was stored, and the refused."""
        store, clock = self._environment.store, self._clock
        try:
            return settlement, await self.deadline.answer(settle(store, [settlement], clock.store_now))
        except StoreUnavailable:
            raise
        except StoreError as error:
            reason = execution.context.redact(str(error))
            job = execution.job
            log.error("job %s: the outcome cannot be stored: %s", job.id, reason, extra=about(job))
            failed = without_outcome(settlement, reason, clock.now())
            return failed, await self.deadline.answer(settle(store, [failed], clock.store_now))

    async def _report(self, batch: list[Settled], refused: frozenset[JobId]) -> None:
        """Report what the store accepted and what it rejected."""
        reporter = self._environment.reporter
        try:
            confirmed = self._pending.confirmed(batch, refused, self._environment.store)
            lost = await self.deadline.answer(confirmed)
        except BaseException:
            self._pending.put_back(batch)
            raise
        for execution, settlement in batch if lost else ():
            if settlement.id in lost:
                reporter.on_rejected(execution, settlement)
        reporter.on_settled([one for one in batch if one[1].id not in lost] if lost else batch)

    def release_waiting(self, older_than_s: float = 0.0) -> None:
        """Release the jobs that have not started, if the oldest has waited for this long."""
        self._released += self.slots.release_waiting(older_than_s)

    def drain(self) -> None:
        """Claim nothing more, and wait for the store no longer than a stopping worker may."""
        if not self.stopping.is_set():
            self.stopping_at = monotonic()
        self.stopping.set()
        self.changed.set()
        self.deadline.limit(STORE_WAIT_AT_STOP_S)


def without_outcome(settlement: Settlement, reason: str, now: datetime) -> Settlement:
    """Fails a job whose own outcome the store cannot take, with the reason."""
    error = ErrorRecord(
        type="StoreError",
        message=f"the outcome could not be stored: {reason}"[:2000],
        at=now,
        attempt=settlement.attempt,
    )
    return msgspec.structs.replace(
        settlement,
        state=State.FAILED,
        run_at=None,
        output_json=None,
        error_json=fault_json(error),
        progress_json=None,
        remove=False,
        record=None,
        then=(),
        audit=(),
    )
