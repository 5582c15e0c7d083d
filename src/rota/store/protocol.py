"""The seam between rota and its databases: what every store must do, and what each verb means.

Batches in, batches out. Instants come in as ``now``; a store never reads a clock of its own to
decide anything. A write returns what was refused, usually nothing. A store holds no policy: no
backoff, no cron, no retry rules, no logging of jobs. Failures of the server or the connection are
raised as ``StoreUnavailable``; nothing else about the driver leaks out.

Rules, each one a test in ``rota.testing.store_conformance``:

1.  ``insert`` is idempotent by id among live jobs; with ``again=True`` (the caller does not know
    whether an earlier call was stored) among all jobs. A ``key`` fills a slot, unique per tenant,
    that a final state empties.
2.  ``claim`` raises the token by one, for ever, and counts an attempt. ``reclaim`` raises the token
    only. Within a queue jobs come by priority (larger first), due time, id. Between queues the
    higher priority comes first, and queues of equal priority share a claim evenly.
3.  ``beat`` and ``settle`` touch a job only if it is running and the token is the caller's.
4.  ``settle`` writes state, attempt record, follow-up jobs and audit lines together, or not at all.
5.  A job that is not due, whose task is not in ``want.tasks``, or whose tenant is in
    ``want.exclude_tenants``, is never claimed.
6.  ``fire`` and ``put_schedules`` write a schedule only if its version is the expected one. Any number of
    schedulers, no leader, no duplicates.
7.  ``edit`` touches only the states its Edit names, and returns the ids it did touch. A cancel that
    was asked of a running job survives its return to the queue.
8.  The audit log is only added to; ``prune_audit`` alone forgets. Ids grow in the order of adding.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from ..model import (
    ActivityCount,
    Attempt,
    AuditEntry,
    AuditFilter,
    Capabilities,
    ClaimRequest,
    Document,
    DueSchedules,
    Edit,
    Finding,
    Firing,
    Heartbeat,
    HeartbeatReply,
    InsertResult,
    Job,
    JobFilter,
    JobId,
    NewJob,
    Overview,
    Page,
    PageRequest,
    QueueDepth,
    Schedule,
    ScheduleFilter,
    Settlement,
    State,
    TurnResult,
)


class Waker(Protocol):
    """Hints that something happened. A hint may be missing or wrong: polling alone is correct."""

    async def wait(self, queues: Sequence[str] | None, timeout: float) -> None:
        """Return when a job may have become ready in one of the queues, or after ``timeout`` seconds."""

    async def wait_finished(self, job: JobId, timeout: float) -> None:
        """Return when the job may have ended, or after ``timeout`` seconds."""

    async def close(self) -> None: ...


class Store(Protocol):
    @property
    def can(self) -> Capabilities: ...

    @property
    def url(self) -> str:
        """The address without any password: safe to print."""

    # --- life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect and check the schema; SchemaMismatch names both versions and the remedy."""

    async def close(self) -> None:
        """Release everything; safe to call twice."""

    def beside(self) -> Store:
        """A store on the same data, for use by the event loop of another thread. Closed by its user."""

    def waker(self) -> Waker: ...

    async def migrate(self) -> Sequence[str]:
        """Bring the schema up to date; names of the migrations applied. Safe from several processes."""

    async def pending(self) -> Sequence[str]:
        """Names of the migrations not yet applied; SchemaMismatch if the schema is newer than we are."""

    def migration_sql(self) -> str:
        """All migrations as text an administrator can review and run."""

    async def clock(self) -> datetime:
        """The server's own time."""

    # --- the hot path ----------------------------------------------------------------------------

    async def insert(
        self, jobs: Sequence[NewJob], now: datetime, *, again: bool = False
    ) -> Sequence[InsertResult]:
        """Store the jobs in one transaction, durably, and wake workers. Answers in the same order."""

    def insert_with(
        self, connection: Any, jobs: Sequence[NewJob], now: datetime | None
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        """Store the jobs on the caller's own connection, inside its transaction; commit is the caller's.

        Returns an awaitable if the connection is asynchronous. ``now=None``: the server's time.
        Raises ConfigError for a connection of an unknown kind.
        """

    async def turn(
        self, changes: Sequence[Settlement], want: ClaimRequest | None, now: datetime
    ) -> TurnResult:
        """Settle, then claim, in one transaction and one round trip: a worker's whole hot path."""

    async def claim(self, want: ClaimRequest, now: datetime) -> Sequence[Job]:
        """``turn`` without changes."""

    async def settle(self, changes: Sequence[Settlement], now: datetime) -> frozenset[JobId]:
        """``turn`` without a claim: the ids that were refused because the lease is gone."""

    async def beat(self, pulse: Heartbeat, now: datetime) -> HeartbeatReply:
        """One statement per process: renew leases until now + lease_s, write notes, record the worker.

        ``Reply.cancel`` names every running job of this worker that should stop, in the pulse or not.
        """

    async def reclaim(self, holder: str, lease_s: float, limit: int, now: datetime) -> Sequence[Job]:
        """Take over running jobs whose lease has expired: token + 1, worker = holder, a fresh lease.

        The Job returned still names the *former* worker, so that the rescue can be explained.
        """

    # --- schedules -------------------------------------------------------------------------------

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        """Write each one whose stored version is its ``version`` (0: absent); new versions, None if refused.

        A name that another schedule of the tenant has is refused too. ``updated_at`` becomes now.
        """

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        """Forget them; the ids that were there. Their jobs stay."""

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        """By tenant and name, always. A row that cannot be read never hides the rest."""

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        """Enabled schedules whose ``look_at`` has come, or is missing on a schedule made by hand."""

    async def fire(self, firings: Sequence[Firing], now: datetime) -> frozenset[str]:
        """Compare versions, write the schedules, insert the jobs: each firing whole or not at all.

        The schedule ids that were refused: fired, edited or disabled by somebody else meanwhile.
        A job whose id exists in any state is left out. Workers are woken as by ``insert``.
        """

    async def busy(self, schedules: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        """Of the (tenant, schedule name) pairs, those that have a live job."""

    async def last_runs(self, schedules: Sequence[tuple[str, str]]) -> Sequence[Job]:
        """The newest job of each (tenant, schedule name) pair that has one, in any order."""

    # --- operators -------------------------------------------------------------------------------

    async def edit(self, where: JobFilter, edit: Edit, limit: int, now: datetime) -> Sequence[JobId]:
        """Apply the edit to at most ``limit`` matching jobs; a retry whose key is taken is left out."""

    async def jobs(self, where: JobFilter, page: PageRequest) -> Page[Job]:
        """By id, newest first unless told otherwise. A row that cannot be read never hides the rest.

        ``page.brief``: the payload is {} and the output None, and neither need be read.
        """

    async def attempts(self, job: JobId) -> Sequence[Attempt]:
        """Recorded attempts, oldest first (a silent first success has no record of its own)."""

    async def overview(self, now: datetime, tenant: str | None = None) -> Overview:
        """Counts of now; of one tenant by reading a bounded number of jobs, and said to be estimated."""

    async def count(self, where: JobFilter, most: int) -> int:
        """How many jobs match, at most ``most``."""

    async def ahead(self, job: Job, most: int) -> int:
        """Due jobs of the same queue that a claim would take before this one, at most ``most``."""

    async def tenants(self, now: datetime, most: int) -> Mapping[str, QueueDepth]:
        """Live jobs by tenant, from at most ``most`` of them, the oldest first."""

    async def activity(self, since: datetime, until: datetime) -> Sequence[ActivityCount]:
        """How many jobs ended how, in the minutes that began within [since, until)."""

    async def prune(self, before: Mapping[State, datetime], limit: int, now: datetime) -> int:
        """Forget at most ``limit`` final jobs that finished before their state's instant; how many."""

    async def upkeep(self, now: datetime) -> None:
        """What this store alone needs every few minutes: partitions, statistics. Cheap when done."""

    async def examine(self, now: datetime) -> Sequence[Finding]:
        """What only this kind of store can tell of its health; what it may not see is a finding too."""

    def gauges(self) -> Mapping[str, float]:
        """Measures of this object itself, such as its connections: name → value, no I/O."""

    # --- the audit log ---------------------------------------------------------------------------

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add the lines, in order; each gets an id."""

    async def audit(self, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        """By id, newest first unless told otherwise. A row that cannot be read never hides the rest."""

    async def prune_audit(self, before: datetime, limit: int) -> int:
        """Forget at most ``limit`` lines older than this; how many."""

    # --- small versioned documents ---------------------------------------------------------------

    async def put(self, kind: str, key: str, body: str, expected: int | None, now: datetime) -> int | None:
        """Write if the version is ``expected`` (0: absent; None: any); the new version, None if refused."""

    async def get(self, kind: str, key: str) -> Document | None: ...

    async def find(self, kind: str) -> Sequence[Document]:
        """All documents of a kind, by key."""

    async def drop(self, kind: str, key: str) -> bool: ...
