"""The store protocol: what rota asks of a database, and what each method means.

Batches in, batches out. Times come in as ``now``. Where it may be None the store reads its own clock, one
for all who share the store, at the moment of the write; a given ``now`` takes its place, for tests. A
write returns what was rejected, usually nothing. A store needs no SQL and no particular
engine: any engine that keeps the rules below will do. What engines may differ in is data
(``capabilities``), and callers ask that, never the type.

The rules. Each number marks the tests that check it in ``rota.testing.store_conformance``.

1.  Insert. ``insert`` is idempotent by id among live jobs; with ``retrying=True`` (the caller does not
    know whether an earlier call was stored) among all jobs. The results are in the order of the jobs.
2.  Keys. A ``key`` fills a slot, unique per tenant, from the insert until the job reaches a final state;
    after a success for ``key_for`` seconds more, also if the job is removed or deleted by age by then.
    ``on_conflict`` decides what happens to a second job with the same key. A retry fills the slot again,
    and is left out if another job has filled it meanwhile.
3.  Claim. A claim raises the lease token by one, always, and counts an attempt; a job is claimed by one
    worker at a time. ``reclaim`` raises the token and counts no attempt.
4.  Order. Within a queue jobs are claimed by priority (larger first), due time, id. Between queues the
    higher priority comes first, and queues of equal priority share a claim evenly.
5.  Eligibility. A job that is not due, whose task or queue was not asked for, or whose tenant or queue
    is excluded, is never claimed.
6.  Fence. ``heartbeat`` and ``turn`` touch a job only if it is running and both its lease token and its
    holder are the caller's. Never compare attempt numbers.
7.  Atomicity. Each settlement and each claimed job is atomic by itself: state, attempt record, follow-up
    jobs and audit entries of one settlement are written together or not at all, also when the process
    or the server dies in between. The batch need not be (``capabilities.atomic_batch``). A start that the
    worker's clock puts behind the end is stored as the end.
8.  Schedules. ``fire`` and ``put_schedules`` write a schedule only if its version is the expected one. A
    firing is atomic: the schedule and its jobs, or nothing. There may be any number of schedulers.
9.  Edits. ``edit`` applies one constant patch to the given ids, in the states it names, and returns the
    ids it changed. A cancel requested of a running job survives its return to the queue.
10. Reading. Pages have a stable order, and following their cursors to the end visits every row that was
    there all the time exactly once. A row that cannot be read never hides the others.
11. Counts. Answers of ``survey`` are exact, or bounded and marked as estimated. No count reads without
    a bound.
12. Deletion by age. ``maintain`` deletes only final jobs and audit entries that are older than the given
    times, at most ``limit`` of each, the oldest first; audit entries in whole batches that are sealed, at
    least one.
13. Audit. The audit log is append-only; only ``maintain`` deletes from it. The ids that one writer's
    entries get grow in the order of appending, and the reading order of all entries never changes. Seals
    are numbered without gaps. ``maintain`` marks the seal of the last batch it deletes as pruned, deletes
    the seals before it, and keeps the others.
14. Documents and rules. ``put_document`` and ``put_rules`` compare the version; of several writers that
    expect the same one, one succeeds.
15. Hints. A waker may be late, or wake for nothing: polling alone is correct. ``capabilities.wakes`` says
    which hints reach other processes.
16. No policy. A store has no backoff, no cron, no retry rules, and logs nothing about jobs. It keeps the
    limits, weights and budgets it was given by the arithmetic of ``core/jobs/admission.py``; where speed
    needs that in the engine's own language, a property test holds it to the pure one.
17. Acknowledgement. When a write returns, it is stored as ``capabilities.durable`` promises.
18. Failures. A server or connection that fails raises ``StoreUnavailable``, and so does a store that is
    closed; no error of the driver leaks out. Data that the engine cannot hold raises ``StoreError`` and
    does no harm to jobs of other callers. A schema of another version raises ``SchemaMismatch``.
19. Event loops. One store object belongs to one event loop. ``for_another_loop`` gives another object on
    the same data. ``abandon`` releases what an object held when its loop has ended. After a fork the
    child opens its own.
20. Transactions. ``insert_with`` stores its jobs, and ``within`` changes schedules and the audit log, if
    and only if the caller's transaction commits, where ``capabilities.transactional`` promises it; else,
    and for a connection of an unknown kind, they raise ``ConfigError``.
21. Time. Leases are written and judged by one clock, the store's. With ``now=None`` it alone decides what
    is due, until when a lease lasts and which has expired, whatever the clocks of the callers show, and
    the answer includes its time. A claim later than its ``until`` brings nothing: no worker waits for it.
22. Limits. A job is under the limits of its queue, task, tenant and key, and begins only if all admit it.
    A key's own rule comes before those of families, of which the longest prefix holds, for each key alone.
    Never more than ``running`` run at any instant, counted from the jobs that run, whenever they were
    claimed. Jobs of one key, queue and tenant keep their order under such a limit; while a strict key waits
    for a retry, nothing else of it begins. Of jobs under a limit a claim brings at most ``free``,
    and more only while as many as it asked for, and of a family's key one, could begin besides.
23. Rates. Never more units begin than the bucket of a rate holds by the store's clock, over all workers. A
    job that needs more than there are is not overtaken by others under the same limit. One that is released
    before it has begun returns its units, without those that have come back by themselves. ``next_due_at``
    is no later than the next token for a job that was met.
24. Fair shares. Within a queue and a priority the tenants that wait share a claim by weight, and what the
    worker has in hand counts; what one does not use, others get. Each tenant keeps its own order.
25. Held jobs. What a limit, a budget or an exclusion holds up delays nothing else, is not changed by it, and
    begins in its old place when nothing holds it up. A claim that has not looked at everything
    says so by ``next_due_at``.
26. Budgets. A tenant's job begins only while the tenant has spent less than its budget in the period, with
    the prices of what runs, and if its own price is left. ``next_due_at`` is no later than the period's end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from ..model import (
    Answer,
    Attempt,
    AuditEntry,
    AuditFilter,
    AuditSeal,
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
    Page,
    PageRequest,
    PruneResult,
    Question,
    RetentionCutoffs,
    Rule,
    Schedule,
    ScheduleFilter,
    Settlement,
    TurnResult,
)


class Waker(Protocol):
    """Hints that something happened. A hint may be missing or wrong: polling alone is correct."""

    async def wait(self, queues: Sequence[str] | None, timeout: float) -> int | None:
        """Return when a job may have become ready in one of the queues, or after ``timeout`` seconds.

        A number: about this many jobs became ready in another process, which told all workers, so
        a few of them may be enough. None: look at once.
        """

    async def wait_finished(self, job: JobId, timeout: float) -> None:
        """Return when the job may have finished, or after ``timeout`` seconds."""

    async def wait_schedules(self, timeout: float) -> bool:
        """True as soon as a schedule may have been added or edited, by any program or by hand; False: not
        within ``timeout`` seconds. Firing one is no edit.
        """

    async def close(self) -> None: ...


class StoreSchema(Protocol):
    """What must exist in the database before a store can be opened: tables, indexes, collections."""

    @property
    def text(self) -> str:
        """All migrations as text that an administrator can review and run."""

    async def pending(self) -> Sequence[str]:
        """Names of the migrations not yet applied; SchemaMismatch if the schema is newer than rota."""

    async def migrate(self, *, fresh: bool = False) -> Sequence[str]:
        """Bring the schema up to date; names of the migrations applied. Safe from several processes.

        ``fresh`` deletes everything rota has stored first, in the same act: for tests alone.
        """


class StoreWithin(Protocol):
    """The part of a store that also works in the caller's own transaction: schedules and what they need.

    A store has these methods itself, for transactions of its own.
    """

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]: ...
    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]: ...
    async def delete_schedules(self, ids: Sequence[str]) -> Sequence[str]: ...
    async def documents(self, kind: str, key: str) -> Sequence[Document]: ...
    async def survey(self, question: Question[Answer]) -> Answer: ...
    async def append_audit(self, entries: Sequence[AuditEntry]) -> None: ...


class CallerStore(StoreWithin, Protocol):
    """A store in the transaction of a caller's connection. Unless that ``is_async``, nothing here waits."""

    @property
    def is_async(self) -> bool: ...


