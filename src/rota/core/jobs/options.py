"""Options of tasks and jobs, checked before anything is written. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, get_args
from uuid import UUID

import msgspec

from ... import durations
from ...durations import Duration
from ...errors import OptionError
from ...model import Backoff, Executor, Limit, OnConflict
from ..ids import is_id, unix_ms
from .backoff import LONGEST, BackoffFunction, check, check_function
from .retries import ErrorTypes, check_error_types

LONGEST_NAME = 200
MOST_TAGS = 20
PRIORITY_LIMIT = 2**31 - 2  # both signs fit a 32-bit column
MOST_ATTEMPTS = 100
SHORTEST_TIMEOUT = 0.001  # seconds
MOST_AHEAD_S = 86_400.0  # of a chosen id; stores allow for wrong clocks of a day
MOST_SNOOZES = 1_000_000
MOST_UNITS = 1_000_000_000
MOST_CENTS = 1e12
FOREVER = 100 * 365 * 86400.0  # seconds
CONFLICTS: tuple[str, ...] = get_args(OnConflict)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was given to a task, ``.options(…)`` or ``enqueue``; None: not given."""

    queue: str | None = None
    priority: int | None = None
    tenant: str | None = None
    run_at: datetime | None = None
    delay: float | None = None
    key: str | None = None
    key_for: float | None = None
    key_per: float | None = None
    on_conflict: OnConflict | None = None
    max_attempts: int | None = None
    backoff: Backoff | BackoffFunction | None = None
    timeout: float | None = None
    auto_remove: bool | None = None
    tags: tuple[str, ...] | None = None
    parent: str | None = None
    id: str | None = None
    connection: Any = None
    expires: float | datetime | None = None  # seconds after it is due, or a time
    keep: float | None = None  # seconds
    fail_on: ErrorTypes | None = None
    retry_on: ErrorTypes | None = None
    max_snoozes: int | None = None
    concurrency_key: str | None = None
    units: int | None = None
    price: float | None = None  # cents


class SharedOptions(TypedDict, total=False):
    """What both a task and a job take."""

    queue: str | None
    priority: int | None
    tenant: str | None
    key: str | None
    key_for: Duration | None
    key_per: Duration | None
    on_conflict: OnConflict | None
    max_attempts: int | None
    timeout: Duration | None
    auto_remove: bool | None
    tags: Sequence[str] | None
    keep: Duration | None  # how long it is kept once it has finished; or "forever"
    concurrency_key: str | None  # the limit ``key:…`` that it counts under; filled from the arguments
    units: int | None  # what it takes from the buckets of rates
    price: float | None  # cents that it is expected to cost: reserved from the tenant's budget while it runs


class TaskOptions(SharedOptions, total=False):
    """The defaults of a task's jobs, and how its errors are treated."""

    backoff: Backoff | BackoffFunction | None
    expires: Duration | None  # cancelled if it has not begun this long after it is due
    max_snoozes: int | None  # one more fails the job
    fail_on: type[Exception] | Iterable[type[Exception]] | None  # errors that fail the job at once
    retry_on: type[Exception] | Iterable[type[Exception]] | None  # the only errors that are retried


class DeclaredOptions(TaskOptions, total=False):
    """What ``@app.task(…)`` takes."""

    name: str | None  # default: the function's own name
    executor: Executor | None  # default: async for ``async def``, thread for ``def``
    limit: Limit | None  # on all its jobs together, over all workers


class JobOptions(SharedOptions, total=False):
    """What ``.options(…)`` and ``app.enqueue(…)`` take: also what belongs to one job alone."""

    backoff: Backoff | None
    expires: Duration | datetime | None  # the same, or a time
    run_at: datetime | None
    delay: Duration | None
    parent: str | None
    id: str | UUID | None
    connection: Any


NO_OPTIONS = Options()
FIELDS = Options.__struct_fields__
ABOUT_THE_JOB = frozenset({"run_at", "delay", "parent", "id", "connection"})  # no default on a task
# Code, so that they are not stored with a job.
ABOUT_THE_TASK = frozenset({"fail_on", "retry_on", "max_snoozes"})


def options(given: Mapping[str, Any], *, for_task: str | None = None) -> Options:
    """Checked options. ``for_task``: they are a task's defaults, where some make no sense."""
    for name, value in given.items():
        if name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            hint = f"; did you mean {near[0]}?" if near else f"; options are: {', '.join(FIELDS)}"
            if for_task is None:
                hint += ". An argument of the task belongs in the payload"
            raise OptionError(f"there is no job option {name!r}{hint}")
        if for_task is not None and name in ABOUT_THE_JOB and value is not None:
            raise OptionError(
                f"task {for_task!r}: {name} belongs to one job, not to a task; give it to .options({name}=…)"
            )
        if for_task is None and name in ABOUT_THE_TASK and value is not None:
            raise OptionError(
                f"{name} belongs to the task's code, not to one job; give it to @app.task({name}=…)"
            )
    if for_task is not None and isinstance(given.get("expires"), datetime):
        raise OptionError(
            f"task {for_task!r}: expires must be a duration such as '15m'; a time belongs to one job"
        )
    if for_task is None and callable(given.get("backoff")):
        raise OptionError(
            "backoff: a function belongs to the task's code, not to one job; give it to @app.task(…), "
            "or give the job a Backoff"
        )
    values = {name: _CHECKS[name](name, value) for name, value in given.items() if value is not None}
    if "delay" in values and "run_at" in values:
        raise OptionError("delay and run_at were both given: keep one")
    return Options(**values)


