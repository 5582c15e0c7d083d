"""What a schedule does when a scheduler checks it. Pure: the time, the calendar and the facts come in.

``decide`` joins the rule, the policy for missed fires and the policy for overlap into one FireDecision;
``start`` computes when a new, edited or newly enabled schedule is due. Neither touches the store.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import get_args

import msgspec

from ...errors import InvalidSchedule
from ...model import CalendarMode, FireOrigin, Overlap, Schedule, Value
from ..ids import uuid7
from .calendars import Calendar, next_allowed
from .catchup import check as check_missed
from .catchup import fires
from .names import key_of
from .rules import ScheduleRule, parse, spread
from .zones import TICK

RECHECK_S = 1.0  # of a schedule that holds a fire back until its previous run has finished
MOST_HELD = 100
MOMENT_S = 60.0  # between "start now" and the moment it is stored: a program may take its time to start
SHOWN = 60  # characters of a payload that is refused
CHOICES: dict[str, tuple[str, ...]] = {"overlap": get_args(Overlap), "calendar_mode": get_args(CalendarMode)}


class DueFire(Value, frozen=True, kw_only=True):
    """A fire time that becomes a job now."""

    at: datetime
    origin: FireOrigin


class FireDecision(Value, frozen=True, kw_only=True):
    """``schedule`` is the row to write; ``fires`` become jobs now; the others count what did not run."""

    schedule: Schedule
    fires: tuple[DueFire, ...] = ()
    cancel_previous: bool = False
    dropped: int = 0  # missed and not caught up
    skipped: int = 0  # because the previous run has not finished
    broken: str | None = None  # why it was disabled


def rule_of(schedule: Schedule) -> ScheduleRule:
    """The rule of a stored schedule; InvalidSchedule if its row makes no sense."""
    return parse(
        cron=schedule.cron,
        every=schedule.every,
        at=schedule.at,
        timezone=schedule.timezone,
        start_at=schedule.start_at,
        until=schedule.until,
        jitter=schedule.jitter,
        anchor_at=schedule.created_at,
    )


def check(schedule: Schedule) -> None:
    """InvalidSchedule if one of its policies does not exist, or its payload is no object."""
    check_missed(schedule.missed, schedule.missed_cap, schedule.missed_window, 0.0)
    if not schedule.payload_json.lstrip().startswith("{"):
        raise InvalidSchedule(
            f'payload={schedule.payload_json[:SHOWN]}: must be a JSON object, such as {{"to": 1}}'
        )
    for name, known in CHOICES.items():
        value = getattr(schedule, name)
        if value not in known:
            raise InvalidSchedule(f"{name}={value!r}: must be one of {', '.join(known)}")


def job_id(schedule_id: str, fire_at: datetime) -> str:
    """The one id that the job of this fire can have."""
    source = f"{schedule_id}@{fire_at.astimezone(UTC).isoformat()}"
    digest = hashlib.blake2b(source.encode(), digest_size=10).digest()
    return uuid7(int(fire_at.timestamp() * 1000), int.from_bytes(digest, "big") >> 6)


def start(schedule: Schedule, now: datetime, calendar: Calendar | None = None) -> Schedule:
    """The schedule with its next fire counted from now; a disabled one is not checked."""
    if not schedule.enabled:
        return msgspec.structs.replace(schedule, check_at=None, held=())
    rule = rule_of(schedule)
    since = now
    if rule.start_at is not None and is_now(schedule, now) and not _has_fired_since(schedule, rule.start_at):
        since = rule.start_at - TICK
    return waiting_for(schedule, next_allowed(rule, calendar, schedule.calendar_mode, since), now)


def is_now(schedule: Schedule, now: datetime) -> bool:
    """Whether an interval starts now, or a moment ago: the first fire is not over yet."""
    if schedule.every is None or schedule.start_at is None:
        return False
    moment = timedelta(seconds=min(MOMENT_S, schedule.every))
    return now - moment < schedule.start_at <= now


def waiting_for(schedule: Schedule, following: datetime | None, now: datetime) -> Schedule:
    """The schedule with this as its next fire."""
    return _with_next(schedule, following, (), spread(schedule.jitter, key_of(schedule)), now)


def _has_fired_since(schedule: Schedule, start_at: datetime) -> bool:
    return schedule.last_fire_at is not None and schedule.last_fire_at >= start_at


def decide(
    schedule: Schedule, now: datetime, grace: float, calendar: Calendar | None = None, busy: bool = False
) -> FireDecision:
    """What to do about a schedule that is due to be checked."""
    if not schedule.enabled:  # its row could not be read
        return switched_off(schedule, schedule.reason or "its row cannot be read")
    try:
        rule = rule_of(schedule)
        jitter = spread(schedule.jitter, key_of(schedule))
        check(schedule)
        if schedule.calendar is not None and calendar is None:
            raise InvalidSchedule(
                f"there is no calendar named {schedule.calendar!r}: import it, then enable the schedule"
            )
        if schedule.next_run_at is None and not schedule.held:
            return _first_look(schedule, now, calendar)
        found = fires(
            rule,
            schedule.next_run_at,
            now - jitter,
            schedule.missed,
            schedule.missed_cap,
            schedule.missed_window,
            grace,
            calendar,
            schedule.calendar_mode,
            manual=schedule.manual_run_at == schedule.next_run_at,
        )
    except (InvalidSchedule, OverflowError) as error:
        return switched_off(schedule, str(error))
    due = tuple(DueFire(at=at, origin=origin) for at, origin in found.fire_at)
    run, held, skipped = _overlap(schedule, due, busy)
    after = _with_next(schedule, found.next_run_at, held, jitter, now)
    if run:
        after = msgspec.structs.replace(after, last_fire_at=max(fire.at for fire in run))
    return FireDecision(
        schedule=after,
        fires=run,
        cancel_previous=bool(run) and busy and schedule.overlap == "cancel_previous",
        dropped=found.dropped,
        skipped=skipped,
    )


def _first_look(schedule: Schedule, now: datetime, calendar: Calendar | None) -> FireDecision:
    """A row written or edited by hand: its next fire, which may be due already; nothing fires yet.

    A time that was over when the row was written would be waited for in vain, and in silence.
    """
    started = start(schedule, counted_from(schedule, now), calendar)
    if started.next_run_at is None and schedule.source != "code":
        return switched_off(
            schedule, "it would never fire: its time is over; give a later at or until, then enable it"
        )
    return FireDecision(schedule=started)


def counted_from(schedule: Schedule, now: datetime) -> datetime:
    """Where a row written by hand starts: fires later than this are due, or missed."""
    written = min(max(schedule.created_at, schedule.updated_at), now)
    asked = schedule.at or schedule.start_at
    if asked is not None and written - timedelta(seconds=MOMENT_S) <= asked <= written:
        return asked - TICK
    return written


def switched_off(schedule: Schedule, why: str) -> FireDecision:
    """The schedule disabled, for it cannot fire."""
    off = msgspec.structs.replace(schedule, enabled=False, reason=why, check_at=None, held=())
    return FireDecision(schedule=off, broken=why)


def _overlap(
    schedule: Schedule, due: tuple[DueFire, ...], busy: bool
) -> tuple[tuple[DueFire, ...], tuple[datetime, ...], int]:
    """Which fires run now, which are held back, how many are skipped."""
    match schedule.overlap:
        case "skip":
            run = () if busy else due[:1]
            return run, (), len(due) - len(run)
        case "cancel_previous":
            return due[-1:], (), max(len(due) - 1, 0)
        case "queue":
            waiting = (*(DueFire(at=at, origin="catchup") for at in schedule.held), *due)
            run = () if busy else waiting[:1]
            rest = waiting[len(run) :]
            return run, tuple(fire.at for fire in rest[-MOST_HELD:]), max(len(rest) - MOST_HELD, 0)
        case _:
            return due, (), 0


def _with_next(
    schedule: Schedule,
    following: datetime | None,
    held: tuple[datetime, ...],
    jitter: timedelta,
    now: datetime,
) -> Schedule:
    check_at = None if following is None else following + jitter
    if held:
        soon = now + timedelta(seconds=RECHECK_S)
        check_at = soon if check_at is None else min(check_at, soon)
    manual = schedule.manual_run_at if schedule.manual_run_at == following else None
    return msgspec.structs.replace(
        schedule, next_run_at=following, manual_run_at=manual, check_at=check_at, held=held
    )
