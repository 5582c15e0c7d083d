"""Housekeeping that any worker does for all: rescue, prune, and what the store alone needs.

Each step is one pass and returns the seconds until the next. Several workers may do them at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec

from ..config import Settings
from ..core.jobs.lifecycle import LeaseExpired, decide
from ..model import Document, Job, JobFilter, PageRequest, RetentionCutoffs, Settlement, State
from ..runtime.clock import Clock
from ..runtime.events import about
from ..runtime.failpoints import hit
from ..store.calls import settle
from ..store.protocol import Store

log = logging.getLogger("rota.upkeep")

SWEEP_S = 5.0
RESCUE_BATCH = 200
PRUNE_S = 600.0
PRUNE_BATCH = 5000
WORKER_GONE_S = 60.0
# Documents that nobody takes away, and how long after the last word they are kept.
FORGOTTEN_S = {"worker": 24 * 3600.0, "idempotency": 24 * 3600.0, "session": 12 * 3600.0}
SAMPLE = 200

Rescued = Callable[[Job, State], None]


async def rescue(store: Store, clock: Clock, holder: str, lease_s: float, rescued: Rescued) -> int:
    """Take over jobs whose worker went silent, and decide what becomes of them; how many."""
    total = 0
    while True:
        hit("rescue.before")
        jobs = await store.reclaim(holder, lease_s, RESCUE_BATCH, clock.now())
        changes = [
            decide(job, LeaseExpired(worker=job.worker, holder=holder), clock.now(), clock.jitter())
            for job in jobs
        ]
        hit("rescue.after")
        refused = await settle(store, changes, clock.now()) if changes else frozenset()
        for job, change in zip(jobs, changes, strict=True):
            if job.id not in refused:
                log.warning(
                    "rescued job %s (%s) from worker %s: attempt %d of %d, now %s",
                    job.id, job.task, job.worker, job.attempt, job.max_attempts, change.state,
                    extra=about(job, holder),
                )  # fmt: skip
                rescued(_after(job, change), change.state)
        total += len(jobs)
        if len(jobs) < RESCUE_BATCH:
            return total


def _after(job: Job, change: Settlement) -> Job:
    """The job as the rescue left it; it still names the worker that fell silent."""
    return msgspec.structs.replace(
        job, state=change.state, attempt=change.attempt, error_json=change.error_json
    )


async def prune(store: Store, clock: Clock, settings: Settings) -> int:
    """Delete what is older than it is kept: final jobs, audit entries, stale documents; how many jobs."""
    now = clock.now()
    before = RetentionCutoffs(
        jobs={
            State.SUCCEEDED: now - timedelta(days=settings.retention_succeeded_days),
            State.FAILED: now - timedelta(days=settings.retention_failed_days),
            State.CANCELLED: now - timedelta(days=settings.retention_cancelled_days),
        },
        audit=now - timedelta(days=settings.retention_audit_days),
    )
    total = 0
    while True:
        hit("prune.before")
        pruned = await store.maintain(before, PRUNE_BATCH, now)
        total += pruned.jobs
        if pruned.is_complete(PRUNE_BATCH):
            break
    for kind, kept_s in FORGOTTEN_S.items():
        await forget(store, kind, now - timedelta(seconds=kept_s))
    return total


async def forget(store: Store, kind: str, before: datetime) -> None:
    """Drop the documents of a kind that were written last before then."""
    for document in await store.documents(kind):
        if document.updated_at < before:
            await store.delete_document(kind, document.key)


def is_live(document: Document, clock: Clock, lease_s: float) -> bool:
    """Whether this worker has been heard of lately."""
    silent = (clock.now() - document.updated_at).total_seconds()
    return silent < max(WORKER_GONE_S, 2 * lease_s)


async def unserved(store: Store, clock: Clock, lease_s: float) -> Mapping[str, int]:
    """Tasks of due jobs that no live worker knows, with how many of the oldest due jobs wait for them."""
    known: set[str] = set()
    for document in await store.documents("worker"):
        if is_live(document, clock, lease_s):
            known.update(msgspec.json.decode(document.body).get("tasks", ()))
    now = clock.now()
    page = await store.jobs(JobFilter(states=(State.QUEUED,)), PageRequest(limit=SAMPLE, newest_first=False))
    missing: dict[str, int] = {}
    for job in page.items:
        if job.run_at <= now and job.task not in known:
            missing[job.task] = missing.get(job.task, 0) + 1
    return missing
