"""The fire times of a rule one after another, as ``next_after`` gives them call by call, for far less. Pure.

An interval is added; a day on which the zone keeps its offset is walked by adding seconds to its midnight.
Only a day on which the clocks change is searched fire by fire.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta

from . import cron as crons
from .rules import LATEST, ScheduleRule, next_after
from .zones import steady_offset, wall_of, zone

MIDNIGHT = time(tzinfo=UTC)


def fires(rule: ScheduleRule, after: datetime) -> Iterator[datetime]:
    """Every fire time later than this, in order."""
    at = next_after(rule, after)
    if at is None:
        return
    if rule.cron is not None:
        yield from _of_cron(rule, at)
    elif rule.every is None:
        yield at
    else:
        last, period = rule.until or LATEST, timedelta(seconds=rule.every)
        while at <= last:
            yield at
            at += period


def _of_cron(rule: ScheduleRule, first: datetime) -> Iterator[datetime]:
    cron, where, last = crons.read(rule.cron), zone(rule.timezone), rule.until or LATEST
    at: datetime | None = first
    while at is not None:
        wall = wall_of(at, where)
        offset = steady_offset(wall.date(), where)
        if offset is None:
            yield at
        else:
            midnight = datetime.combine(wall, MIDNIGHT) - offset
            for second in cron.seconds_of_day(wall.time()):
                at = midnight + timedelta(seconds=second)
                if at > last:
                    return
                yield at
        at = next_after(rule, at)