def merge(base: Options, over: Options) -> Options:
    """The options of ``over`` where they are given, else those of ``base``; a due time is replaced whole."""
    given = {name: value for name in FIELDS if (value := getattr(over, name)) is not None}
    if not given:
        return base
    if "delay" in given or "run_at" in given:
        given = {"delay": None, "run_at": None, **given}
    return msgspec.structs.replace(base, **given)


def due(chosen: Options, now: datetime) -> datetime | None:
    """The time from which the job may run; None: at once."""
    if chosen.delay is not None:
        return now + timedelta(seconds=chosen.delay) if chosen.delay > 0 else None
    return chosen.run_at


def expiry(chosen: Options, due_at: datetime) -> datetime | None:
    """When the job expires that is due at this time; None: never."""
    match chosen.expires:
        case None:
            return None
        case datetime() as at:
            if at < due_at and (chosen.delay is not None or chosen.run_at is not None):
                raise OptionError(f"expires={at.isoformat()}: is before the job is due, {due_at.isoformat()}")
            return at
        case after:
            return due_at + timedelta(seconds=after)


def name_text(what: str, value: Any) -> str:
    """The value, if it is a short printable string: queue, tenant, task, key, tag."""
    if not isinstance(value, str):
        raise OptionError(f"{what}={value!r}: must be text, not {type(value).__name__}")
    if not value or len(value) > LONGEST_NAME:
        shown = f"{value[:40]!r}…" if value else "''"
        raise OptionError(f"{what}={shown}: must have 1 to {LONGEST_NAME} characters")
    if not value.isprintable():
        raise OptionError(f"{what}={value!r}: must not contain control or other unprintable characters")
    return value


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OptionError(f"{name}={value!r}: must be a whole number from {low} to {high}")
    return value


def _amount(name: str, value: Any, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        raise OptionError(f"{name}={value!r}: must be a number of cents from 0 to {high:.0f}")
    return float(value)


def _seconds(name: str, value: Any, low: float = 0.0, high: float = FOREVER) -> float:
    return durations.seconds(name, value, low, high, OptionError)


def _expires(name: str, value: Any) -> float | datetime:
    return _time(name, value) if isinstance(value, datetime) else _seconds(name, value, SHORTEST_TIMEOUT)


def _keep(name: str, value: Any) -> float:
    return FOREVER if value == "forever" else _seconds(name, value)


def _time(name: str, value: Any) -> datetime:
    if not isinstance(value, datetime):
        raise OptionError(f"{name}={value!r}: must be a datetime, not {type(value).__name__}")
    if value.tzinfo is None:
        raise OptionError(f"{name}={value.isoformat()}: has no time zone; use datetime(…, tzinfo=UTC)")
    return value.astimezone(UTC)


def _tags(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise OptionError(f"{name}={value!r}: must be a list of texts")
    tags = tuple(dict.fromkeys(name_text("tag", tag) for tag in value))
    if len(tags) > MOST_TAGS:
        raise OptionError(f"{name}: a job may have at most {MOST_TAGS} tags, {len(tags)} were given")
    return tags


def _backoff(name: str, value: Any) -> Backoff | BackoffFunction:
    if callable(value):
        return check_function(value)
    if not isinstance(value, Backoff):
        raise OptionError(f"{name}={value!r}: must be a Backoff, such as Backoff(base=5, factor=2, cap=300)")
    return check(value)


def _conflict(name: str, value: Any) -> str:
    if value not in CONFLICTS:
        raise OptionError(f"{name}={value!r}: must be one of {', '.join(CONFLICTS)}")
    return str(value)


def _job_id(name: str, value: Any) -> str:
    lowered = value.strip().lower() if isinstance(value, str) else ""
    if not is_id(lowered):
        raise OptionError(f"{name}={value!r}: must be a job id, such as job.id")
    return lowered


def _new_id(name: str, value: Any) -> str:
    text = str(value).strip().lower() if isinstance(value, (str, UUID)) else ""
    if not is_id(text) or unix_ms(text) is None:
        raise OptionError(
            f"{name}={value!r}: must be a UUIDv7, for ids sort by time: rota.new_id() makes one. "
            "To tell jobs apart by data of your own, use key=…"
        )
    return text


def check_id_time(id: str, now: datetime) -> None:
    """OptionError for an id of a time to come: it would stay the newest job for as long."""
    ms = unix_ms(id)
    if ms is not None and ms / 1000 > now.timestamp() + MOST_AHEAD_S:
        raise OptionError(f"id={id!r}: its time is more than a day ahead; rota.new_id() makes one of now")


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError(f"{name}={value!r}: must be True or False")
    return value


_CHECKS: dict[str, Any] = {
    "queue": name_text,
    "priority": lambda n, v: _whole(n, v, -PRIORITY_LIMIT, PRIORITY_LIMIT),
    "tenant": name_text,
    "run_at": _time,
    "delay": _seconds,
    "key": name_text,
    "key_for": _keep,
    "key_per": lambda n, v: _seconds(n, v, 1.0, FOREVER),
    "on_conflict": _conflict,
    "max_attempts": lambda n, v: _whole(n, v, 1, MOST_ATTEMPTS),
    "backoff": _backoff,
    "timeout": lambda n, v: _seconds(n, v, SHORTEST_TIMEOUT, LONGEST),
    "auto_remove": _flag,
    "tags": _tags,
    "parent": _job_id,
    "id": _new_id,
    "connection": lambda n, v: v,
    "expires": _expires,
    "keep": _keep,
    "max_snoozes": lambda n, v: _whole(n, v, 0, MOST_SNOOZES),
    "concurrency_key": name_text,
    "units": lambda n, v: _whole(n, v, 1, MOST_UNITS),
    "price": lambda n, v: _amount(n, v, MOST_CENTS),
    "fail_on": check_error_types,
    "retry_on": check_error_types,
}
