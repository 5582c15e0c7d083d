"""The options of a worker: the values given, else the settings; checked before anything starts."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ..config import RANGES, Settings
from ..errors import ConfigError
from ..model import Value

RESCUE_EVERY_S = 5.0
WORKER_RANGES: dict[str, tuple[float, float]] = {
    "concurrency": RANGES["worker_concurrency"],
    "max_jobs": (1, 2**53),
    "lease_s": (0.1, 3600),
    "poll_s": (0.001, 60),
    "sweep_s": (0.001, 3600),
    "tick_s": (0.001, 3600),
    "shutdown_timeout": RANGES["shutdown_timeout_s"],
    "shutdown_timeout_s": RANGES["shutdown_timeout_s"],
}


class WorkerOptions(Value, frozen=True, kw_only=True):
    """How one worker runs. Checked by ``worker_options``, never here."""

    queues: tuple[str, ...] | None = None  # None: all
    exclude_queues: tuple[str, ...] = ()
    concurrency: int = 32
    burst: bool = False  # stop when nothing is due
    max_jobs: int | None = None  # stop after this many
    shutdown_timeout_s: float = 30.0
    lease_s: float = 30.0
    poll_s: float = 1.0
    sweep_s: float = RESCUE_EVERY_S  # between two rescue passes
    name: str | None = None
    scheduler: bool = True
    tick_s: float = 1.0
    heartbeat_thread: bool = True  # off only in tests with a fake clock
    lease_guard: bool = True  # a process that renews the leases while this one cannot
    upkeep: bool = True  # rescue, prune and fire schedules


def worker_options(settings: Settings, given: Mapping[str, Any]) -> WorkerOptions:
    """The values given, else the settings; ConfigError for an unknown name or a value out of range."""
    values: dict[str, Any] = {
        "concurrency": settings.worker_concurrency,
        "shutdown_timeout_s": settings.shutdown_timeout_s,
        "lease_s": settings.lease_duration_s,
        "lease_guard": settings.lease_guard,
        "poll_s": settings.poll_interval_ms / 1000,
        "scheduler": settings.scheduler_enabled,
        "tick_s": settings.scheduler_tick_s,
    }
    for name, value in given.items():
        field = "shutdown_timeout_s" if name == "shutdown_timeout" else name
        if field not in WorkerOptions.__struct_fields__:
            near = difflib.get_close_matches(name, WorkerOptions.__struct_fields__, 1)
            raise ConfigError(
                f"there is no worker option {name!r}"
                + (f"; did you mean {near[0]}?" if near else "; see Rota.running for those there are")
            )
        if value is not None:
            values[field] = _checked(name, value)
    return WorkerOptions(**values)


def _checked(name: str, value: Any) -> Any:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if name in ("queues", "exclude_queues"):
        if isinstance(value, str) or (name == "queues" and not value):
            raise ConfigError(f"{name}={value!r}: must be a list of names; leave it out for all queues")
        return tuple(value)
    low, high = WORKER_RANGES.get(name, (0, 0))
    if high and (isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high):
        raise ConfigError(f"{name}={value!r}: must be a number from {low:g} to {high:g}")
    return value