class Store(Protocol):
    # --- data --------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """The address without any password: safe to print."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def schema(self) -> StoreSchema: ...

    @property
    def gauges(self) -> Mapping[str, float]:
        """Metrics of this object itself, such as its connections: name to value, without I/O."""

    # --- life --------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect and check the schema; SchemaMismatch names both versions and the remedy."""

    async def close(self) -> None:
        """Release everything; safe to call twice."""

    def abandon(self) -> None:
        """Release at once what belongs to the event loop: it has ended, or is ending, in any thread.

        What outlives loops, such as a database in memory, stays until ``close``.
        """

    def for_another_loop(self) -> Store:
        """A store on the same data, for the event loop of another thread. Its user closes it."""

    def waker(self) -> Waker: ...

    async def clock(self) -> datetime:
        """The server's own time."""

    # --- the hot path ------------------------------------------------------------------------------

    async def insert(
        self, jobs: Sequence[NewJob], now: datetime, *, retrying: bool = False
    ) -> Sequence[InsertResult]:
        """Store the jobs and wake workers; one result per job, in order. Calls may share a write."""

    def insert_with(
        self, connection: Any, jobs: Sequence[NewJob], now: datetime | None, *, retrying: bool = False
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        """Store the jobs on the caller's own connection, in its transaction, which the caller commits.

        Returns an awaitable if the connection is asynchronous. ``now=None``: the server's time.
        ``retrying``: as in ``insert``.
        Raises ConfigError for a connection of an unknown kind, or without ``capabilities.transactional``.
        """

    def within(self, connection: Any) -> CallerStore:
        """Schedules on the caller's own connection, in its transaction, which the caller commits.

        ``schedules`` there need only find one by tenant and name, and ``survey`` only answer ``TenantRules``
        and ``TenantsInUse``: how many waiting jobs and schedules. Raises ConfigError as ``insert_with``.
        """

    async def turn(
        self, settlements: Sequence[Settlement], request: ClaimRequest | None, now: datetime | None
    ) -> TurnResult:
        """Settle, then claim, in one round trip: all that a worker does with a job.

        ``store/calls.py`` has ``claim`` and ``settle``, which are turns with one half empty.
        """

    async def heartbeat(self, heartbeat: Heartbeat, now: datetime | None) -> HeartbeatReply:
        """Renew leases until now + lease_s, write progress, record the worker; one call per process.

        ``cancel`` in the reply names every running job of this worker that should stop, whether the
        heartbeat lists it or not.
        """

    async def reclaim(self, holder: str, lease_s: float, limit: int, now: datetime | None) -> Sequence[Job]:
        """Take running jobs whose lease has expired: token + 1, worker = holder, lease_until = now + lease_s.

        The returned jobs still name the *former* worker, so that the rescue can be explained.
        """

    # --- schedules ---------------------------------------------------------------------------------

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        """Write each one whose stored version is its ``version`` (0: absent); new versions, None if rejected.

        A name that another schedule of the tenant has is rejected too. ``updated_at`` becomes now.
        """

    async def delete_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        """Delete them; the ids that existed. Their jobs stay."""

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        """By tenant and name, always."""

    async def due_schedules(self, now: datetime | None, limit: int) -> DueSchedules:
        """Enabled schedules whose ``check_at`` has come, or is missing on a schedule written by hand.

        Where rows can be written by hand, ``updated_at`` is when that was done by the store's clock, a
        change of what decides when it fires clears ``next_run_at``, and a ``next_run_at`` that was given
        is also its ``manual_run_at``.

        ``busy`` names those of them that have a live job; schedules whose runs may overlap can be left out.
        """

    async def fire(self, firings: Sequence[Firing], now: datetime | None) -> frozenset[str]:
        """Compare versions, write the schedules, insert the jobs; the ids of the schedules rejected.

        Rejected: fired, edited or disabled by someone else meanwhile. A job whose id exists in any
        state is left out. Workers are woken as by ``insert``.
        """

    # --- operators ---------------------------------------------------------------------------------

    async def edit(self, ids: Sequence[JobId], edit: Edit, now: datetime) -> Sequence[JobId]:
        """Apply the edit to those of the jobs that are in a state it may touch; the ids it changed."""

    async def jobs(self, where: JobFilter, page: PageRequest) -> Page[Job]:
        """By id, newest first unless the page says otherwise.

        ``page.brief``: the payload is {} and the output None, and neither need be read.
        """

    async def attempts(self, job: JobId) -> Sequence[Attempt]:
        """Recorded attempts, oldest first (a silent first success has no record of its own)."""

    async def survey(self, question: Question[Answer]) -> Answer:
        """Count: see the questions in ``model/overview.py``. StoreError for an unknown one."""

    async def put_rules(self, rules: Sequence[Rule], now: datetime | None) -> Sequence[int | None]:
        """Write each one whose stored version is its ``version`` (0: absent); new versions, None if rejected.

        One that says nothing is deleted, and its new version is 0. ``updated_at`` becomes now. Every claim
        that begins after the return keeps to it; jobs that run already count. A bucket keeps what was
        taken from it, but is never further from full than its new rate and burst allow. A row that cannot
        be read counts as absent.
        """

    async def maintain(self, before: RetentionCutoffs, limit: int, now: datetime) -> PruneResult:
        """Delete what is older than its cutoff, at most ``limit`` of each kind; how much.

        A call that leaves nothing to delete also does what this store alone needs every few minutes,
        such as partitions and statistics; cheap when there is nothing to do.
        """

    async def check_health(self, now: datetime) -> Sequence[Finding]:
        """What only this kind of store knows about its health; what it may not see is a finding too."""

    # --- the audit log -----------------------------------------------------------------------------

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Add the entries, in order; each gets an id."""

    async def audit(self, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        """By id, newest first unless the page says otherwise."""

    async def seal_audit(self, seal: AuditSeal, ids: Sequence[str]) -> bool:
        """Store the seal and put these entries under it; False, and nothing is done, if its number is not
        the next or one of the entries is gone or sealed already."""

    # --- small versioned documents -----------------------------------------------------------------

    async def put_document(
        self, kind: str, key: str, body: str, expected: int | None, now: datetime
    ) -> int | None:
        """Write if the version is ``expected`` (0: absent; None: any); the new version, None if rejected."""

    async def documents(self, kind: str, key: str | None = None) -> Sequence[Document]:
        """The documents of a kind by key, or the one with this key."""

    async def delete_document(self, kind: str, key: str) -> bool:
        """Whether it existed."""
