"""Views of schedules, their fire times and calendars."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ...model import Gate, Schedule
from ...schedules.runs import RunSummary, ScheduleRun
from .base import Timestamp, View, Visibility
from .gates import GateView, gate_view


class ScheduleView(View, frozen=True, kw_only=True):
    """A schedule. ``last_run`` (null: it has never run) and ``summary`` are in a list that asks for them."""

    id: str
    name: str
    tenant: str
    task: str
    cron: str | None
    every: float | None
    at: Timestamp | None
    timezone: str
    rule_summary: str
    start_at: Timestamp | None
    until: Timestamp | None
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
    next_run_at: Timestamp | None
    last_fire_at: Timestamp | None
    held: tuple[Timestamp, ...]  # fire times that wait for the previous run to finish
    late_s: float | None  # how long its next run is overdue; None: it is not
    version: int
    created_at: Timestamp
    updated_at: Timestamp
    gate: GateView | None
    last_run: ScheduleRun | msgspec.UnsetType | None = msgspec.UNSET
    summary: RunSummary | msgspec.UnsetType = msgspec.UNSET


_SAME = tuple(
    name
    for name in ScheduleView.__struct_fields__
    if name in Schedule.__struct_fields__ and name not in ("payload",)
)


def schedule_view(
    schedule: Schedule, visibility: Visibility, summary: str, gate: Gate | None, now: datetime
) -> ScheduleView:
    late = None
    if schedule.enabled and schedule.next_run_at is not None and schedule.next_run_at < now:
        late = (now - schedule.next_run_at).total_seconds()
    return ScheduleView(
        **{name: getattr(schedule, name) for name in _SAME},
        payload=visibility.of(schedule.payload_json),
        rule_summary=summary,
        late_s=late,
        gate=None if gate is None else gate_view(gate),
    )


class FireView(View, frozen=True, kw_only=True):
    """One fire time of a preview."""

    at: Timestamp
    local: str  # in the schedule's time zone
    note: str | None = None


class Preview(View, frozen=True, kw_only=True):
    """A rule: its summary and next fire times."""

    rule_summary: str
    timezone: str
    fires: tuple[FireView, ...]
    truncated: bool = False  # it took too long: later ones are left out, ask for fewer


class UpcomingFire(View, frozen=True, kw_only=True):
    """One fire time to come, of any schedule."""

    at: Timestamp
    schedule: str
    tenant: str


class TruncatedSchedule(View, frozen=True, kw_only=True):
    """A schedule whose fire times after ``after`` are left out: its preview has them."""

    schedule: str
    tenant: str
    after: Timestamp


class Fires(View, frozen=True, kw_only=True):
    """Fire times to come, in time order, and what was left out of them.

    With ``more`` there were too many in total: ask for fewer hours, or for one tenant.
    """

    items: tuple[UpcomingFire, ...]
    cut: tuple[TruncatedSchedule, ...]
    more: bool  # later fire times, or whole schedules, are left out
    next: None = None  # as in every list: this one has a single page


class Backfill(View, frozen=True, kw_only=True):
    """The fire times that a backfill created jobs for, or would."""

    dry_run: bool
    fires: tuple[Timestamp, ...]


class CalendarView(View, frozen=True, kw_only=True):
    """A calendar: days on which schedules do not run."""

    name: str
    dates: tuple[str, ...]
    weekend: tuple[int, ...]
