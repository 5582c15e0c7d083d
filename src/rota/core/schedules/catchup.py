"""Missed fires: which jobs to create now, and when the schedule is due next. Pure and bounded.

A fire that is late by no more than the grace is on time and always runs. Of those that were missed:
``skip`` runs none; ``latest`` runs the newest one, unless an on-time fire takes its place; ``all`` runs
them, oldest first. No more than ``cap`` run at once, the newest; a missed fire older than ``window``
seconds is never run. The next time is always later than now, so nothing is decided twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import get_args

from ...errors import InvalidSchedule
from ...model import CalendarMode, FireOrigin, Missed, Value
from .calendars import Calendar, OpenDays, runs
from .rules import ScheduleRule
from .zones import TICK, zone

MOST_FIRES = 10_000

Run = tuple[datetime, FireOrigin]
Walk = Callable[[datetime], Iterator[datetime]]


class CatchUpPlan(Value, frozen=True, kw_only=True):
    """What to do about one schedule now.

    ``dropped`` counts the missed fires that will not run; when ``counted`` is false there are at least
    that many: a cron rule is not walked further than its cap.
    """

    fire_at: tuple[Run, ...] = ()
    next_run_at: datetime | None = None
    dropped: int = 0
    counted: bool = True


def fires(
    rule: ScheduleRule,
    next_run_at: datetime | None,
    now: datetime,
    policy: Missed = "latest",
    cap: int = 100,
    window: float | None = None,
    grace: float = 0.0,
    calendar: Calendar | None = None,
    mode: CalendarMode = "skip",
    *,
    manual: bool = False,
) -> CatchUpPlan:
    """The decision for a schedule due at ``next_run_at``; None: never computed, so nothing was missed.

    ``manual``: someone set that time, so it is a fire whatever the rule and the calendar say.
    """
    check(policy, cap, window, grace)
    days = None if calendar is None else OpenDays(calendar, zone(rule.timezone))

    promised = next_run_at if manual or (calendar is None and _was_promised(rule, next_run_at)) else None

    def walk(after: datetime) -> Iterator[datetime]:
        if promised is None or after >= promised:
            return runs(rule, days, mode, after)
        return chain((promised,), runs(rule, days, mode, promised))

    if next_run_at is None:
        return CatchUpPlan(next_run_at=next(walk(now), None))
    if next_run_at > now:
        return CatchUpPlan(next_run_at=next_run_at)
    due, beyond = _walk(walk, next_run_at - TICK, now, cap + 1)
    if len(due) <= cap:
        chosen = _choose(due, now, policy, window, grace)
        return CatchUpPlan(fire_at=chosen, next_run_at=beyond, dropped=len(due) - len(chosen))
    newest = _newest(walk, due, now, cap)
    chosen = _choose(newest, now, policy, window, grace)
    exact = _count(rule, due[1], now) if calendar is None else None
    total = len({*due, *newest}) if exact is None else 1 + exact
    return CatchUpPlan(
        fire_at=chosen,
        next_run_at=next(walk(now), None),
        dropped=total - len(chosen),
        counted=exact is not None,
    )


def _was_promised(rule: ScheduleRule, next_run_at: datetime | None) -> bool:
    """An interval that counts from elsewhere now keeps the fire that it had announced."""
    if rule.every is None or next_run_at is None:
        return False
    return rule.until is None or next_run_at <= rule.until


def _choose(
    due: list[datetime], now: datetime, policy: Missed, window: float | None, grace: float
) -> tuple[Run, ...]:
    """Which of these due fires run."""
    on_time_from = now - timedelta(seconds=grace)
    on_time = [at for at in due if at >= on_time_from]
    missed = [at for at in due if at < on_time_from]
    if window is not None:
        missed = [at for at in missed if at >= now - timedelta(seconds=window)]
    if policy == "skip" or (policy == "latest" and on_time):
        missed = []
    elif policy == "latest":
        missed = missed[-1:]
    return (*((at, "catchup") for at in missed), *((at, "scheduler") for at in on_time))


def _walk(walk: Walk, after: datetime, until: datetime, limit: int) -> tuple[list[datetime], datetime | None]:
    """The oldest ``limit`` fires after ``after``, none later than ``until``; and the one that follows."""
    found: list[datetime] = []
    for at in walk(after):
        if at > until or len(found) >= limit:
            return found, at
        found.append(at)
    return found, None


def _newest(walk: Walk, oldest: list[datetime], until: datetime, count: int) -> list[datetime]:
    """The newest ``count`` fires; ``oldest`` are the first ``count + 1`` of more.

    Their start is found by halving, from a guess that is right for even rules: the work grows with the
    logarithm of the time missed.
    """
    low, high = oldest[0] - TICK, until  # more than ``count`` follow low, fewer follow high
    middle = max(until - (oldest[-1] - oldest[0]), oldest[0])
    while high - low > TICK:
        found, _ = _walk(walk, middle, until, count + 1)
        if len(found) == count:
            return found
        low, high = (middle, high) if len(found) > count else (low, middle)
        middle = low + (high - low) // 2
    return _walk(walk, low, until, count + 1)[0][-count:]


def _count(rule: ScheduleRule, first: datetime, now: datetime) -> int | None:
    """How many fires there are from ``first`` to now; None for a rule that must be walked."""
    if rule.every is None:
        return None
    end = now if rule.until is None else min(now, rule.until)
    return (end - first) // timedelta(seconds=rule.every) + 1


def check(policy: str, cap: int, window: float | None, grace: float) -> None:
    """InvalidSchedule if the policy for missed fires makes no sense."""
    if policy not in get_args(Missed):
        raise InvalidSchedule(f"missed={policy!r}: must be skip, latest or all")
    if not isinstance(cap, int) or not 1 <= cap <= MOST_FIRES:
        raise InvalidSchedule(f"cap={cap!r}: must be from 1 to {MOST_FIRES}")
    if window is not None and not 0 <= window < 1e10:
        raise InvalidSchedule(f"window={window!r}: must be a number of seconds, 0 or more; None for no limit")
    if not 0 <= grace < 1e7:
        raise InvalidSchedule(f"grace={grace!r}: must be a number of seconds, 0 or more")
