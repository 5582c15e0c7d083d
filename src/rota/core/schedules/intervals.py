"""The durations of a schedule: intervals, windows, spread. Pure."""

from __future__ import annotations

from typing import Any

from ... import durations
from ...errors import InvalidSchedule


def seconds(name: str, value: Any, low: float, high: float) -> float:
    """``value`` as seconds from low to high; InvalidSchedule if it is none."""
    return durations.seconds(name, value, low, high, InvalidSchedule)
