"""Frozen values that pass between the rooms of rota.

Owns: what a job, an attempt, a lease and a change look like. Must never do I/O, read the clock or
hold policy. Instants are aware UTC datetimes and end in ``_at`` (``lease_until`` and
``scheduled_for`` by promise). JSON texts are canonical (see ``core/payload.py``) and end in
``_json``; their decoded forms are properties, so that a job passes through without being parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import msgspec

JobId = str

Origin = Literal["api", "scheduler", "manual", "catchup", "sql", "job"]
OnConflict = Literal["return", "raise", "replace"]
Insertion = Literal["created", "existing", "replaced", "refused"]
Missed = Literal["skip", "latest", "all"]
Overlap = Literal["allow", "skip", "queue", "cancel_previous"]
CalendarMode = Literal["skip", "next_working_day"]
Source = Literal["code", "user", "registry", "sql"]
Role = Literal["viewer", "operator", "admin"]
Via = Literal["python", "cli", "http", "system"]
AuditResult = Literal["done", "refused", "failed"]
Scope = Literal["all", "queue", "task", "tenant", "schedule"]
Level = Literal["fine", "warning", "problem"]
AttemptOutcome = Literal["succeeded", "failed", "snoozed", "cancelled", "rescued", "released"]


class State(StrEnum):
    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED})
LIVE = frozenset({State.WAITING, State.QUEUED, State.RUNNING})


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of the frozen, slotted, keyword-only values. Never part of a cycle: not tracked by gc."""


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait after failed attempt *n*: ``min(base * factor**(n-1), cap) + 0..jitter`` seconds."""

    base: float = 5.0
    factor: float = 2.0
    cap: float | None = 300.0
    jitter: float = 1.0

    @classmethod
    def standard(cls) -> Backoff:
        """5 s · 2ⁿ, at most 5 minutes, up to 1 s of jitter: the default."""
        return cls(base=5.0, factor=2.0, cap=300.0, jitter=1.0)

    @classmethod
    def patient(cls) -> Backoff:
        """10 s · 2ⁿ without a cap: for services that stay away for long."""
        return cls(base=10.0, factor=2.0, cap=None, jitter=1.0)

    @classmethod
    def none(cls) -> Backoff:
        """At once, without jitter."""
        return cls(base=0.0, factor=1.0, cap=0.0, jitter=0.0)


class Fault(Value, frozen=True, kw_only=True):
    """A structured error: what is stored in ``job.error``. Its texts are bounded."""

    type: str
    message: str
    traceback: str | None = None
    at: datetime | None = None
    attempt: int | None = None


class Progress(Value, frozen=True, kw_only=True):
    percent: float
    message: str = ""


class LogLine(Value, frozen=True, kw_only=True):
    at: datetime
    level: str
    message: str


class NewJob(Value, frozen=True, kw_only=True):
    """A request to store a job; complete, validated, its id chosen by us."""

    id: JobId
    task: str
    payload_json: str = "{}"
    queue: str = "default"
    tenant: str = "default"
    priority: int = 0
    run_at: datetime | None = None  # None: due at once
    max_attempts: int = 3
    timeout: float | None = None  # seconds; None: as the task says
    backoff: Backoff | None = None  # None: as the task says
    key: str | None = None
    on_conflict: OnConflict = "return"
    auto_remove: bool = False
    tags: tuple[str, ...] = ()
    parent: JobId | None = None
    origin: Origin = "api"
    schedule: str | None = None
    scheduled_for: datetime | None = None


class Inserted(Value, frozen=True, kw_only=True):
    """What became of one NewJob: ``id`` is the live job that now stands for the request."""

    id: JobId
    outcome: Insertion
    state: State = State.QUEUED  # of the job that ``id`` names


class Job(Value, frozen=True, kw_only=False):
    """One request to run a task once, as the store holds it.

    Stores make it by position, in this order, which is several times quicker than by name.
    """

    id: JobId
    task: str
    state: State
    run_at: datetime
    created_at: datetime
    queue: str = "default"
    tenant: str = "default"
    priority: int = 0
    payload_json: str = "{}"
    output_json: str | None = None
    error_json: str | None = None
    attempt: int = 0
    max_attempts: int = 3
    token: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    lease_until: datetime | None = None
    worker: str | None = None
    timeout: float | None = None
    backoff: Backoff | None = None
    key: str | None = None
    auto_remove: bool = False
    tags: tuple[str, ...] = ()
    parent: JobId | None = None
    origin: Origin = "api"
    schedule: str | None = None
    scheduled_for: datetime | None = None
    cost_cents: float = 0.0
    progress_json: str | None = None
    cancel_requested: bool = False

    @property
    def payload(self) -> Any:
        return msgspec.json.decode(self.payload_json)

    @property
    def output(self) -> Any:
        return None if self.output_json is None else msgspec.json.decode(self.output_json)

    @property
    def error(self) -> Any:
        """A mapping with ``type``, ``message``, ``traceback``, ``at``, ``attempt``; or None."""
        return None if self.error_json is None else msgspec.json.decode(self.error_json)

    @property
    def progress(self) -> Any:
        """A mapping with ``percent`` and ``message``; or None."""
        return None if self.progress_json is None else msgspec.json.decode(self.progress_json)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL


class Lease(Value, frozen=True, kw_only=True):
    """The right to write to a running job: valid while the store holds this token for it."""

    id: JobId
    token: int


class Attempt(Value, frozen=True, kw_only=True):
    """The record of one execution. A first attempt that succeeds silently has none of its own."""

    job: JobId
    attempt: int
    token: int
    outcome: AttemptOutcome
    worker: str | None
    started_at: datetime | None
    finished_at: datetime
    error_json: str | None = None
    logs_json: str | None = None  # JSON array of LogLine
    cost_cents: float = 0.0

    @property
    def error(self) -> Any:
        return None if self.error_json is None else msgspec.json.decode(self.error_json)

    @property
    def logs(self) -> list[LogLine]:
        return [] if self.logs_json is None else msgspec.json.decode(self.logs_json, type=list[LogLine])


class Actor(Value, frozen=True, kw_only=True):
    """Who acts: for the rules of access, and for the audit log."""

    name: str
    role: Role = "viewer"
    tenant: str | None = None  # None: all tenants
    payloads: bool = False  # may see what jobs were given and what they returned
    via: Via = "python"
    ends_at: datetime | None = None  # of the credential; None: never
    request_id: str | None = None
    address: str | None = None


class AuditEntry(Value, frozen=True, kw_only=True):
    """One line of the audit log: who did what to which object, and how it ended. Never changed again."""

    action: str  # ``job.cancel``, ``queue.pause``, ``job.exhausted_retries``, ``email.sent`` …
    at: datetime
    id: str = ""  # given by the store: grows with time
    actor: str = "system"
    role: str | None = None
    via: str = "system"
    tenant: str | None = None  # of the object; None: it belongs to nobody
    object: str | None = None  # ``job:ID``, ``queue:mail``, ``schedule:default/nightly``, ``token:ID`` …
    before_json: str | None = None
    after_json: str | None = None
    result: str = "done"
    message: str | None = None
    request_id: str | None = None
    address: str | None = None

    @property
    def before(self) -> Any:
        return None if self.before_json is None else msgspec.json.decode(self.before_json)

    @property
    def after(self) -> Any:
        return None if self.after_json is None else msgspec.json.decode(self.after_json)


class AuditFilter(Value, frozen=True, kw_only=True):
    """Which lines; empty means all. Every given field must hold."""

    actor: str | None = None
    action: str | None = None  # exact, or all that begin with it when it ends with a dot: ``job.``
    object: str | None = None
    tenant: str | None = None
    result: str | None = None
    since_at: datetime | None = None
    until_at: datetime | None = None


class Change(Value, frozen=True, kw_only=False):
    """The decided end of an attempt: where the job goes, written only if (id, token) still holds."""

    id: JobId
    token: int
    state: State  # QUEUED, SUCCEEDED, FAILED or CANCELLED
    attempt: int  # the count to store: lowered when the attempt is refunded
    run_at: datetime | None = None  # when QUEUED; None: due at once
    output_json: str | None = None
    error_json: str | None = None
    started_at: datetime | None = None  # when the task's code began; None: keep the time of the claim
    cost_cents: float = 0.0  # added to the job's cost
    progress_json: str | None = None  # None: keep
    remove: bool = False  # leave no row: a succeeded ``auto_remove`` job
    record: Attempt | None = None
    then: tuple[NewJob, ...] = ()  # follow-up jobs, stored together with the change
    audit: tuple[AuditEntry, ...] = ()  # what must be told of it for ever, stored together with the change


class Want(Value, frozen=True, kw_only=True):
    """What a worker asks for in a claim."""

    worker: str
    limit: int
    lease_s: float
    queues: tuple[str, ...] | None = None  # None: all
    exclude_queues: tuple[str, ...] = ()
    tasks: tuple[str, ...] | None = None  # the tasks it knows; None: any
    exclude_tenants: tuple[str, ...] = ()


class Turn(Value, frozen=True, kw_only=True):
    """The answer to one turn of a worker: what was refused, what was claimed, what comes next."""

    refused: frozenset[JobId] = frozenset()
    jobs: Sequence[Job] = ()
    next_due_at: datetime | None = None  # earliest queued job that is not due yet, any queue


class Note(Value, frozen=True, kw_only=True):
    """Progress of a running job, written with the next beat."""

    id: JobId
    token: int
    progress_json: str


class Pulse(Value, frozen=True, kw_only=True):
    """One heartbeat of a process: who it is, the leases to renew, what its jobs have to say."""

    worker: str
    document: str  # JSON about the worker, shown by ``rota workers list``
    lease_s: float
    leases: Sequence[Lease] = ()  # to renew
    notes: Sequence[Note] = ()


class Reply(Value, frozen=True, kw_only=True):
    """``lost``: leases of the pulse that are no longer ours. ``cancel``: our jobs to stop."""

    lost: frozenset[JobId] = frozenset()
    cancel: frozenset[JobId] = frozenset()


class JobFilter(Value, frozen=True, kw_only=True):
    """Which jobs; empty means all. Every given field must hold."""

    ids: tuple[JobId, ...] | None = None
    states: tuple[State, ...] | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    key: str | None = None
    tag: str | None = None
    parent: JobId | None = None
    schedule: str | None = None
    scheduled: bool = False  # only jobs that a schedule made
    worker: str | None = None
    error: str | None = None  # this text stands in the error's type or message, in any case of letters
    payload: tuple[tuple[tuple[str, ...], str], ...] = ()  # (path, text): what stands there in the payload
    not_tasks: tuple[str, ...] = ()
    not_queues: tuple[str, ...] = ()
    after_id: JobId | None = None  # ids grow with time: these two also bound when a job was made
    before_id: JobId | None = None


class Edit(Value, frozen=True, kw_only=True):
    """An operator's patch and the states it may touch. Made only in ``core/lifecycle.py``.

    cancel: QUEUED/WAITING become CANCELLED at once; RUNNING is asked to stop (``cancel_requested``).
    retry:  a final job becomes QUEUED again: attempt 0, due at ``run_at``, error kept until it ends.
    move:   a QUEUED job gets the given ``run_at``, ``priority``, ``queue`` (None: unchanged).
    delete: the row, its attempts and its key are gone. Never a RUNNING job.
    """

    verb: Literal["cancel", "retry", "move", "delete"]
    touches: frozenset[State]
    run_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    error_json: str | None = None


class Schedule(Value, frozen=True, kw_only=True):
    """A stored rule that makes jobs: exactly one of ``cron``, ``every`` (seconds), ``at``."""

    id: str
    name: str  # unique per tenant
    task: str
    tenant: str = "default"
    cron: str | None = None
    every: float | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    start_at: datetime | None = None
    until: datetime | None = None
    jitter: float = 0.0
    payload_json: str = "{}"
    queue: str | None = None  # None, here and below: as the task says
    priority: int | None = None
    max_attempts: int | None = None
    timeout: float | None = None
    description: str = ""
    enabled: bool = True
    reason: str | None = None  # why it is not enabled
    missed: Missed = "latest"
    missed_cap: int = 100
    missed_window: float | None = None  # seconds
    overlap: Overlap = "allow"
    calendar: str | None = None
    calendar_mode: CalendarMode = "skip"
    source: Source = "user"
    owner: str | None = None  # the program whose code declares it
    declared_json: str | None = None  # what that code said last
    next_run_at: datetime | None = None  # the next fire time, without jitter; None: unknown, or never again
    look_at: datetime | None = None  # when a scheduler must look at it next; None: not before it is edited
    held: tuple[datetime, ...] = ()  # fires that wait for the previous run to end (overlap="queue")
    last_fire_at: datetime | None = None
    version: int = 0  # grows with every write; 0: not stored yet
    created_at: datetime
    updated_at: datetime

    @property
    def payload(self) -> Any:
        return msgspec.json.decode(self.payload_json)


class ScheduleFilter(Value, frozen=True, kw_only=True):
    """Which schedules; empty means all. Every given field must hold."""

    ids: tuple[str, ...] | None = None
    name: str | None = None
    tenant: str | None = None
    task: str | None = None
    enabled: bool | None = None
    source: Source | None = None
    owner: str | None = None


class Due(Value, frozen=True, kw_only=True):
    """Schedules to look at now, the most overdue first; and when to look again if there are none."""

    schedules: Sequence[Schedule] = ()
    next_look_at: datetime | None = None


class Firing(Value, frozen=True, kw_only=True):
    """One act of the scheduler on one schedule: carried out whole if its version is still ``expected``."""

    schedule: Schedule  # as it shall be; the store gives it the next version
    expected: int
    jobs: tuple[NewJob, ...] = ()  # their ids derive from (schedule, fire time): a second one is left out


class PageAsk(Value, frozen=True, kw_only=True):
    limit: int = 50
    cursor: str | None = None
    newest_first: bool = True
    brief: bool = False  # of jobs: without payload and output, which may be large


T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    items: Sequence[T]
    next: str | None = None


class QueueDepth(Value, frozen=True, kw_only=True):
    queued: int = 0  # due
    scheduled: int = 0  # queued, not yet due
    running: int = 0
    oldest_due_s: float | None = None


class Overview(Value, frozen=True, kw_only=True):
    """Counts of now. ``estimated`` names the counts that are not exact."""

    counts: Mapping[str, int]  # by state; every state has an entry
    oldest_due_s: float | None
    queues: Mapping[str, QueueDepth]
    estimated: frozenset[str] = frozenset()


class Tally(Value, frozen=True, kw_only=True):
    """How many jobs of a task ended in a state within a minute; older ones by the hour or the day."""

    at: datetime  # when the minute began
    queue: str
    task: str
    state: str  # succeeded, failed, cancelled; removed: succeeded and deleted itself
    n: int


class Gate(Value, frozen=True, kw_only=True):
    """A pause switch. While it stands, nothing it covers is begun; what runs goes on."""

    scope: Scope
    name: str | None = None  # of the queue, task, tenant or schedule; None for everything
    tenant: str | None = None  # of a schedule
    reason: str = ""
    actor: str = "system"
    since_at: datetime
    until_at: datetime | None = None  # None: until it is lifted
    by_tenant: str | None = None  # whose operator closed it; None: somebody who is bound to no tenant

    @property
    def id(self) -> str:
        return gate_id(self.scope, self.name, self.tenant)


def gate_id(scope: str, name: str | None = None, tenant: str | None = None) -> str:
    """``all``, ``queue:mail``, ``schedule:default/nightly``: a tenant's own slash is never taken for ours."""
    if scope == "all":
        return "all"
    if scope == "schedule":
        return f"schedule:{quote(tenant or 'default', safe='')}/{name}"
    return f"{scope}:{name}"


class Finding(Value, frozen=True, kw_only=True):
    """What an examination found: the thing that was looked at, how it is, and what to do about it."""

    check: str
    level: Level
    text: str
    remedy: str | None = None


class Document(Value, frozen=True, kw_only=True):
    """A small versioned JSON document: a worker, a gate, a limit, a token …"""

    kind: str
    key: str
    body: str  # JSON
    version: int
    updated_at: datetime


class Capabilities(Value, frozen=True, kw_only=True):
    """What a store can do beyond the verbs; data, so that callers never ask for its type."""

    transactional: bool  # a job can join the caller's own transaction
    push: bool  # wake-ups reach other processes without polling
    shared: bool  # other processes can open the same store
