"""Jobs and attempts: what is enqueued, what is stored, what is edited."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from .choices import FINAL, AttemptOutcome, Insertion, OnConflict, Origin, State
from .value import JobId, Value


class Backoff(msgspec.Struct, frozen=True):
    """How long to wait after failed attempt *n*: ``min(base * factor**(n-1), cap) + 0..jitter`` seconds."""

    base: float = 5.0
    factor: float = 2.0
    cap: float | None = 300.0
    jitter: float = 1.0

    @classmethod
    def standard(cls) -> Backoff:
        """5 s · 2ⁿ, at most 5 minutes, up to 1 s of jitter: the default."""
        return cls()

    @classmethod
    def patient(cls) -> Backoff:
        """10 s · 2ⁿ without a cap: for services that may be down for long."""
        return cls(base=10.0, cap=None)

    @classmethod
    def none(cls) -> Backoff:
        """At once, without jitter."""
        return cls(base=0.0, factor=1.0, cap=0.0, jitter=0.0)


class ErrorRecord(Value, frozen=True, kw_only=True):
    """A structured error: what is stored in ``job.error``. Its texts are bounded."""

    type: str
    message: str
    traceback: str | None = None
    at: datetime | None = None
    attempt: int | None = None
    details: Any = None  # plain JSON data that the task gave with ``Fail``


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
    key_for: float | None = None  # seconds that the key stays taken after a success; None: no longer
    on_conflict: OnConflict = "return"
    auto_remove: bool = False
    tags: tuple[str, ...] = ()
    parent: JobId | None = None
    origin: Origin = "api"
    schedule: str | None = None
    scheduled_for: datetime | None = None
    expires_at: datetime | None = None  # if it has not begun by then, it is cancelled
    keep: float | None = None  # seconds to keep it once it has finished; None: as the settings say
    concurrency_key: str | None = None  # the ``key:`` limit that it counts under
    units: int | None = None  # what it takes from the buckets of the rates that it is under; None: 1
    price: float | None = None  # cents reserved from its tenant's budget while it runs


class InsertResult(Value, frozen=True, kw_only=True):
    """The result for one NewJob: ``id`` is the live job that now answers the request."""

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
    lease_token: int = 0
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
    crashes: int = 0  # leases lost in a row: since an attempt last ended by itself
    expires_at: datetime | None = None  # None too once it has begun and returned to the queue
    keep: float | None = None
    snoozes: int = 0  # since it was enqueued or retried by an operator
    concurrency_key: str | None = None
    units: int = 1
    price: float | None = None

    @property
    def payload(self) -> Any:
        return msgspec.json.decode(self.payload_json)

    @property
    def output(self) -> Any:
        return None if self.output_json is None else msgspec.json.decode(self.output_json)

    @property
    def error(self) -> Any:
        """A mapping with ``type``, ``message``, ``traceback``, ``at``, ``attempt``, ``details``; or None."""
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
    lease_token: int


class Attempt(Value, frozen=True, kw_only=True):
    """The record of one execution. A first attempt that succeeds silently has none of its own."""

    job: JobId
    attempt: int
    lease_token: int
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


class JobFilter(Value, frozen=True, kw_only=True):
    """Which jobs; empty means all. Every given field must hold."""

    ids: tuple[JobId, ...] | None = None
    states: tuple[State, ...] | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    key: str | None = None
    concurrency_key: str | None = None
    tag: str | None = None
    parent: JobId | None = None
    schedule: str | None = None
    from_schedule: bool = False  # only jobs that a schedule created
    worker: str | None = None
    error: str | None = None  # found in the error's type or message, ignoring case
    payload: tuple[tuple[tuple[str, ...], str], ...] = ()  # (path, text): the value at that path
    not_tasks: tuple[str, ...] = ()
    not_queues: tuple[str, ...] = ()
    units_above: int | None = None  # only jobs that take more units than this
    after_id: JobId | None = None  # ids increase with time: these two also bound when a job was created
    before_id: JobId | None = None


class Edit(Value, frozen=True, kw_only=True):
    """An operator's patch and the states it may touch. Created only in ``core/jobs/lifecycle.py``.

    cancel: QUEUED/WAITING become CANCELLED at once; RUNNING is asked to stop (``cancel_requested``). With
            ``expired_by`` only those whose ``expires_at`` is not later.
    retry:  a final job becomes QUEUED again: attempt 0, no crashes, no snoozes, no expiry, due at ``run_at``,
            error kept until it finishes.
    move:   a QUEUED job gets the given ``run_at``, ``priority``, ``queue`` (None: unchanged).
    delete: the row, its attempts and its key are gone. Never a RUNNING job.
    """

    verb: Literal["cancel", "retry", "move", "delete"]
    touches: frozenset[State]
    run_at: datetime | None = None
    priority: int | None = None
    queue: str | None = None
    error_json: str | None = None
    expired_by: datetime | None = None
