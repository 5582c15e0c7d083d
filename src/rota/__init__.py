"""rota: durable jobs and schedules for Python, on the database you already have.

Owns the public names. Importing it opens nothing, starts nothing and loads nothing: a name brings its
module along when it is first used, so that ``rota --help`` and a web worker's start stay quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .app import Rota
    from .core.jobs.options import JobOptions, TaskOptions
    from .core.jobs.why import Why
    from .core.schedules.calendars import Calendar
    from .core.schedules.describe import FirePreview
    from .core.schedules.options import ScheduleOptions
    from .durations import Duration
    from .errors import (
        AlreadyRegistered,
        AlreadyRunning,
        AppClosed,
        Cancel,
        ConfigError,
        DuplicateJob,
        Fail,
        Forbidden,
        IllegalMove,
        InvalidSchedule,
        JobCancelled,
        JobFailed,
        LeaseLost,
        MissingDriver,
        NotFound,
        OptionError,
        PayloadError,
        QuotaExceeded,
        RotaError,
        SchemaMismatch,
        Snooze,
        StoreError,
        StoreUnavailable,
        SyncCallWarning,
    )
    from .model import Actor, Attempt, Backoff, Held, Job, Limit, Page, Schedule, State
    from .operate.tenant_client import TenantClient
    from .runtime.clock import new_id
    from .runtime.events import Event
    from .schedules.runs import RunSummary, ScheduleRun
    from .tasks.handle import JobHandle
    from .tasks.task import BoundTask, Task
    from .tasks.task_set import TaskSet
    from .worker.context import Context

__all__ = [
    "Actor",
    "AlreadyRegistered",
    "AlreadyRunning",
    "AppClosed",
    "Attempt",
    "Backoff",
    "BoundTask",
    "Calendar",
    "Cancel",
    "ConfigError",
    "Context",
    "DuplicateJob",
    "Duration",
    "Event",
    "Fail",
    "FirePreview",
    "Forbidden",
    "Held",
    "IllegalMove",
    "InvalidSchedule",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "JobOptions",
    "LeaseLost",
    "Limit",
    "MissingDriver",
    "NotFound",
    "OptionError",
    "Page",
    "PayloadError",
    "QuotaExceeded",
    "Rota",
    "RotaError",
    "RunSummary",
    "Schedule",
    "ScheduleOptions",
    "ScheduleRun",
    "SchemaMismatch",
    "Snooze",
    "State",
    "StoreError",
    "StoreUnavailable",
    "SyncCallWarning",
    "Task",
    "TaskOptions",
    "TaskSet",
    "TenantClient",
    "Why",
    "__version__",
    "new_id",
]

# Where a name lives, unless it is an error.
_HOMES = {
    "Actor": "model",
    "Attempt": "model",
    "Backoff": "model",
    "BoundTask": "tasks.task",
    "Calendar": "core.schedules.calendars",
    "Context": "worker.context",
    "Duration": "durations",
    "Event": "runtime.events",
    "FirePreview": "core.schedules.describe",
    "Held": "model",
    "Job": "model",
    "JobHandle": "tasks.handle",
    "JobOptions": "core.jobs.options",
    "Limit": "model",
    "Page": "model",
    "Rota": "app",
    "RunSummary": "schedules.runs",
    "Schedule": "model",
    "ScheduleOptions": "core.schedules.options",
    "ScheduleRun": "schedules.runs",
    "State": "model",
    "Task": "tasks.task",
    "TaskOptions": "core.jobs.options",
    "TaskSet": "tasks.task_set",
    "TenantClient": "operate.tenant_client",
    "new_id": "runtime.clock",
    "Why": "core.jobs.why",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
