"""Counts of jobs, by state, queue and minute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from .value import Value


class QueueDepth(Value, frozen=True, kw_only=True):
    queued: int = 0  # due
    scheduled: int = 0  # queued, not yet due
    running: int = 0
    oldest_due_s: float | None = None


class Overview(Value, frozen=True, kw_only=True):
    """Counts of now. ``estimated`` names the counts that are not exact."""

    counts: Mapping[str, int]  # by state; every state has an entry
    oldest_due_s: float | None
    queues: Mapping[str, QueueDepth]
    estimated: frozenset[str] = frozenset()


class ActivityCount(Value, frozen=True, kw_only=True):
    """How many jobs of a task ended in a state within a minute; older ones by the hour or the day."""

    at: datetime  # when the minute began
    queue: str
    task: str
    state: str  # succeeded, failed, cancelled; removed: succeeded and deleted itself
    n: int
