"""What a cron rule does when the clocks change: the one place that decides it. Pure.

A fixed time that the clocks jump over runs once, just after the jump. One that they show twice runs
the first time. Rules that name no hour, or every n minutes, follow real time: they continue
through both, and no interval is lost or doubled. In detail:

* Jumped over (a gap): walls in it run together, once, when it ends. Not so for a rule of every hour,
  whose next run comes in its real time anyway: unless the jump is no whole hour (Lord Howe) and the
  minute is fixed. A date that never was (Apia, 30 December 2011) has no runs.
* Shown twice (a fold): only the first time. But rules of every n minutes run both times, and so do
  rules of every hour when the change is a whole hour.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from .cron import Cron
from .zones import TICK, OffsetChange, change_at, utc, wall_of


class RuleMatch(NamedTuple):
    """A fire: its time, and the wall time that the rule asked for."""

    at: datetime
    wall: datetime


def following(cron: Cron, where: ZoneInfo, instant: datetime) -> RuleMatch | None:
    """The first fire later than this."""
    here = wall_of(instant, where)
    fold = change_at(here, where)
    if fold is None:
        return _first_pass(cron, where, here)
    if follows_real_time(cron, fold):
        return _both_passes(cron, where, here, fold)
    return _first_pass(cron, where, fold.upper - TICK if here.fold else here)


def follows_real_time(cron: Cron, change: OffsetChange) -> bool:
    """Whether the rule follows real time through a fold."""
    return cron.every_minute or (cron.every_hour and change.is_whole_hours)


def runs_after_gap(cron: Cron, gap: OffsetChange, wall: datetime) -> bool:
    """Whether a wall lost in this gap runs just after it."""
    follows = cron.every_hour and (cron.every_minute or gap.is_whole_hours)
    return not follows and not gap.swallows(wall.date())


def _first_pass(cron: Cron, where: ZoneInfo, after: datetime) -> RuleMatch | None:
    while (wall := cron.after(after)) is not None:
        change = change_at(wall, where)
        if change is None or not change.is_gap:
            return RuleMatch(utc(wall, where), wall)
        if runs_after_gap(cron, change, wall):
            return RuleMatch(change.at, wall)
        after = change.upper - TICK
    return None


def _both_passes(cron: Cron, where: ZoneInfo, here: datetime, fold: OffsetChange) -> RuleMatch | None:
    wall = cron.after(here)
    if here.fold == 0 and (wall is None or wall >= fold.upper):
        here = here.replace(fold=1)
        wall = cron.after(fold.lower - TICK)
    if here.fold == 1 and wall is not None and wall < fold.upper:
        return RuleMatch(utc(wall, where, fold=1), wall)
    return _first_pass(cron, where, here)
