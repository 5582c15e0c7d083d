"""The grammar of limits: names, rates and what they mean. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Container
from typing import Any, NamedTuple

from ... import durations
from ...errors import OptionError
from ...model import Limit
from .options import LONGEST_NAME, MOST_UNITS

SCOPES = ("queue", "task", "tenant", "key")
MOST_RUNNING = 1_000_000
LONGEST_PERIOD_S = 31 * 86400.0
NS = 1_000_000_000

_RATE = re.compile(r"\s*([0-9]{1,12})\s*/\s*(\S.*)", re.ASCII)


class Bucket(NamedTuple):
    """A rate as stores keep it: the time in which one unit comes back, and how many there can be."""

    every_ns: int
    burst: int


def limit_name(name: Any) -> str:
    """The name of a limit, if it is one: a scope and what it is for."""
    scope, colon, rest = name.partition(":") if isinstance(name, str) else ("", "", "")
    if not colon or scope not in SCOPES:
        raise OptionError(
            f"name={_short(name)}: is not the name of a limit; write queue:NAME, task:NAME, tenant:NAME, "
            "key:NAME or key:PREFIX*"
        )
    if not rest:
        raise OptionError(f"name={name!r}: names no {scope}; write {scope}:NAME")
    if len(rest) > LONGEST_NAME or not rest.isprintable():
        raise OptionError(
            f"name={_short(name)}: what follows {scope}: must have 1 to {LONGEST_NAME} printable characters"
        )
    if "*" in rest and (scope != "key" or not rest.endswith("*") or rest.count("*") > 1):
        raise OptionError(
            f"name={name!r}: only a key may end with *, as in key:account:*, and has it nowhere else"
        )
    return f"{scope}:{rest}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def is_family(name: str) -> bool:
    """Whether it is a rule for each of the keys that begin with it."""
    return name.startswith("key:") and name.endswith("*")


def family_of(key: str, names: Container[str]) -> str | None:
    """The family, among the names of rules, that holds for a key without a rule of its own: the longest."""
    families = (f"key:{key[:end]}*" for end in range(len(key), -1, -1))
    return next((name for name in families if name in names), None)


def check_limit(limit: Limit) -> Limit:
    """The limit, if it makes sense; OptionError names the field, the value and the remedy."""
    if limit.burst is not None and limit.rate is None:
        raise OptionError(f"burst={limit.burst!r}: belongs to a rate; give rate=… as well")
    if limit.running is None and limit.rate is None:
        raise OptionError("limit: give running=…, rate=…, or both")
    if limit.running is not None:
        _check_running(limit.running)
    if limit.burst is not None and (
        isinstance(limit.burst, bool)
        or not isinstance(limit.burst, int)
        or not 1 <= limit.burst <= MOST_UNITS
    ):
        raise OptionError(f"burst={limit.burst!r}: must be a whole number from 1 to {MOST_UNITS}")
    if not isinstance(limit.strict, bool):
        raise OptionError(f"strict={limit.strict!r}: must be True or False")
    if limit.rate is not None:
        bucket(limit)
    return limit


def check_rule(name: Any, limit: Limit) -> str:
    """The name, if it is one and the limit makes sense for it."""
    checked = limit_name(name)
    check_limit(limit)
    if limit.strict and not checked.startswith("key:"):
        raise OptionError(
            f"strict=True: holds up the other jobs of a key, and {checked} is for no key; "
            "leave it out, or limit key:NAME or key:PREFIX*"
        )
    return checked


def check_task_limit(task: str, limit: Any) -> Limit:
    """The limit that a task declares, if it makes sense."""
    if not isinstance(limit, Limit):
        raise OptionError(
            f"task {task!r}: limit={_short(limit)}: must be a Limit, such as Limit(running=5, rate='100/m')"
        )
    try:
        check_rule(f"task:{task}", limit)
    except OptionError as error:
        raise OptionError(f"task {task!r}: {error}") from None
    return limit


def describe_limit(limit: Limit) -> str:
    """In words: "at most 5 running, and 100/m with a burst of 20"."""
    parts = []
    if limit.running is not None:
        parts.append(f"at most {limit.running} running")
    if (rate := bucket(limit)) is not None:
        parts.append(f"{limit.rate} with a burst of {rate.burst}")
    if limit.strict:
        parts.append("strict order")
    return ", ".join(parts)


def _check_running(running: Any) -> None:
    if isinstance(running, bool) or not isinstance(running, int):
        raise OptionError(f"running={running!r}: must be a whole number from 1 to {MOST_RUNNING}")
    if running == 0:
        raise OptionError("running=0: would let nothing run; pause it instead")
    if not 0 < running <= MOST_RUNNING:
        raise OptionError(f"running={running!r}: must be a whole number from 1 to {MOST_RUNNING}")


def bucket(limit: Limit) -> Bucket | None:
    """The bucket of the limit's rate; None if it has none."""
    if limit.rate is None:
        return None
    units, seconds = read_rate(limit.rate)
    # rounded up, so that never more begin than the rate allows
    every_ns = max(1, -(-round(seconds * NS) // units))
    return Bucket(every_ns, limit.burst or max(1, math.floor(units / seconds)))


def read_rate(rate: Any) -> tuple[int, float]:
    """ "100/m" as units and seconds: (100, 60.0)."""
    match = _RATE.fullmatch(rate) if isinstance(rate, str) and len(rate) <= LONGEST_NAME else None
    per = match[2].strip() if match else ""
    seconds = durations.read(f"1{per}" if per in durations.UNITS else per) if per else None
    if match is None or seconds is None or seconds <= 0:
        raise OptionError(
            f"rate={rate!r}: is not a rate; write units per time, such as '10/s', '100/m' or '1/10s'"
        )
    units = int(match[1])
    if units == 0:
        raise OptionError(f"rate={rate!r}: would let nothing begin; pause it instead")
    if units > MOST_UNITS or seconds > LONGEST_PERIOD_S:
        raise OptionError(f"rate={rate!r}: is out of range; up to {MOST_UNITS} units in up to 31 days")
    return units, seconds
