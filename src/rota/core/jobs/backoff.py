"""How long to wait before the next attempt. Pure: chance comes in as ``jitter``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from ...errors import OptionError
from ...model import Backoff

# Far enough for any service to come back; keeps run_at inside what every store can hold.
LONGEST = 30 * 24 * 3600.0

# Of a task: the attempt that failed, counted from 1, and its exception; the seconds to wait, None: as usual.
BackoffFunction = Callable[[int, BaseException], float | timedelta | None]


def delay(policy: Backoff, attempt: int, jitter: float) -> float:
    """Seconds to wait after failed attempt number ``attempt`` (counted from 1).

    ``jitter`` is a number in [0, 1): the share of ``policy.jitter`` to add.
    """
    exponent = max(attempt, 1) - 1
    try:
        grown = policy.base * policy.factor**exponent
    except OverflowError:
        grown = math.inf
    cap = LONGEST if policy.cap is None else min(policy.cap, LONGEST)
    return min(grown, cap) + policy.jitter * jitter


def check(policy: Backoff) -> Backoff:
    """The policy itself, or an OptionError that names the value out of range."""
    fields = {"base": policy.base, "factor": policy.factor, "jitter": policy.jitter, "cap": policy.cap}
    for name, value in fields.items():
        if value is None and name == "cap":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= LONGEST:
            raise OptionError(f"backoff {name}={value!r}: must be a number from 0 to {LONGEST:.0f} (30 days)")
    if policy.factor < 1:
        raise OptionError(f"backoff factor={policy.factor!r}: must be at least 1, or waits would shrink")
    return policy


def check_function(function: Callable[..., Any]) -> BackoffFunction:
    """The function itself, or an OptionError if it cannot be called with an attempt and an error."""
    shown = getattr(function, "__qualname__", repr(function))
    if inspect.iscoroutinefunction(function):
        raise OptionError(f"backoff={shown}: must be a plain function, not async: it only computes a delay")
    try:
        inspect.signature(function).bind(1, Exception())
    except TypeError:
        raise OptionError(
            f"backoff={shown}: must take two arguments: lambda attempt, error: seconds"
        ) from None
    except ValueError:  # a builtin without a signature
        pass
    return function


def function_delay(function: BackoffFunction, attempt: int, error: BaseException) -> float | None:
    """The seconds that a task's own function answers, bounded; OptionError if that is no duration."""
    answer: Any = function(attempt, error)
    if answer is None:
        return None
    seconds = answer.total_seconds() if isinstance(answer, timedelta) else answer
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise OptionError(f"the backoff function returned {answer!r}: must be seconds from 0")
    return float(min(seconds, LONGEST))
