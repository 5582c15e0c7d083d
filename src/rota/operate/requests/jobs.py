"""Requests of the actions on jobs."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from ...model import OnConflict, State
from .fields import (
    ActionRequest,
    Attempts,
    Cursor,
    Ids,
    Limit,
    Name,
    Names,
    Object,
    Priority,
    Seconds,
    Text,
    Timestamp,
)


class JobSelector(ActionRequest, frozen=True, kw_only=True):
    """Which jobs. Every given field must match; without any, all jobs."""

    state: tuple[State, ...] = ()
    task: Text | None = None
    queue: Text | None = None
    tenant: Text | None = None
    tag: Text | None = None
    key: Text | None = None
    concurrency_key: Text | None = None
    schedule: Text | None = None
    parent: Text | None = None
    worker: Text | None = None
    error: Text | None = None  # a substring of the error's type or message
    payload: Names = ()  # each ``a.b=text``: the value at this path of the payload
    not_task: Names = ()
    not_queue: Names = ()
    since: Timestamp | None = None  # created at this time or later
    until: Timestamp | None = None  # created before


class JobsRequest(JobSelector, frozen=True, kw_only=True):
    """Which page of which jobs."""

    limit: Limit = 50
    cursor: Cursor | None = None
    order: Literal["newest", "oldest"] = "newest"


class CountRequest(JobSelector, frozen=True, kw_only=True):
    """Which jobs to count, and where to stop counting."""

    most: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class FailuresRequest(ActionRequest, frozen=True, kw_only=True):
    """Which failed jobs to group by error; ``limit`` counts groups."""

    task: Text | None = None
    queue: Text | None = None
    tenant: Text | None = None
    since: Timestamp | None = None  # created at this time or later
    until: Timestamp | None = None  # created before
    limit: Limit = 50


class EnqueueRequest(ActionRequest, frozen=True, kw_only=True):
    """The job to create; what is left out is the task's setting."""

    task: Name
    payload: Object = msgspec.field(default_factory=dict)
    queue: Name | None = None
    priority: Priority | None = None
    tenant: Name | None = None
    run_at: Timestamp | None = None
    delay: Seconds | None = None
    key: Name | None = None
    key_for: Text | None = None  # how long the key stays taken after a success: "1h", "forever"
    key_per: Text | None = None  # the period that has a key of its own: "1d"
    on_conflict: OnConflict | None = None
    max_attempts: Attempts | None = None
    timeout: Seconds | None = None
    auto_remove: bool | None = None
    expires: Timestamp | Seconds | None = None  # seconds after it is due, or a time
    keep: Seconds | None = None  # how long to keep it once it has finished
    concurrency_key: Name | None = None  # the limit ``key:…`` that it counts under
    units: int | None = None  # what it takes from the buckets of rates
    price: float | None = None  # cents reserved from its tenant's budget while it runs
    tags: Annotated[tuple[Name, ...], Meta(max_length=20)] = ()
    parent: Text | None = None
    idempotency_key: Text | None = None  # over HTTP: the header Idempotency-Key


class CancelRequest(ActionRequest, frozen=True, kw_only=True):
    """Why a job is cancelled."""

    reason: Text = "cancelled by an operator"


class UpdateJobRequest(ActionRequest, frozen=True, kw_only=True):
    """What to change of a queued job: due time, priority, queue. ``now``: due at once."""

    now: bool = False
    run_at: Timestamp | None = None
    priority: Priority | None = None
    queue: Name | None = None


class BulkRequest(ActionRequest, frozen=True, kw_only=True):
    """One step of an action on many jobs, by ids or by filter, oldest first.

    ``dry_run`` counts and shows a sample. A step handles at most ``limit`` jobs, fewer if the store is slow,
    and returns ``next``: send it as ``cursor`` to continue, or stop sending to stop. A request that is sent
    again continues too: jobs that are done no longer match.
    """

    action: Literal["retry", "cancel", "delete", "move"]
    ids: Ids | None = None
    filter: JobSelector | None = None
    reason: Text = "cancelled by an operator"
    move: UpdateJobRequest | None = None
    dry_run: bool = False
    limit: Annotated[int, Meta(ge=1, le=1000)] = 500
    cursor: Cursor | None = None
