"""Durations: seconds, a timedelta or a text such as ``"1h30m"``, and back to text. Pure."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

Duration = float | str | timedelta  # what every option that takes a duration accepts

LONGEST_TEXT = 64
HUGE = 10**15  # beyond any range; a larger number could neither become a float nor be printed
UNITS = {"w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
WORDS = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}
SHORT = {"w": "w", "d": "d", "h": "h", "m": "min", "s": "s"}

_WRITTEN = {"w": r"(\d{1,9})\s*w", "d": r"(\d{1,9})\s*d", "h": r"(\d{1,9})\s*h", "m": r"(\d{1,9})\s*m(?:in)?"}
_WRITTEN["s"] = r"(\d{1,9}(?:\.\d{1,6})?)\s*s"
_TEXT = re.compile(r"\s*".join(f"(?:{_WRITTEN[unit]})?" for unit in UNITS), re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,10}(\.\d{1,6})?", re.ASCII)


def seconds(name: str, value: Any, low: float, high: float, error: type[Exception] = ValueError) -> float:
    """``value`` (a number of seconds, a text such as ``1h30m``, a timedelta) as seconds from low to high.

    The error names the option and what it takes.
    """
    found = read(value)
    shown = value[:LONGEST_TEXT] if isinstance(value, str) else value
    if found is None:
        raise error(
            f"{name}={shown!r}: is not a duration; give seconds or text such as '15m', '1h30m' or '2d'"
        )
    if not low <= found <= high:
        raise error(
            f"{name}={found if abs(found) == HUGE else shown!r}: is out of range; "
            f"choose a duration from {short(low)} to {short(high)}"
        )
    return found


def read(value: Any) -> float | None:
    """Seconds; None if the value is no duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, str):
        return _read_text(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return float(max(-HUGE, min(value, HUGE)))


def _read_text(text: str) -> float | None:
    if not text or len(text) > LONGEST_TEXT:
        return None
    if _NUMBER.fullmatch(text):
        return float(text)
    match = _TEXT.fullmatch(text)
    if match is None:
        return None
    return float(
        sum(float(count) * size for count, size in zip(match.groups("0"), UNITS.values(), strict=True))
    )


def short(length: float) -> str:
    """``1 h 30 min``: every unit that is not zero, abbreviated."""
    return " ".join(f"{count:g} {SHORT[unit]}" for unit, count in _parts(length)) or "0 s"


def spelled_out(length: float) -> str:
    """What follows "Every": ``15 minutes``, ``hour``, ``1 h 30 min``."""
    parts = _parts(length)
    if len(parts) != 1:
        return short(length)
    unit, count = parts[0]
    return WORDS[unit] if count == 1 else f"{count:g} {WORDS[unit]}s"


def _parts(length: float) -> list[tuple[str, float]]:
    parts: list[tuple[str, float]] = []
    rest = round(length, 6)
    for unit, size in UNITS.items():
        if unit == "w" and rest % size:
            continue  # 10 days read better than 1 w 3 d
        count = rest // size if unit != "s" else rest
        rest = round(rest - count * size, 6)
        if count:
            parts.append((unit, count))
    return parts
