"""What the desk answers: values made for people and programs, secrets masked. The JSON of the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..core.payload.masking import HIDDEN, masked
from ..model import Attempt, AuditEntry, Finding, Gate, Job, LogLine, QueueDepth, Schedule, State

Instant = Annotated[datetime, Meta(tz=True)]


class View(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers."""


class Visibility(View, frozen=True, kw_only=True):
    """What a caller may see: whether payloads at all, and which fields are secret."""

    payloads: bool
    secrets: tuple[str, ...]

    def of(self, text: str | None) -> Any:
        """A stored JSON text as the caller may see it; a broken one stays readable."""
        if text is None:
            return None
        if not self.payloads:
            return HIDDEN
        return self.open(text)

    def open(self, text: str | None) -> Any:
        """The same for what is no payload: errors, progress."""
        if text is None:
            return None
        try:
            return masked(msgspec.json.decode(text), self.secrets)
        except (msgspec.DecodeError, RecursionError):
            return {"unreadable": text[:1000]}


class JobView(View, frozen=True, kw_only=True):
    id: str
    tenant: str
    queue: str
    task: str
    state: State
    priority: int
    payload: Any
    output: Any
    error: Any
    attempt: int
    max_attempts: int
    run_at: Instant
    scheduled_for: Instant | None
    origin: str
    schedule: str | None
    key: str | None
    tags: tuple[str, ...]
    parent: str | None
    cost_cents: float
    progress: Any
    worker: str | None
    lease_until: Instant | None
    created_at: Instant
    started_at: Instant | None
    finished_at: Instant | None
    timeout: float | None
    auto_remove: bool
    cancel_requested: bool


_SAME = tuple(
    name
    for name in JobView.__struct_fields__
    if name not in ("payload", "output", "error", "progress") and name in Job.__struct_fields__
)


def job_view(job: Job, visibility: Visibility) -> JobView:
    return JobView(
        **{name: getattr(job, name) for name in _SAME},
        payload=visibility.of(job.payload_json),
        output=visibility.of(job.output_json),
        error=visibility.open(job.error_json),
        progress=_progress(visibility.open(job.progress_json), visibility),
    )


def _progress(told: Any, visibility: Visibility) -> Any:
    """Log lines may quote the payload: they are for who may see it."""
    if visibility.payloads or not isinstance(told, dict):
        return told
    return {name: value for name, value in told.items() if name != "log"}


class AttemptView(View, frozen=True, kw_only=True):
    attempt: int
    token: int
    outcome: str
    worker: str | None
    started_at: Instant | None
    finished_at: Instant
    error: Any
    logs: tuple[LogLine, ...]
    cost_cents: float


def attempt_view(attempt: Attempt, visibility: Visibility) -> AttemptView:
    try:
        logs = tuple(attempt.logs)
    except msgspec.DecodeError:
        logs = ()
    return AttemptView(
        attempt=attempt.attempt,
        token=attempt.token,
        outcome=attempt.outcome,
        worker=attempt.worker,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        error=visibility.open(attempt.error_json),
        logs=logs if visibility.payloads else (),
        cost_cents=attempt.cost_cents,
    )


class Count(View, frozen=True, kw_only=True):
    count: int
    exact: bool  # False: there are at least so many


class BulkResult(View, frozen=True, kw_only=True):
    """One step of an action on many jobs."""

    action: str
    dry_run: bool
    matched: int  # that match now; with exact=False at least so many
    exact: bool
    done: int  # in this step
    refused: int  # in this step: their state or key forbids it
    sample: tuple[JobView, ...] = ()  # of a dry run
    next: str | None = None  # the cursor of the next step; None: there is none


class FailureGroup(View, frozen=True, kw_only=True):
    """Failed jobs of one task that differ in numbers and quoted names alone."""

    fingerprint: str
    task: str
    type: str
    pattern: str  # the message; where those of the group differ, with # for numbers and … for quoted names
    message: str  # of the newest
    count: int
    first_at: Instant  # when one ended like this first and last, among those that were read
    last_at: Instant
    newest: str  # the job that was made last
    ids: tuple[str, ...]  # newest first, no more than a bulk action takes


