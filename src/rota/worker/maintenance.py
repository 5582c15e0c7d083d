"""Maintenance that any worker does for all: rescue, expiry, prune, seals, upkeep, unknown tasks, budgets.

Each pass is a step of a service and returns the seconds until the next. Any number of workers may run
them at once. Never runs a job: a rescued one is claimed again like any other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from ..config import Settings
from ..core.jobs import lifecycle
from ..core.jobs.lifecycle import LeaseExpired, decide, most_crashes
from ..model import (
    ExpiredJobs,
    Job,
    JobFilter,
    JobId,
    PageRequest,
    RetentionCutoffs,
    Settlement,
    State,
)
from ..runtime.clock import Clock, monotonic
from ..runtime.events import about
from ..runtime.failpoints import hit
from ..runtime.service import Tick
from ..store.calls import settle
from ..store.protocol import Store
from .audit_seals import MOST_SEAL_S, SEAL_BATCH, SEAL_EVERY_S, seal
from .budget_alerts import CHECK_EVERY_S, MOST_CHECK_S, raise_alerts
from .environment import WorkerEnvironment
from .unknown_tasks import UnknownTasks

log = logging.getLogger("rota.upkeep")

RESCUE_BATCH = 200
RESCUE_SHARE = 100  # rescue passes take one part in this many of the time, as long as that is soon enough
MOST_SWEEPS = 1.6  # between two passes, with a spread of up to 1.25: never more than two
LOSSES_KEPT_S = 600.0
RESCUING = "+rescue"  # after the id of a worker: the holder of what it is about to rescue
EXPIRE_EVERY_S = 10.0
MOST_EXPIRE_S = 60.0
EXPIRE_BATCH = 500
PRUNE_EVERY_S = 600.0
PRUNE_BATCH = 5000
UNSERVED_EVERY_S = 60.0
MOST_UNSERVED_S = 600.0
# Documents that are never deleted by those who write them, and how long they are kept unchanged.
DOCUMENTS_KEPT_S = {
    "worker": 24 * 3600.0,
    "idempotency": 24 * 3600.0,
    "session": 12 * 3600.0,
    "task": 30 * 24 * 3600.0,
    "tenant_bytes": 48 * 3600.0,
    "budget": 40 * 24 * 3600.0,
}

Rescued = Callable[[Job, State], None]


class RecentLosses:
    """Which jobs were recently lost with which worker: none is blamed for a crash that others share."""

    def __init__(self) -> None:
        self._lost: dict[str, tuple[float, dict[JobId, int]]] = {}  # worker: when, and the crashes of each

    def note(self, jobs: Iterable[Job]) -> None:
        now = monotonic()
        self._lost = {name: one for name, one in self._lost.items() if now - one[0] < LOSSES_KEPT_S}
        for job in jobs:
            _, crashes = self._lost.get(lost_worker(job), (now, {}))
            self._lost[lost_worker(job)] = now, {**crashes, job.id: job.crashes}

    def beside(self, job: Job) -> int:
        """The most crashes of any other job that was lost with the same worker."""
        _, crashes = self._lost[lost_worker(job)]
        return max((n for id, n in crashes.items() if id != job.id), default=0)


class Maintenance:
    """The passes of one worker, as steps of services."""

    def __init__(self, environment: WorkerEnvironment, changed: Callable[[], None]) -> None:
        self._environment = environment
        self._store = environment.store
        self._clock = environment.clock
        self._changed = changed  # a job was rescued, and may be due
        self._unknown = UnknownTasks(environment)
        self._losses = RecentLosses()

    @property
    def steps(self) -> Mapping[str, Tick]:
        return {
            "rescue": self._rescue,
            "expire": self._expire,
            "prune": self._prune,
            "seal": self._seal,
            "unserved": self._check_unserved,
            "budgets": self._check_budgets,
        }

    async def _rescue(self) -> float:
        started = monotonic()
        environment, options = self._environment, self._environment.options
        await rescue(
            self._store, self._clock, environment.worker, options.lease_s, self._report, self._losses,
            environment.settings.quarantine_after,
        )  # fmt: skip
        return self._spread(rest_s(monotonic() - started, options.sweep_s, environment.fleet.workers))

    def _report(self, job: Job, state: State) -> None:
        self._environment.metrics.runs["rescued"] += 1
        emit = self._environment.reporter.emit
        emit("job.rescued", job)
        if state is not State.QUEUED:
            emit(f"job.{state}", job, job.error)
        self._changed()

    async def _expire(self) -> float:
        environment = self._environment
        ended = await expire(self._store, self._clock, environment.worker)
        for job in ended:
            environment.metrics.runs["cancelled"] += 1
            environment.reporter.emit("job.cancelled", job, job.error)
        if len(ended) >= EXPIRE_BATCH:
            return 0.0
        return environment.fleet.share_s(EXPIRE_EVERY_S, MOST_EXPIRE_S)

    async def _prune(self) -> float:
        if not await prune(self._store, self._clock, self._environment.settings):
            return 0.0  # one batch at a time: a pass under way for minutes would count as stuck
        return self._spread(PRUNE_EVERY_S)

    async def _seal(self) -> float:
        made = await seal(self._store, self._clock)
        if made is not None and made.entries == SEAL_BATCH:
            return 0.0
        return self._environment.fleet.share_s(SEAL_EVERY_S, MOST_SEAL_S)

    async def _check_unserved(self) -> float:
        if not await self._unknown.check():
            return 0.0
        return self._environment.fleet.share_s(UNSERVED_EVERY_S, MOST_UNSERVED_S)

    async def _check_budgets(self) -> float:
        environment = self._environment
        for event in await raise_alerts(self._store, self._clock, environment.worker):
            environment.reporter.pass_on(event)
        return environment.fleet.share_s(CHECK_EVERY_S, MOST_CHECK_S)

    def _spread(self, seconds: float) -> float:
        return spread(seconds, self._clock.jitter())


def spread(seconds: float, jitter: float) -> float:
    """About this long, so that workers started together do not pass at the same time."""
    return seconds * (0.75 + jitter / 2)


def rest_s(took_s: float, sweep_s: float, workers: int) -> float:
    """How long to rest after a rescue pass that took this long, waiting for the store included."""
    most_s = MOST_SWEEPS * sweep_s
    thrifty_s = most_s if workers > 1 else RESCUE_SHARE * took_s
    return max(sweep_s, min(thrifty_s, most_s))


async def rescue(
    store: Store,
    clock: Clock,
    worker: str,
    lease_s: float,
    rescued: Rescued,
    losses: RecentLosses | None = None,
    most: int = 3,
) -> int:
    """Reclaim jobs whose lease expired by the store's clock, and decide what becomes of them; how many.

    They are held under a name of their own meanwhile: this worker may not release them as strays. ``most``
    crashes in a row quarantine a job.
    """
    total, holder, losses = 0, f"{worker}{RESCUING}", losses or RecentLosses()
    while True:
        hit("rescue.before")
        jobs = await store.reclaim(holder, lease_s, RESCUE_BATCH, clock.store_now)
        losses.note(jobs)
        losses.note(await _still_leased(store, jobs, most))
        lost = [
            LeaseExpired(worker=lost_worker(job) or None, holder=worker, beside=losses.beside(job), most=most)
            for job in jobs
        ]
        settlements = [_decide(*one, holder, clock) for one in zip(jobs, lost, strict=True)]
        hit("rescue.after")
        refused = await settle(store, settlements, clock.store_now) if settlements else frozenset()
        for job, settlement in zip(jobs, settlements, strict=True):
            if job.id not in refused:
                log.log(
                    logging.ERROR if settlement.state is State.FAILED else logging.WARNING,
                    "rescued job %s (%s) from worker %s: attempt %d of %d, crash %d of %d, now %s",
                    job.id, job.task, job.worker, job.attempt, job.max_attempts,
                    settlement.crashes, most_crashes(job, most), settlement.state,
                    extra=about(job, worker),
                )  # fmt: skip
                rescued(_job_after(job, settlement), settlement.state)
        total += len(jobs)
        if len(jobs) < RESCUE_BATCH:
            return total


def lost_worker(job: Job) -> str:
    """The worker that ran the job, or tried to rescue it, and stopped responding."""
    return (job.worker or "").removesuffix(RESCUING)


async def _still_leased(store: Store, jobs: Sequence[Job], most: int) -> Sequence[Job]:
    """What else the workers of jobs that may be quarantined held: not all leases expire at once."""
    found: list[Job] = []
    for worker in {lost_worker(job) for job in jobs if job.crashes + 1 >= most_crashes(job, most) > 1}:
        where = JobFilter(worker=worker, states=(State.RUNNING,))
        found += (await store.jobs(where, PageRequest(limit=RESCUE_BATCH, brief=True))).items
    return found


def _decide(job: Job, lost: LeaseExpired, holder: str, clock: Clock) -> Settlement:
    return msgspec.structs.replace(decide(job, lost, clock.now(), clock.jitter()), worker=holder)


def _job_after(job: Job, settlement: Settlement) -> Job:
    """The job as the rescue left it; it still names the worker that stopped responding."""
    return msgspec.structs.replace(
        job,
        state=settlement.state,
        attempt=settlement.attempt,
        error_json=settlement.error_json,
        crashes=settlement.crashes,
    )


async def expire(store: Store, clock: Clock, worker: str) -> list[Job]:
    """Cancel a batch of queued jobs that have expired; those that were.

    A worker that claims one does the same: this is for those that no worker claims.
    """
    now = clock.now()
    found = await store.survey(ExpiredJobs(now, EXPIRE_BATCH))
    if not found:
        return []
    edit = lifecycle.expire(now)
    changed = set(await store.edit([job.id for job in found], edit, now))
    ended = [lifecycle.edited(job, edit, now) for job in found if job.id in changed]
    if ended:
        log.info("jobs that expired before they began: %d", len(ended))
        await store.append_audit(lifecycle.expiry_entries(ended, worker, now))
    return ended


async def prune(store: Store, clock: Clock, settings: Settings) -> bool:
    """Delete a batch of what is past its retention: finished jobs, audit entries; at last stale documents.

    Whether nothing is left.
    """
    now = clock.now()
    before = RetentionCutoffs(
        jobs={
            State.SUCCEEDED: now - timedelta(days=settings.retention_succeeded_days),
            State.FAILED: now - timedelta(days=settings.retention_failed_days),
            State.CANCELLED: now - timedelta(days=settings.retention_cancelled_days),
        },
        audit=now - timedelta(days=settings.retention_audit_days),
    )
    hit("prune.before")
    pruned = await store.maintain(before, PRUNE_BATCH, now)
    if not pruned.is_complete(PRUNE_BATCH):
        return False
    for kind, kept_s in DOCUMENTS_KEPT_S.items():
        await _prune_documents(store, kind, now - timedelta(seconds=kept_s))
    return True


async def _prune_documents(store: Store, kind: str, before: datetime) -> None:
    for document in await store.documents(kind):
        if document.updated_at < before:
            await store.delete_document(kind, document.key)
