"""A schedule in words: its rule, its times in its own zone, its next run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ..core.schedules.describe import summary
from ..core.schedules.firing import rule_of
from ..core.schedules.zones import zone
from ..errors import InvalidSchedule
from .text import relative_time

if TYPE_CHECKING:
    from ..model import Schedule
    from ..operate.views import ScheduleView


def describe_rule(schedule: Schedule) -> str:
    """The rule of a stored schedule; a row that cannot be read shows why instead."""
    try:
        return summary(rule_of(schedule))
    except InvalidSchedule as error:
        return f"cannot be read: {error}"


def local_time(at: datetime, timezone: str) -> str:
    """The exact time in the schedule's own zone."""
    try:
        there = at.astimezone(zone(timezone))
    except InvalidSchedule:
        there = at.astimezone(UTC)
    clock = "%H:%M:%S" if there.second else "%H:%M"
    return there.strftime(f"%Y-%m-%d {clock} %Z")


def next_run(schedule: Schedule | ScheduleView, now: datetime) -> str:
    """``in 5 min, 2030-01-31 08:00 CET``; ``off`` if it is disabled."""
    if not schedule.enabled:
        return "off"
    if schedule.next_run_at is None:
        return "–"
    return (
        f"{relative_time(schedule.next_run_at, now)}, {local_time(schedule.next_run_at, schedule.timezone)}"
    )