class FailureGroups(View, frozen=True, kw_only=True):
    """Failed jobs by what went wrong, the most frequent first."""

    items: tuple[FailureGroup, ...]
    groups: int  # of which items are the first
    of: int  # failed jobs that were read, the newest
    more: bool  # there are older ones, which were not
    last_at: Instant | None  # when the last of them ended
    next: None = None  # as in every list: this one has a single page


class GateView(View, frozen=True, kw_only=True):
    id: str
    scope: str
    name: str | None
    tenant: str | None
    reason: str
    actor: str
    since_at: Instant
    until_at: Instant | None
    by_tenant: str | None = None  # whose operator closed it; None: one who is bound to no tenant


def gate_view(gate: Gate) -> GateView:
    return GateView(
        id=gate.id,
        scope=gate.scope,
        name=gate.name,
        tenant=gate.tenant,
        reason=gate.reason,
        actor=gate.actor,
        since_at=gate.since_at,
        until_at=gate.until_at,
        by_tenant=gate.by_tenant,
    )


class Stats(View, frozen=True, kw_only=True):
    waiting: int
    queued: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    oldest_due_s: float | None
    queues: dict[str, QueueDepth]
    estimated: tuple[str, ...]  # counts that are not exact
    paused: bool  # everything is
    now: Instant


class QueueView(View, frozen=True, kw_only=True):
    name: str
    queued: int
    scheduled: int
    running: int
    oldest_due_s: float | None
    per_minute: float  # jobs that ended, over the last ten minutes
    failed_per_minute: float
    workers: int  # live ones that serve it
    gate: GateView | None


class TaskView(View, frozen=True, kw_only=True):
    name: str
    per_minute: float
    failed_per_minute: float
    workers: int  # live ones that know it
    p50_ms: float | None  # of the newest runs that succeeded
    p95_ms: float | None
    p99_ms: float | None
    queues: tuple[str, ...]  # that its newest jobs were in
    gate: GateView | None


class TenantView(View, frozen=True, kw_only=True):
    name: str
    queued: int
    scheduled: int
    running: int
    oldest_due_s: float | None
    schedules: int
    cost_cents: float  # of the newest jobs
    estimated: bool
    gate: GateView | None


class WorkerView(View, frozen=True, kw_only=True):
    id: str
    name: str | None
    host: str
    pid: int
    state: str  # running, draining, paused, lost
    queues: tuple[str, ...] | None
    exclude_queues: tuple[str, ...]
    tasks: tuple[str, ...]
    concurrency: int
    running: int
    finished: int
    started_at: Instant | None
    seen_at: Instant
    version: str | None = None


class ActivityBucket(View, frozen=True, kw_only=True):
    """How many jobs ended how within one step of time."""

    at: Instant
    name: str | None  # the queue or task; None: all
    succeeded: int
    failed: int
    cancelled: int


class ScheduleView(View, frozen=True, kw_only=True):
    id: str
    name: str
    tenant: str
    task: str
    cron: str | None
    every: float | None
    at: Instant | None
    timezone: str
    words: str  # the rule, told
    start_at: Instant | None
    until: Instant | None
    jitter: float
    payload: Any
    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: float | None
    description: str
    enabled: bool
    reason: str | None
    missed: str
    missed_cap: int
    missed_window: float | None
    overlap: str
    calendar: str | None
    calendar_mode: str
    source: str
    owner: str | None
    next_run_at: Instant | None
    last_fire_at: Instant | None
    held: tuple[Instant, ...]  # fires that wait for the previous run to end
    late_s: float | None  # how long its next fire is overdue; None: it is not
    version: int
    created_at: Instant
    updated_at: Instant
    gate: GateView | None


