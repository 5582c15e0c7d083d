"""Which errors of a task are retried, and how often it may snooze. Pure: errors and options come in.

Asked where the exception object is, which for a process task is the child: only JSON leaves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...errors import Fail, OptionError
from ...model import Job

ErrorTypes = tuple[type[Exception], ...]


def fails_at_once(error: BaseException, fail_on: ErrorTypes | None, retry_on: ErrorTypes | None) -> bool:
    """Whether the job fails at once with this error. ``fail_on`` decides before ``retry_on``."""
    if isinstance(error, Fail) or (fail_on is not None and isinstance(error, fail_on)):
        return True
    return retry_on is not None and not isinstance(error, retry_on)


def is_snoozed_out(job: Job, most: int | None) -> bool:
    """Whether the job has used up its snoozes."""
    return most is not None and job.snoozes >= most


def check_error_types(name: str, value: Any) -> ErrorTypes:
    """Exception classes, from one or several; OptionError names what is none."""
    several = isinstance(value, Iterable) and not isinstance(value, str | type)
    kinds = tuple(value) if several else (value,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise OptionError(
                f"{name}={kind!r}: must be exception classes, such as {name}=(ValueError, KeyError)"
            )
    return kinds
