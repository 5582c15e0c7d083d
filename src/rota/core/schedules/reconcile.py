"""Schedules that code declares, compared with those in the store: who may change what. Pure.

Code updates what it declared itself. A field that an operator has edited since stays as it is, and is
named; a disabled schedule stays disabled; one that the code no longer declares is retired, not deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...model import Schedule, Value
from .options import TIMING

FIELDS = (
    "task",
    "cron",
    "every",
    "at",
    "timezone",
    "start_at",
    "until",
    "jitter",
    "payload_json",
    "queue",
    "priority",
    "max_attempts",
    "timeout",
    "description",
    "missed",
    "missed_cap",
    "missed_window",
    "overlap",
    "calendar",
    "calendar_mode",
)
RULE = frozenset({"cron", "every", "at"})  # half of one rule and half of another make none
RETIRED = "retired: "


class Reconciled(Value, frozen=True, kw_only=True):
    """``write``: the row to write, None if nothing changes. ``kept``: fields with an operator's value."""

    write: Schedule | None = None
    restart: bool = False  # its timing changed, so its next fire must be computed again
    kept: tuple[str, ...] = ()


def declaration(schedule: Schedule) -> str:
    """The declared values, kept with the row so that later edits can be recognised."""
    return msgspec.json.encode({name: getattr(schedule, name) for name in FIELDS}, order="sorted").decode()


def reconcile(stored: Schedule | None, declared: Schedule) -> Reconciled:
    """What a starting program does about one of its schedules."""
    text = declaration(declared)
    if stored is None:
        return Reconciled(write=msgspec.structs.replace(declared, declared_json=text), restart=True)
    if stored.source != "code":
        return Reconciled(kept=("all of it: a schedule of that name was created by hand",))
    before = _before(stored)
    now = msgspec.to_builtins({name: getattr(declared, name) for name in FIELDS})
    there = msgspec.to_builtins({name: getattr(stored, name) for name in FIELDS})
    differ = {name for name in FIELDS if now[name] != there[name]}
    edited = {name for name in differ if there[name] != before.get(name)}
    if edited & RULE:
        edited |= differ & RULE
    take = {name: getattr(declared, name) for name in differ - edited}
    revive = not stored.enabled and (stored.reason or "").startswith(RETIRED)
    kept = tuple(sorted(edited | ({"enabled"} if not stored.enabled and not revive else set())))
    if not take and not revive and stored.owner == declared.owner and stored.declared_json == text:
        return Reconciled(kept=kept)
    values: dict[str, Any] = {**take, "declared_json": text, "owner": declared.owner}
    if revive:
        values |= {"enabled": True, "reason": None}
    write = msgspec.structs.replace(stored, **values)
    return Reconciled(write=write, restart=revive or bool(take.keys() & TIMING), kept=kept)


def retire(stored: Schedule, owner: str) -> Schedule | None:
    """A schedule that its program no longer declares, disabled; None if it is disabled already."""
    if not stored.enabled:
        return None
    return msgspec.structs.replace(
        stored, enabled=False, reason=f"{RETIRED}{owner} no longer declares it", check_at=None, held=()
    )


def _before(stored: Schedule) -> Mapping[str, Any]:
    try:
        found = msgspec.json.decode(stored.declared_json or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}
