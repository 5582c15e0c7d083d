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
        RotaError,
        SchemaMismatch,
        Snooze,
        StoreError,
        StoreUnavailable,
    )
    from .model import Backoff, Job, State
    from .runtime.clock import new_id
    from .runtime.events import Event
    from .tasks.handle import JobHandle
    from .tasks.task import Task
    from .tasks.task_set import TaskSet
    from .worker.context import Context

__all__ = [
    "AlreadyRegistered",
    "AlreadyRunning",
    "AppClosed",
    "Backoff",
    "Cancel",
    "ConfigError",
    "Context",
    "DuplicateJob",
    "Event",
    "Fail",
    "Forbidden",
    "IllegalMove",
    "InvalidSchedule",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "LeaseLost",
    "MissingDriver",
    "NotFound",
    "OptionError",
    "PayloadError",
    "Rota",
    "RotaError",
    "SchemaMismatch",
    "Snooze",
    "State",
    "StoreError",
    "StoreUnavailable",
    "Task",
    "TaskSet",
    "__version__",
    "new_id",
]

# Where a name lives, unless it is an error.
_HOMES = {
    "Backoff": "model",
    "Context": "worker.context",
    "Event": "runtime.events",
    "Job": "model",
    "JobHandle": "tasks.handle",
    "Rota": "app",
    "State": "model",
    "Task": "tasks.task",
    "TaskSet": "tasks.task_set",
    "new_id": "runtime.clock",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES.get(name, 'errors')}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
