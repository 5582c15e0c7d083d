"""Views of jobs, their attempts, failures and bulk actions."""

from __future__ import annotations

from typing import Any

import msgspec

from ...model import Attempt, Job, LogLine, State
from .base import Timestamp, View, Visibility


class JobView(View, frozen=True, kw_only=True):
    """A job."""

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
    run_at: Timestamp
    scheduled_for: Timestamp | None
    origin: str
    schedule: str | None
    key: str | None
    tags: tuple[str, ...]
    parent: str | None
    cost_cents: float
    progress: Any
    worker: str | None
    lease_until: Timestamp | None
    created_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    timeout: float | None
    auto_remove: bool
    cancel_requested: bool
    crashes: int
    expires_at: Timestamp | None
    keep: float | None
    snoozes: int
    concurrency_key: str | None
    units: int
    price: float | None


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
        error=visibility.error(job.error_json),
        progress=visibility.progress(job.progress_json),
    )


class EnqueuedView(JobView, frozen=True, kw_only=True):
    """A job as the answer to its enqueueing."""

    warning: str | None = None  # why it may wait for long


def enqueued_view(job: Job, visibility: Visibility, warning: str | None) -> EnqueuedView:
    view = job_view(job, visibility)
    return EnqueuedView(**{name: getattr(view, name) for name in JobView.__struct_fields__}, warning=warning)


class AttemptView(View, frozen=True, kw_only=True):
    """One attempt of a job."""

    attempt: int
    lease_token: int
    outcome: str
    worker: str | None
    started_at: Timestamp | None
    finished_at: Timestamp
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
        lease_token=attempt.lease_token,
        outcome=attempt.outcome,
        worker=attempt.worker,
        started_at=attempt.started_at,
        finished_at=attempt.finished_at,
        error=visibility.error(attempt.error_json),
        logs=logs if visibility.payloads else (),
        cost_cents=attempt.cost_cents,
    )


class Count(View, frozen=True, kw_only=True):
    """The number of matching jobs."""

    count: int
    exact: bool  # False: there are at least this many


class BulkResult(View, frozen=True, kw_only=True):
    """One step of an action on many jobs."""

    action: str
    dry_run: bool
    matched: int  # now; with exact=False at least this many
    exact: bool
    done: int  # in this step
    refused: int  # in this step: their state or idempotency key does not allow it
    total: int = 0  # done in this step and those before it
    sample: tuple[JobView, ...] = ()  # of a dry run
    next: str | None = None  # the cursor of the next step; None: this was the last


class FailureGroup(View, frozen=True, kw_only=True):
    """Failed jobs of one task whose errors differ only in numbers and quoted names."""

    fingerprint: str
    task: str
    type: str
    pattern: str  # the message; where messages differ, with # for numbers and … for quoted names
    message: str  # of the newest job
    count: int
    first_at: Timestamp  # when the first and the last of the jobs that were read failed
    last_at: Timestamp
    newest: str  # the job that was created last
    ids: tuple[str, ...]  # newest first, at most as many as a bulk action takes


class FailureGroups(View, frozen=True, kw_only=True):
    """Failed jobs grouped by error, the largest group first."""

    items: tuple[FailureGroup, ...]
    groups: int  # in total, of which items are the first
    of: int  # failed jobs that were read, the newest ones
    more: bool  # older failed jobs were not read
    last_at: Timestamp | None  # when the last of them failed
    next: None = None  # as in every list: this one has a single page
