"""What can be asked of the desk: the requests, as values. Query strings and bodies are made of these.

Every field has a default or is required; lists in a query string are written with commas.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ..model import Role, Scope, State

MOST = 200  # rows in a page
SHORTEST_PASSWORD = 12
Limit = Annotated[int, Meta(ge=1, le=MOST)]
Text = Annotated[str, Meta(max_length=200)]
Long = Annotated[str, Meta(max_length=2000)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Cursor = Annotated[str, Meta(max_length=1000)]
Names = Annotated[tuple[Name, ...], Meta(max_length=50)]
Ids = Annotated[tuple[Text, ...], Meta(min_length=1, max_length=1000)]
Priority = Annotated[int, Meta(ge=-(2**31 - 2), le=2**31 - 2)]
Seconds = Annotated[float, Meta(ge=0, le=10 * 365 * 86_400)]
Attempts = Annotated[int, Meta(ge=1, le=100)]
Object = dict[str, Any]
Instant = Annotated[datetime, Meta(tz=True)]


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all requests: an unknown field is an error."""


class EmptyRequest(ActionRequest, frozen=True, kw_only=True):
    """An action that needs no more than its path."""


# --- jobs ----------------------------------------------------------------------------------------


class JobSelector(ActionRequest, frozen=True, kw_only=True):
    """Which jobs. Every given field must hold; none given: all."""

    state: tuple[State, ...] = ()
    task: Text | None = None
    queue: Text | None = None
    tenant: Text | None = None
    tag: Text | None = None
    key: Text | None = None
    schedule: Text | None = None
    parent: Text | None = None
    worker: Text | None = None
    error: Text | None = None  # a text in the error's type or message
    payload: Names = ()  # each ``a.b=text``: what stands there in the payload
    not_task: Names = ()
    not_queue: Names = ()
    since: Instant | None = None  # made at this time or later
    until: Instant | None = None  # made before


class JobsRequest(JobSelector, frozen=True, kw_only=True):
    limit: Limit = 50
    cursor: Cursor | None = None
    order: Literal["newest", "oldest"] = "newest"


class CountRequest(JobSelector, frozen=True, kw_only=True):
    most: Annotated[int, Meta(ge=1, le=100_000)] = 10_000


class FailuresRequest(ActionRequest, frozen=True, kw_only=True):
    """Which failed jobs to group by what went wrong; ``limit``: groups."""

    task: Text | None = None
    queue: Text | None = None
    tenant: Text | None = None
    since: Instant | None = None  # made at this time or later
    until: Instant | None = None  # made before
    limit: Limit = 50


class EnqueueRequest(ActionRequest, frozen=True, kw_only=True):
    task: Name
    payload: Object = {}
    queue: Name | None = None
    priority: Priority | None = None
    tenant: Name | None = None
    run_at: Instant | None = None
    delay: Seconds | None = None
    key: Name | None = None
    on_conflict: Literal["return", "raise", "replace"] | None = None
    max_attempts: Attempts | None = None
    timeout: Seconds | None = None
    auto_remove: bool | None = None
    tags: Annotated[tuple[Name, ...], Meta(max_length=20)] = ()
    parent: Text | None = None
    idempotency_key: Text | None = None  # over HTTP: the header Idempotency-Key


class CancelRequest(ActionRequest, frozen=True, kw_only=True):
    reason: Text = "cancelled by an operator"


class UpdateJobRequest(ActionRequest, frozen=True, kw_only=True):
    """What to change of a queued job: when, how urgent, where. ``now``: due at once."""

    now: bool = False
    run_at: Instant | None = None
    priority: Priority | None = None
    queue: Name | None = None


class BulkRequest(ActionRequest, frozen=True, kw_only=True):
    """One step of an action on many jobs, by ids or by filter, oldest first.

    ``dry_run`` counts and shows a sample. A step handles at most ``limit`` jobs and answers with
    ``next``: send it as ``cursor`` to go on, or stop sending to stop.
    """

    action: Literal["retry", "cancel", "delete", "move"]
    ids: Ids | None = None
    filter: JobSelector | None = None
    reason: Text = "cancelled by an operator"
    move: UpdateJobRequest | None = None
    dry_run: bool = False
    limit: Annotated[int, Meta(ge=1, le=1000)] = 500
    cursor: Cursor | None = None


# --- gates ---------------------------------------------------------------------------------------


class PauseRequest(ActionRequest, frozen=True, kw_only=True):
    reason: Text = ""
    until: Instant | None = None
    for_s: Seconds | None = None  # instead of until


class GateRequest(PauseRequest, frozen=True, kw_only=True):
    scope: Scope
    name: Name | None = None
    tenant: Name | None = None  # of a schedule


# --- schedules -----------------------------------------------------------------------------------


