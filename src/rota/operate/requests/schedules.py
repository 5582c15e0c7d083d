"""Requests of the actions on schedules, runs and calendars."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, UnsetType

from ...model import CalendarMode, Missed, OnScheduleConflict, Overlap
from ...schedules.runs import MOST_DAYS, WINDOW_DAYS
from .fields import (
    ActionRequest,
    Attempts,
    Cursor,
    Limit,
    Long,
    Name,
    Object,
    Priority,
    Seconds,
    Text,
    Timestamp,
)


class SchedulesRequest(ActionRequest, frozen=True, kw_only=True):
    """Which page of which schedules. ``last_run``, ``summary``: each with its own."""

    tenant: Text | None = None
    task: Text | None = None
    enabled: bool | None = None
    last_run: bool = False
    summary: bool = False
    limit: Limit = 50
    cursor: Cursor | None = None


class RuleFields(ActionRequest, frozen=True, kw_only=True):
    """The rule of a schedule: exactly one of cron, every, at."""

    cron: Annotated[str, Meta(max_length=256)] | None = None
    every: float | Text | None = None
    at: Timestamp | None = None
    timezone: Text | None = None
    start_at: Timestamp | UnsetType | None = msgspec.UNSET
    until: Timestamp | UnsetType | None = msgspec.UNSET
    jitter: float | Text | None = None


class UpdateScheduleRequest(RuleFields, frozen=True, kw_only=True):
    """What to change; a field that is left out stays as it is."""

    tenant: Name | None = None  # required if two tenants use the name
    task: Name | UnsetType = msgspec.UNSET
    payload: Object | UnsetType | None = msgspec.UNSET
    enabled: bool | UnsetType = msgspec.UNSET
    queue: Name | UnsetType | None = msgspec.UNSET
    priority: Priority | UnsetType | None = msgspec.UNSET
    max_attempts: Attempts | UnsetType | None = msgspec.UNSET
    timeout: Seconds | UnsetType | None = msgspec.UNSET
    description: Long | UnsetType = msgspec.UNSET
    missed: Missed | UnsetType = msgspec.UNSET
    missed_cap: Annotated[int, Meta(ge=1, le=10_000)] | UnsetType = msgspec.UNSET
    missed_window: float | Text | UnsetType | None = msgspec.UNSET
    overlap: Overlap | UnsetType = msgspec.UNSET
    calendar: Name | UnsetType | None = msgspec.UNSET
    calendar_mode: CalendarMode | UnsetType = msgspec.UNSET


class CreateScheduleRequest(UpdateScheduleRequest, frozen=True, kw_only=True):
    """The schedule to create; a field that is left out has its default.

    If the name is in use, ``on_conflict=update`` changes the given fields of that schedule.
    """

    name: Name
    task: Name
    on_conflict: OnScheduleConflict = "raise"


class TenantRequest(ActionRequest, frozen=True, kw_only=True):
    """The tenant of a schedule that is named in the path."""

    tenant: Text | None = None  # required if two tenants use the name


class SummaryRequest(TenantRequest, frozen=True, kw_only=True):
    """Over how many days to count runs."""

    days: Annotated[int, Meta(ge=1, le=MOST_DAYS)] = WINDOW_DAYS


class DisableRequest(TenantRequest, frozen=True, kw_only=True):
    """Why a schedule is disabled."""

    reason: Text | None = None


class PreviewRequest(TenantRequest, frozen=True, kw_only=True):
    """How many fire times to preview."""

    n: Annotated[int, Meta(ge=1, le=1000)] = 10


class RunsRequest(ActionRequest, frozen=True, kw_only=True):
    """Which page of which runs."""

    schedule: Text | None = None
    tenant: Text | None = None
    failed: bool = False
    limit: Limit = 50
    cursor: Cursor | None = None


class BackfillRequest(TenantRequest, frozen=True, kw_only=True):
    """The range of past fire times to create jobs for."""

    since: Timestamp
    until: Timestamp
    dry_run: bool = True


class ValidateRequest(RuleFields, frozen=True, kw_only=True):
    """A rule to check, and how many fire times to preview."""

    n: Annotated[int, Meta(ge=1, le=100)] = 5


class FiresRequest(ActionRequest, frozen=True, kw_only=True):
    """How far to look ahead."""

    hours: Annotated[float, Meta(gt=0, le=48)] = 24.0
    tenant: Text | None = None


class PutCalendarRequest(ActionRequest, frozen=True, kw_only=True):
    """The days of a calendar: dates, or the content of an iCalendar file."""

    dates: tuple[str, ...] | None = None
    weekend: Annotated[tuple[int, ...], Meta(max_length=7)] = (5, 6)
    ics: Annotated[str, Meta(max_length=500_000)] | None = None
    new: bool = False  # fail if the name is taken
