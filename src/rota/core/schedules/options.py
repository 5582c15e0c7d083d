"""The options of a schedule, by name and type. Pure; the checks are in ``draft.py``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict, get_args

from ...durations import Duration
from ...errors import InvalidSchedule
from ...model import CalendarMode, Missed, OnScheduleConflict, Overlap
from ..jobs.options import DeclaredOptions


class TimingOptions(TypedDict, total=False):
    """The options that every way to make a schedule takes."""

    timezone: str
    payload: Mapping[str, Any] | None
    start_at: datetime | str | None
    until: datetime | str | None
    missed: Missed
    missed_cap: int
    missed_window: float | str | None
    overlap: Overlap
    jitter: Duration
    description: str
    calendar: str | None
    calendar_mode: CalendarMode


class ScheduleOptions(TimingOptions, total=False):
    """What ``app.schedules.create`` and ``update`` take besides name and tenant."""

    task: str
    cron: str | None
    every: Duration | None
    at: datetime | str | None
    enabled: bool
    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: Duration | None


class RecurringOptions(DeclaredOptions, TimingOptions, total=False):
    """What ``@app.cron`` and ``@app.every`` take besides the rule."""


OF_THE_SCHEDULE = TimingOptions.__annotations__.keys()
OPTIONS = tuple(sorted(ScheduleOptions.__annotations__, key=OF_THE_SCHEDULE.__contains__))
TIMING = frozenset(
    {"cron", "every", "at", "timezone", "start_at", "until", "jitter", "calendar", "calendar_mode"}
)


def check_on_conflict(value: str) -> None:
    """InvalidSchedule if it says nothing about a name that is in use."""
    known = get_args(OnScheduleConflict)
    if value not in known:
        raise InvalidSchedule(f"on_conflict={value!r}: must be one of {', '.join(known)}")