_SCHEDULE = tuple(
    name
    for name in ScheduleView.__struct_fields__
    if name in Schedule.__struct_fields__ and name not in ("payload",)
)


def schedule_view(
    schedule: Schedule, visibility: Visibility, words: str, gate: Gate | None, now: datetime
) -> ScheduleView:
    late = None
    if schedule.enabled and schedule.next_run_at is not None and schedule.next_run_at < now:
        late = (now - schedule.next_run_at).total_seconds()
    return ScheduleView(
        **{name: getattr(schedule, name) for name in _SCHEDULE},
        payload=visibility.of(schedule.payload_json),
        words=words,
        late_s=late,
        gate=None if gate is None else gate_view(gate),
    )


class FireView(View, frozen=True, kw_only=True):
    at: Instant
    local: str  # in the schedule's own zone
    note: str | None = None


class Preview(View, frozen=True, kw_only=True):
    words: str
    timezone: str
    fires: tuple[FireView, ...]


class UpcomingFire(View, frozen=True, kw_only=True):
    """One fire to come, of any schedule."""

    at: Instant
    schedule: str
    tenant: str


class TruncatedSchedule(View, frozen=True, kw_only=True):
    """A schedule that fires more often than is told: its fires after ``after`` are left out."""

    schedule: str
    tenant: str
    after: Instant


class Fires(View, frozen=True, kw_only=True):
    """Fires to come, in the order of time, and what was left out of them."""

    items: tuple[UpcomingFire, ...]
    cut: tuple[TruncatedSchedule, ...]
    more: bool  # all together were too many: later ones, or whole schedules, are left out
    next: None = None  # as in every list: this one has a single page


class Backfill(View, frozen=True, kw_only=True):
    dry_run: bool
    fires: tuple[Instant, ...]


class CalendarView(View, frozen=True, kw_only=True):
    name: str
    dates: tuple[str, ...]
    weekend: tuple[int, ...]


class AuditView(View, frozen=True, kw_only=True):
    id: str
    at: Instant
    action: str
    actor: str
    role: str | None
    via: str
    tenant: str | None
    object: str | None
    before: Any
    after: Any
    result: str
    message: str | None
    request_id: str | None
    address: str | None


def audit_view(entry: AuditEntry, visibility: Visibility) -> AuditView:
    same = {n: getattr(entry, n) for n in AuditView.__struct_fields__ if n not in ("before", "after")}
    return AuditView(
        **same, before=_kept(entry.before_json, visibility), after=_kept(entry.after_json, visibility)
    )


def _kept(text: str | None, visibility: Visibility) -> Any:
    """What the log keeps of a thing; a schedule's payload is for who may see payloads."""
    told = visibility.open(text)
    if visibility.payloads or not isinstance(told, dict) or "payload" not in told:
        return told
    return {**told, "payload": HIDDEN}


class TokenView(View, frozen=True, kw_only=True):
    id: str
    name: str
    role: str
    tenant: str | None
    payloads: bool
    created_at: Instant
    created_by: str
    expires_at: Instant | None
    last_used_at: Instant | None


class NewToken(TokenView, frozen=True, kw_only=True):
    token: str  # shown once


class UserView(View, frozen=True, kw_only=True):
    name: str
    role: str
    tenant: str | None
    payloads: bool
    created_at: Instant


class DoctorReport(View, frozen=True, kw_only=True):
    findings: tuple[Finding, ...]
    worst: str  # fine, warning, problem


class Setting(View, frozen=True, kw_only=True):
    name: str
    value: Any  # secrets masked
    default: Any
    source: str
    range: tuple[float, float] | None
    help: str


class CurrentActor(View, frozen=True, kw_only=True):
    """Who is asking, and what they may."""

    name: str
    role: str
    tenant: str | None
    payloads: bool
    permissions: tuple[str, ...]
    version: str
    store: str | None  # None: not for this caller
    now: Instant