class SchedulesRequest(ActionRequest, frozen=True, kw_only=True):
    tenant: Text | None = None
    task: Text | None = None
    enabled: bool | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class RuleFields(ActionRequest, frozen=True, kw_only=True):
    """Exactly one of cron, every, at."""

    cron: Annotated[str, Meta(max_length=256)] | None = None
    every: float | Text | None = None
    at: Instant | None = None
    timezone: Text | None = None
    start_at: Instant | msgspec.UnsetType | None = msgspec.UNSET
    until: Instant | msgspec.UnsetType | None = msgspec.UNSET
    jitter: float | Text | None = None


class UpdateScheduleRequest(RuleFields, frozen=True, kw_only=True):
    """What to change; what is left out stays as it is."""

    tenant: Name | None = None  # which one, if two tenants use the name
    task: Name | msgspec.UnsetType = msgspec.UNSET
    payload: Object | msgspec.UnsetType | None = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    queue: Name | msgspec.UnsetType | None = msgspec.UNSET
    priority: Priority | msgspec.UnsetType | None = msgspec.UNSET
    max_attempts: Attempts | msgspec.UnsetType | None = msgspec.UNSET
    timeout: Seconds | msgspec.UnsetType | None = msgspec.UNSET
    description: Long | msgspec.UnsetType = msgspec.UNSET
    missed: Literal["skip", "latest", "all"] | msgspec.UnsetType = msgspec.UNSET
    missed_cap: Annotated[int, Meta(ge=1, le=10_000)] | msgspec.UnsetType = msgspec.UNSET
    missed_window: float | Text | msgspec.UnsetType | None = msgspec.UNSET
    overlap: Literal["allow", "skip", "queue", "cancel_previous"] | msgspec.UnsetType = msgspec.UNSET
    calendar: Name | msgspec.UnsetType | None = msgspec.UNSET
    calendar_mode: Literal["skip", "next_working_day"] | msgspec.UnsetType = msgspec.UNSET


class CreateScheduleRequest(UpdateScheduleRequest, frozen=True, kw_only=True):
    name: Name
    task: Name


class TenantRequest(ActionRequest, frozen=True, kw_only=True):
    tenant: Text | None = None  # which one, if two tenants use the name


class DisableRequest(TenantRequest, frozen=True, kw_only=True):
    reason: Text | None = None


class PreviewRequest(TenantRequest, frozen=True, kw_only=True):
    n: Annotated[int, Meta(ge=1, le=1000)] = 10


class RunsRequest(ActionRequest, frozen=True, kw_only=True):
    schedule: Text | None = None
    tenant: Text | None = None
    failed: bool = False
    limit: Limit = 50
    cursor: Cursor | None = None


class BackfillRequest(TenantRequest, frozen=True, kw_only=True):
    since: Instant
    until: Instant
    dry_run: bool = True


class ValidateRequest(RuleFields, frozen=True, kw_only=True):
    n: Annotated[int, Meta(ge=1, le=100)] = 5


class FiresRequest(ActionRequest, frozen=True, kw_only=True):
    hours: Annotated[float, Meta(gt=0, le=48)] = 24.0
    tenant: Text | None = None


class PutCalendarRequest(ActionRequest, frozen=True, kw_only=True):
    """Dates, or the text of an iCalendar file."""

    dates: tuple[str, ...] | None = None
    weekend: Annotated[tuple[int, ...], Meta(max_length=7)] = (5, 6)
    ics: Annotated[str, Meta(max_length=500_000)] | None = None
    new: bool = False  # none of that name may be there yet


# --- the whole -----------------------------------------------------------------------------------


class ActivityRequest(ActionRequest, frozen=True, kw_only=True):
    """How many jobs ended how, in steps; by queue or task if asked."""

    hours: Annotated[float, Meta(gt=0, le=24 * 90)] = 12.0
    step_s: Annotated[int, Meta(ge=60, le=86_400)] = 300
    by: Literal["all", "queue", "task"] = "all"


class AuditRequest(ActionRequest, frozen=True, kw_only=True):
    actor: Text | None = None
    action: Text | None = None  # exact; or a beginning that ends with a dot: job.
    object: Long | None = None
    tenant: Text | None = None
    result: Literal["done", "refused", "failed"] | None = None
    since: Instant | None = None
    until: Instant | None = None
    limit: Limit = 50
    cursor: Cursor | None = None


class CreateTokenRequest(ActionRequest, frozen=True, kw_only=True):
    role: Role
    name: Text = ""
    tenant: Name | None = None
    expires_s: Seconds | None = None  # None: never
    payloads: bool | None = None  # None: operators and admins see payloads, viewers do not


class PutUserRequest(ActionRequest, frozen=True, kw_only=True):
    """A person who signs in with a password."""

    password: Annotated[str, Meta(min_length=SHORTEST_PASSWORD, max_length=1000)]
    role: Role
    tenant: Name | None = None
    payloads: bool | None = None
    new: bool = False  # nobody of that name may be there yet
