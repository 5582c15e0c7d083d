"""What a program that starts again does to the timing of a schedule it declared before. Pure.

A program often says "from now on", or "in an hour", each time it starts. Taken literally, every restart
would postpone the next run, and a program that restarts more often than its interval would never run it.
So "now" leaves a schedule that has begun where it is, and a run that is due before is not taken away.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from ...model import Schedule
from .firing import is_now, waiting_for


def keep_grid(stored: Schedule | None, declared: Schedule, now: datetime) -> Schedule:
    """The declaration with the stored start, if it says "from now on" of a schedule that has begun."""
    if stored is None or not _same_interval(stored, declared) or not _has_begun(stored, now):
        return declared
    if declared.start_at is None or not is_now(declared, now):
        return declared
    return msgspec.structs.replace(declared, start_at=stored.start_at)


def keep_pending(stored: Schedule | None, after: Schedule, now: datetime) -> Schedule:
    """The schedule with its new timing; a run that the old one promised earlier stays.

    Only a start that is more than an interval away is meant as a break.
    """
    if stored is None or not _same_interval(stored, after) or not (stored.enabled and after.enabled):
        return after
    pending, following = stored.next_run_at, after.next_run_at
    if pending is None or following is None or following <= pending:
        return after
    if following - now > timedelta(seconds=after.every or 0.0):
        return after
    return waiting_for(after, pending, now)


def _same_interval(stored: Schedule, declared: Schedule) -> bool:
    return stored.every is not None and stored.every == declared.every


def _has_begun(stored: Schedule, now: datetime) -> bool:
    return (stored.start_at or stored.created_at) <= now
