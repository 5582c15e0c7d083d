"""What a worker and a store exchange: claims, settlements, heartbeats."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from .audit import AuditEntry
from .choices import State
from .job import Attempt, Job, Lease, NewJob
from .value import JobId, Value


class Settlement(Value, frozen=True, kw_only=False):
    """The decided end of an attempt: where the job goes, written only if the worker still holds it.

    It carries what a store needs to write it without reading the job first. A job that returns to the queue
    after it has begun (``started_at`` or ``crashes`` is given) no longer expires.
    """

    id: JobId
    lease_token: int
    worker: str | None  # the holder of the lease: it must still be the same, like the token
    queue: str
    task: str
    tenant: str
    key: str | None
    state: State  # QUEUED, SUCCEEDED, FAILED or CANCELLED
    attempt: int  # the count to store: one less if the attempt is refunded, never for a success
    run_at: datetime | None = None  # when QUEUED; None: due at once
    output_json: str | None = None
    error_json: str | None = None
    started_at: datetime | None = None  # when the task's code began; None: keep the time of the claim
    cost_cents: float = 0.0  # added to the job's cost
    progress_json: str | None = None  # None: keep
    remove: bool = False  # leave no row: a succeeded ``auto_remove`` job
    record: Attempt | None = None
    then: tuple[NewJob, ...] = ()  # follow-up jobs, stored together with the change
    audit: tuple[AuditEntry, ...] = ()  # audit entries, stored together with the settlement
    crashes: int | None = None  # the count to store; None: keep
    schedule: str | None = None  # the schedule that created the job, whose runs are counted
    snoozes: int | None = None  # the count to store; None: keep


class ClaimRequest(Value, frozen=True, kw_only=True):
    """What a worker asks for in a claim."""

    worker: str
    limit: int
    lease_s: float
    queues: tuple[str, ...] | None = None  # None: all
    exclude_queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] | None = None  # the tasks it knows; None: any
    exclude_tenants: tuple[str, ...] = ()
    until: datetime | None = None  # claim nothing later than this: the worker will have given up waiting
    free: int | None = None  # would begin at once: no more of those under a limit nearly full
    holds: tuple[tuple[str, int], ...] = ()  # tenants and how many of their jobs the worker has in hand


class TurnResult(Value, frozen=True, kw_only=True):
    """The result of one turn: rejected settlements, claimed jobs, and when more are due."""

    refused: frozenset[JobId] = frozenset()
    jobs: Sequence[Job] = ()
    next_due_at: datetime | None = None  # when to claim again: a job is due, or a rate has a token
    at: datetime | None = None  # the store's time in this turn; None: it had nothing to do


class ProgressUpdate(Value, frozen=True, kw_only=True):
    """Progress of a running job, written with the next beat."""

    id: JobId
    lease_token: int
    progress_json: str


class Heartbeat(Value, frozen=True, kw_only=True):
    """One heartbeat of a process: its identity, the leases to renew, the progress of its jobs."""

    worker: str
    document: str  # JSON about the worker, shown by ``rota workers list``
    lease_s: float
    leases: Sequence[Lease] = ()  # to renew
    notes: Sequence[ProgressUpdate] = ()


class HeartbeatReply(Value, frozen=True, kw_only=True):
    """``lost``: leases of the heartbeat that are no longer ours. ``cancel``: our jobs to stop."""

    at: datetime  # the store's time: the leases are renewed from then on
    lost: frozenset[JobId] = frozenset()
    cancel: frozenset[JobId] = frozenset()
