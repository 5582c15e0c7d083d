"""Views of the installation: counts, queues, tasks, workers, health, settings."""

from __future__ import annotations

from typing import Any

from ...model import Finding, QueueDepth, TaskDeclaration
from .base import Timestamp, View
from .gates import GateView


class Stats(View, frozen=True, kw_only=True):
    """Counts of jobs by state and queue."""

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
    now: Timestamp


class QueueView(View, frozen=True, kw_only=True):
    """A queue: its live jobs, throughput and workers."""

    name: str
    due: int
    due_later: int
    running: int
    oldest_due_s: float | None
    per_minute: float  # finished jobs, over the last ten minutes
    failed_per_minute: float
    workers: int  # running workers that serve it
    gate: GateView | None


class TaskView(View, frozen=True, kw_only=True):
    """A task: its throughput, durations and workers."""

    name: str
    per_minute: float
    failed_per_minute: float
    workers: int  # running workers that have it
    p50_ms: float | None  # of the newest jobs that succeeded
    p95_ms: float | None
    p99_ms: float | None
    queues: tuple[str, ...]  # of its newest jobs
    gate: GateView | None
    declared: TaskDeclaration | None  # as its workers published it; None: not yet, or not for a month


class ServiceView(View, frozen=True, kw_only=True):
    """A background service of a worker, as it last reported it."""

    name: str
    state: str  # ok, late, stuck
    succeeded_at: Timestamp | None


class WorkerView(View, frozen=True, kw_only=True):
    """A worker that was seen recently."""

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
    started_at: Timestamp | None
    seen_at: Timestamp
    services: tuple[ServiceView, ...]
    version: str | None = None


class ActivityBucket(View, frozen=True, kw_only=True):
    """Finished jobs by outcome within one bucket of time."""

    at: Timestamp
    name: str | None  # the queue or task; None: all
    succeeded: int
    failed: int
    cancelled: int


class DoctorReport(View, frozen=True, kw_only=True):
    """The findings of all health checks."""

    findings: tuple[Finding, ...]
    worst: str  # fine, warning, problem


class Setting(View, frozen=True, kw_only=True):
    """A setting, its value and where that comes from."""

    name: str
    value: Any  # secrets masked
    default: Any
    source: str
    range: tuple[float, float] | None
    help: str
