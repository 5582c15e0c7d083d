"""Rules: when a schedule fires. Cron expression, interval or one time; checked here and nowhere else.

Pure: times come in, times go out, all of them aware and in UTC. Fire times are bare: the stable jitter
of a schedule is ``spread``, added when the job is created. ``start_at`` and ``until`` are both included.
Intervals count real time from ``start_at`` (else from ``anchor_at``, when the schedule was created), so
they never drift; for the same local time each day use cron.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from ...errors import InvalidSchedule
from ...model import Value
from . import cron as crons
from .dst import RuleMatch, following
from .intervals import seconds
from .zones import TICK, wall_of, zone

SHORTEST = 1.0
LONGEST = 3653 * 86400.0  # ten years
MOST_JITTER = 86400.0
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(3000, 1, 1, tzinfo=UTC)  # far from where datetime overflows
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ScheduleRule(Value, frozen=True, kw_only=True):
    """Exactly one of ``cron``, ``every``, ``at``. Created by ``parse``."""

    cron: str | None = None
    every: float | None = None  # seconds
    at: datetime | None = None
    timezone: str = "UTC"
    start_at: datetime | None = None
    until: datetime | None = None
    jitter: float = 0.0  # seconds
    anchor_at: datetime | None = None


def parse(
    *,
    cron: str | None = None,
    every: float | str | timedelta | None = None,
    at: datetime | str | None = None,
    timezone: str | None = None,
    start_at: datetime | str | None = None,
    until: datetime | str | None = None,
    jitter: float | str | timedelta | None = None,
    anchor_at: datetime | str | None = None,
) -> ScheduleRule:
    """A checked rule, or InvalidSchedule that names the field, the value, the cause and the remedy."""
    given = {"cron": cron, "every": every, "at": at}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        found = f"{' and '.join(named)} were given: keep one" if named else "none was given"
        raise InvalidSchedule(f"a schedule has exactly one of cron, every and at; {found}")
    if cron is not None:
        crons.read(cron)
    rule = ScheduleRule(
        cron=cron,
        every=None if every is None else seconds("every", every, SHORTEST, LONGEST),
        at=_instant("at", at),
        timezone=zone("UTC" if timezone is None else timezone).key,
        start_at=_instant("start_at", start_at),
        until=_instant("until", until),
        jitter=0.0 if jitter is None else seconds("jitter", jitter, 0.0, MOST_JITTER),
        anchor_at=_instant("anchor_at", anchor_at),
    )
    _check_span(rule)
    return rule


def next_after(rule: ScheduleRule, instant: datetime) -> datetime | None:
    """The first fire time later than this, without jitter; None when there is none."""
    found = match_after(rule, instant)
    return None if found is None else found.at


def match_after(rule: ScheduleRule, instant: datetime) -> RuleMatch | None:
    """As ``next_after``, with the wall time that the rule asked for."""
    if instant.tzinfo is None:
        raise InvalidSchedule(f"{instant.isoformat()} has no time zone; use datetime(…, tzinfo=UTC)")
    if rule.start_at is not None and instant < rule.start_at:
        instant = rule.start_at - TICK
    found = _search(rule, max(instant, EARLIEST)) if instant < LATEST else None
    return None if found is None or found.at > (rule.until or LATEST) else found


def _search(rule: ScheduleRule, instant: datetime) -> RuleMatch | None:
    where = zone(rule.timezone)
    if rule.cron is not None:
        return following(crons.read(rule.cron), where, instant)
    at = rule.at if rule.every is None else _next_interval(rule, timedelta(seconds=rule.every), instant)
    return RuleMatch(at, wall_of(at, where)) if at is not None and at > instant else None


def _next_interval(rule: ScheduleRule, period: timedelta, instant: datetime) -> datetime:
    first = anchor(rule)
    return first + max((instant - first) // period + 1, 0) * period


def anchor(rule: ScheduleRule) -> datetime:
    """Where an interval counts from."""
    return rule.start_at or rule.anchor_at or EPOCH


def spread(jitter: float, key: str) -> timedelta:
    """A part of the jitter, always the same for a key: added to a fire time, it spreads the load."""
    digest = hashlib.blake2b(key.encode(), digest_size=4).digest()
    return timedelta(seconds=int.from_bytes(digest, "big") / 2**32 * jitter)


def _instant(name: str, value: Any) -> datetime | None:
    if value is None:
        return None
    given = value[:64] if isinstance(value, str) else value
    try:
        found = datetime.fromisoformat(given) if isinstance(given, str) else given
    except ValueError:
        found = None
    if not isinstance(found, datetime):
        raise InvalidSchedule(f"{name}={given!r}: is not a date and time; use 2030-01-31T08:00:00Z")
    if found.utcoffset() is None:
        raise InvalidSchedule(f"{name}={given!s}: has no time zone; add one, such as Z or +02:00")
    if not EARLIEST.year < found.year < LATEST.year:
        raise InvalidSchedule(
            f"{name}={given!s}: the year must be from {EARLIEST.year + 1} to {LATEST.year - 1}"
        )
    return found.astimezone(UTC)


def _check_span(rule: ScheduleRule) -> None:
    if rule.start_at and rule.until and rule.until < rule.start_at:
        raise InvalidSchedule(
            f"until={rule.until.isoformat()}: is before start_at={rule.start_at.isoformat()}; "
            "give a later end or an earlier start"
        )
    first = rule.start_at or (EARLIEST if rule.at else None)
    if first is not None and next_after(rule, first - TICK) is None:
        name = "at" if rule.at else "cron" if rule.cron else "every"
        raise InvalidSchedule(
            f"{name}={getattr(rule, name)!s}: never fires between start_at and until; widen that span"
        )
