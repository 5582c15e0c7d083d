"""Rules described for people, and a preview of the next fires with the effect of clock changes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice, takewhile

from cronsim.explain import explain

from ...durations import short, spelled_out
from ...errors import InvalidSchedule
from ...model import CalendarMode, Schedule, Value
from . import cron as crons
from .calendars import Calendar, OpenDays, runs
from .dst import RuleMatch, follows_real_time
from .rules import ScheduleRule, anchor, match_after, next_after
from .zones import TICK, OffsetChange, change_at, change_between, zone

MOST_FIRES = 1000
_EVERY = re.compile(r"\*(?:/(\d+))?", re.ASCII)
_DAY = re.compile(r" on (?=(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)")


class FirePreview(Value, frozen=True, kw_only=True):
    """One coming fire: its time, the same in the rule's zone, and the effect of a clock change on it."""

    at: datetime
    local: datetime
    note: str | None = None


def summary(rule: ScheduleRule) -> str:
    """The rule as a person would say it: ``At 08:00, Monday through Friday, New York time``."""
    if rule.at is not None:
        return f"Once, at {_local_time(rule.at, rule)}"
    if rule.every is not None:
        start = f" from {_local_time(anchor(rule), rule)}" if rule.start_at or rule.anchor_at else ""
        return f"Every {spelled_out(rule.every)}{start}{_until(rule)}"
    start = f", from {_local_time(rule.start_at, rule)}" if rule.start_at else ""
    return f"{_cron_summary(rule.cron or '', rule.timezone)}{start}{_until(rule)}"


def preview(
    rule: ScheduleRule, after: datetime, n: int, go_on: Callable[[], bool] = lambda: True
) -> list[FirePreview]:
    """The next ``n`` fires later than ``after``: fewer when the rule ends, or ``go_on`` says no."""
    if not 0 <= n <= MOST_FIRES:
        raise InvalidSchedule(f"n={n}: a preview has at most {MOST_FIRES} fires; ask for fewer")
    fires: list[FirePreview] = []
    while len(fires) < n and go_on() and (match := match_after(rule, after)) is not None:
        local = match.at.astimezone(zone(rule.timezone))
        fires.append(FirePreview(at=match.at, local=local, note=_note(rule, after, match)))
        after = match.at
    return fires


def manual_fire(schedule: Schedule) -> list[FirePreview]:
    """The next fire, if someone set it by hand: the rule continues after it."""
    at = schedule.manual_run_at
    if at is None or at != schedule.next_run_at or not schedule.enabled:
        return []
    return [FirePreview(at=at, local=at.astimezone(zone(schedule.timezone)), note="set by hand")]


def preview_with_calendar(
    rule: ScheduleRule,
    calendar: Calendar,
    mode: CalendarMode,
    after: datetime,
    n: int,
    go_on: Callable[[], bool] = lambda: True,
) -> list[FirePreview]:
    """The next fires that the calendar lets through, or moves to a working day."""
    where, fires = zone(rule.timezone), list[FirePreview]()
    walk = takewhile(lambda at: go_on(), runs(rule, OpenDays(calendar, where), mode, after))
    for at in islice(walk, min(n, MOST_FIRES)):
        moved = next_after(rule, at - TICK) != at
        note = f"moved to a working day by calendar {calendar.name}" if moved else None
        fires.append(FirePreview(at=at, local=at.astimezone(where), note=note))
    return fires


def _cron_summary(text: str, timezone: str) -> str:
    cron = crons.read(text)
    interval = _plain_interval(cron.wording.split())
    if interval is not None:
        return interval if cron.every_hour else f"{interval}{_zone_summary(timezone)}"
    return f"{_polished(explain(cron.wording))}{_zone_summary(timezone)}"


def _polished(text: str) -> str:
    text = text.replace(" if it's on ", ", if it is a ").replace(" and on ", " and every ")
    return _DAY.sub(", ", text.removesuffix(" every day") + ", every day" * text.endswith(" every day"))


def _plain_interval(fields: list[str]) -> str | None:
    """``Every 15 minutes`` where a step divides its hour, minute or day, so that intervals are equal."""
    fields = ["0"] * (6 - len(fields)) + fields
    for place, (unit, size) in enumerate((("second", 60), ("minute", 60), ("hour", 24))):
        match = _EVERY.fullmatch(fields[place])
        rest = {"*"} >= set(fields[place + 1 :]) and {"0"} >= set(fields[:place])
        if match and rest:
            step = int(match[1] or 1)
            plural = f"{step} {unit}s" if step > 1 else unit
            return f"Every {plural}" if size % step == 0 else None
    return None


def _zone_summary(name: str) -> str:
    if name in ("UTC", "Etc/UTC"):
        return ", UTC"
    return f", {name.rpartition('/')[2].replace('_', ' ')} time"


def _until(rule: ScheduleRule) -> str:
    return f", until {_local_time(rule.until, rule)}" if rule.until else ""


def _local_time(at: datetime, rule: ScheduleRule) -> str:
    local = at.astimezone(zone(rule.timezone))
    clock = f"{local:%H:%M}" if not local.second and not local.microsecond else f"{local:%H:%M:%S}"
    return f"{local:%Y-%m-%d} {clock}{_zone_summary(rule.timezone).removeprefix(',')}"


def _note(rule: ScheduleRule, after: datetime, match: RuleMatch) -> str | None:
    where = zone(rule.timezone)
    if rule.cron is not None and (change := change_at(match.wall, where)) is not None:
        return _effect(crons.read(rule.cron), change, match)
    passed = change_between(after.replace(microsecond=0), match.at, where)
    return None if passed is None else f"clocks go {_describe(passed)} before this run"


def _effect(cron: crons.Cron, change: OffsetChange, match: RuleMatch) -> str:
    if change.is_gap:
        return (
            f"clocks go {_describe(change)}: {match.wall:%H:%M} does not exist, runs at {change.upper:%H:%M}"
        )
    if not follows_real_time(cron, change):
        return f"{match.wall:%H:%M} happens twice: runs the first time"
    turn = "second" if match.at >= change.at else "first"
    return f"{match.wall:%H:%M} happens twice: runs both times, this is the {turn}"


def _describe(change: OffsetChange) -> str:
    way = "forward" if change.is_gap else "back"
    length: timedelta = change.upper - change.lower
    when = (change.at + change.before).replace(tzinfo=None)
    return f"{way} {short(length.total_seconds())} on {when:%Y-%m-%d} at {when:%H:%M}"
