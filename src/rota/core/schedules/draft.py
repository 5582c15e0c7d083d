"""Schedules before they are stored: what was given becomes a checked ``Schedule``. Pure.

Everything that can be wrong with a schedule is found here, before anything is written. How a payload is
encoded comes in as a function, since only the caller knows the tasks.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...errors import InvalidSchedule
from ...model import Schedule
from ..jobs.options import DeclaredOptions, name_text, options
from . import firing, rules
from .intervals import seconds
from .options import OPTIONS

Encode = Callable[[str, Mapping[str, Any]], str]  # (task, payload) -> JSON
LONGEST_DESCRIPTION = 2000
ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def new(id: str, name: str, tenant: str, given: Mapping[str, Any], now: datetime, encode: Encode) -> Schedule:
    """A checked schedule that is not stored yet."""
    if "task" not in given:
        raise InvalidSchedule(f"schedule {name!r} names no task: give task=…")
    empty = Schedule(
        id=id,
        name=name_text("name", name),
        tenant=name_text("tenant", tenant),
        task="",
        created_at=now,
        updated_at=now,
    )
    return fill(empty, given, encode)


def check(name: str, tenant: str, given: Mapping[str, Any], encode: Encode) -> None:
    """InvalidSchedule, PayloadError or OptionError if such a schedule could not be created."""
    new("", name, tenant, given, ANY_TIME, encode)


def fill(schedule: Schedule, given: Mapping[str, Any], encode: Encode) -> Schedule:
    """The schedule with the given values, everything checked."""
    if unknown := sorted(given.keys() - set(OPTIONS)):
        raise InvalidSchedule(f"a schedule has no option {unknown[0]}; {_instead(unknown[0])}")
    values: dict[str, Any] = {name: value for name, value in given.items() if name != "payload"}
    if {"cron", "every", "at"} & values.keys():
        values = {"cron": None, "every": None, "at": None, **values}
    for name in ("missed_window", "timeout"):
        if values.get(name) is not None:
            values[name] = seconds(name, values[name], 0.0, rules.LONGEST)
    after = msgspec.structs.replace(schedule, **values)
    rule = firing.rule_of(after)
    _check_fields(after)
    payload_json = after.payload_json
    if "payload" in given or schedule.version == 0:
        payload_json = encode(after.task, given.get("payload") or {})
    return msgspec.structs.replace(
        after,
        at=rule.at,
        every=rule.every,
        start_at=rule.start_at,
        until=rule.until,
        jitter=rule.jitter,
        timezone=rule.timezone,
        payload_json=payload_json,
    )


def require_next_run(schedule: Schedule) -> Schedule:
    """The schedule itself; InvalidSchedule if it is enabled and will never fire."""
    if schedule.enabled and schedule.next_run_at is None:
        raise InvalidSchedule(
            f"schedule {schedule.name!r} would never fire: its time is over; give a later at or until"
        )
    return schedule


def snapshot(schedule: Schedule) -> dict[str, Any]:
    """What the audit log keeps of a schedule: every choice, nothing computed."""
    kept = {name: getattr(schedule, name) for name in OPTIONS if name != "payload"}
    return {**kept, "payload": schedule.payload, "reason": schedule.reason, "source": schedule.source}


def _instead(unknown: str) -> str:
    if unknown in ("key", "key_for", "key_per"):
        return "overlap=… decides what happens if a run of it is still live"
    if unknown in DeclaredOptions.__annotations__:
        return f"its jobs take that from their task: @app.task({unknown}=…)"
    if near := difflib.get_close_matches(unknown, OPTIONS, 1):
        return f"did you mean {near[0]}?"
    return f"it has: {', '.join(OPTIONS)}"


def _check_fields(schedule: Schedule) -> None:
    name_text("task", schedule.task)
    options({name: getattr(schedule, name) for name in ("queue", "priority", "max_attempts", "timeout")})
    firing.check(schedule)
    if schedule.calendar is not None:
        name_text("calendar", schedule.calendar)
    if not isinstance(schedule.enabled, bool):
        raise InvalidSchedule(f"enabled={schedule.enabled!r}: must be True or False")
    if not isinstance(schedule.description, str) or len(schedule.description) > LONGEST_DESCRIPTION:
        raise InvalidSchedule(f"description: must be text of at most {LONGEST_DESCRIPTION} characters")
