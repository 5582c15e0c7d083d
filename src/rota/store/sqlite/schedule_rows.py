"""Schedules to columns and back. Must never fail on a row: one that cannot be read comes back disabled.

The columns are the fields of ``Schedule``, by the same names and in the same order. What a wrong
guess could not harm (held fires, the next check) gets a stand-in that the scheduler corrects; anything
else that is unreadable makes the schedule read as disabled, with the reason, so that no rule is run
that was never written.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ...model import Schedule
from .rows import EPOCH, Row, as_json, instant, micros
from .statements import SCHEDULE

FIELDS = {field.name: field for field in msgspec.structs.fields(Schedule)}
INSTANTS = (
    "at", "start_at", "until", "next_run_at", "manual_run_at", "check_at", "last_fire_at",
    "created_at", "updated_at",
)  # fmt: skip
NUMBERS = ("priority", "max_attempts", "missed_cap")  # small ones
LARGEST = 2**31 - 1
# Fields whose loss changes neither what is run nor when; times are computed again.
HARMLESS = frozenset(
    {"description", "reason", "declared_json", "next_run_at", "manual_run_at", "check_at", "held"}
    | {"last_fire_at", "created_at", "updated_at"}
)
SHOWN = 60  # characters of a value that cannot be read

_PLACES = {name: place for place, name in enumerate(SCHEDULE)}
_INSTANT_PLACES = tuple(_PLACES[name] for name in INSTANTS)
_HELD = msgspec.json.Decoder(tuple[int, ...])
_PAYLOAD = msgspec.json.Decoder(dict[str, Any])


def columns(schedule: Schedule, version: int, now: int) -> list[Any]:
    """The values of a row, in the order of ``SCHEDULE``."""
    cells: list[Any] = list(msgspec.structs.astuple(schedule))
    for place in _INSTANT_PLACES:
        if cells[place] is not None:
            cells[place] = micros(cells[place])
    held = [micros(at) for at in schedule.held]
    cells[_PLACES["held"]] = as_json(held) if held else None
    cells[_PLACES["enabled"]] = 1 if schedule.enabled else 0
    cells[_PLACES["version"]] = version
    cells[_PLACES["updated_at"]] = now
    return cells


def schedule(row: Row) -> Schedule:
    """A row of ``SCHEDULE`` as a Schedule."""
    cells = dict(zip(SCHEDULE, row, strict=True))
    try:
        return msgspec.convert({name: _read(name, cell) for name, cell in cells.items()}, Schedule)
    except Exception:  # a row edited by hand must not hide the others
        return _salvaged(cells)


def _read(name: str, cell: Any) -> Any:
    """The cell as a value; whether it is of the field's type is for the caller to check."""
    if name == "held":
        return () if cell is None else tuple(instant(at) for at in _HELD.decode(cell))
    if name == "enabled":
        return cell == 1
    if cell is None:
        return None
    if name in INSTANTS:
        return _written_time(cell) if isinstance(cell, str) else instant(cell)
    if name in NUMBERS and abs(cell) > LARGEST:
        raise ValueError(f"{cell} is out of range")
    if name == "payload_json":
        _PAYLOAD.decode(cell)
    return cell


def _written_time(text: str) -> datetime:
    """As SQLite's functions write it, which is UTC, or with an offset. The next write makes it a number."""
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _salvaged(cells: dict[str, Any]) -> Schedule:
    """Field by field, each unreadable one replaced; disabled if that could change what is run."""
    values, unread = {}, []
    for name, cell in cells.items():
        try:
            values[name] = msgspec.convert(_read(name, cell), FIELDS[name].type)
        except Exception:
            values[name] = _stand_in(name, cell)
            if name not in HARMLESS:
                unread.append(f"{name}={str(cell)[:SHOWN]!r}")
    found = Schedule(**values)
    if not unread:
        return found
    reason = f"{', '.join(unread)}: cannot be read; correct it and enable the schedule again"
    kept = reason if found.enabled or not found.reason else found.reason
    return msgspec.structs.replace(
        found, enabled=False, reason=kept, next_run_at=None, check_at=None, held=()
    )


def _stand_in(name: str, cell: Any) -> Any:
    default = FIELDS[name].default
    if default is not msgspec.NODEFAULT:
        return default
    return EPOCH if FIELDS[name].type is datetime else str(cell)
