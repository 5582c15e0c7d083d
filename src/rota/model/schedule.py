"""Schedules and the firing of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from .choices import CalendarMode, Missed, Overlap, Source
from .job import NewJob
from .value import Value


class Schedule(Value, frozen=True, kw_only=True):
    """A stored rule that creates jobs: exactly one of ``cron``, ``every`` (seconds), ``at``."""

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
    declared_json: str | None = None  # what that code declared last
    next_run_at: datetime | None = None  # the next fire time, without jitter; None: unknown, or never again
    manual_run_at: datetime | None = None  # equals next_run_at: someone set it, whatever the rule says
    check_at: datetime | None = None  # when a scheduler must check it next; None: not before it is edited
    held: tuple[datetime, ...] = ()  # fires held until the previous run finishes (overlap="queue")
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


class DueSchedules(Value, frozen=True, kw_only=True):
    """Schedules to check now, the most overdue first; and when to check again if there are none."""

    at: datetime  # the store's time: "now"
    schedules: Sequence[Schedule] = ()
    next_check_at: datetime | None = None
    busy: frozenset[str] = frozenset()  # ids of those that have a live job; not asked if overlap="allow"


class Firing(Value, frozen=True, kw_only=True):
    """One change by the scheduler to one schedule: written whole if its version is still ``expected``."""

    schedule: Schedule  # the row to write; the store gives it the next version
    expected: int
    jobs: tuple[NewJob, ...] = ()  # their ids derive from (schedule, fire time): a second one is left out
