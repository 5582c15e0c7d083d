"""Jobs for past fire times that have none: which fires there were, and which of them have no job yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..core.schedules import firing
from ..core.schedules.calendars import Calendar, OpenDays, runs
from ..core.schedules.zones import TICK, zone
from ..errors import InvalidSchedule
from ..model import JobFilter, NewJob, PageRequest, Schedule
from ..store.protocol import Store

MOST_FIRES = 10_000
PAGE = 500


def past_fires(
    schedule: Schedule, calendar: Calendar | None, since: datetime, until: datetime, now: datetime
) -> Sequence[datetime]:
    """The fire times in [since, until], which must lie in the past."""
    if since.tzinfo is None or until.tzinfo is None:
        raise InvalidSchedule("a backfill needs times with a time zone, such as 2030-01-31T00:00:00Z")
    if until < since:
        raise InvalidSchedule(f"until={until.isoformat()} is before since={since.isoformat()}: swap them")
    if until > now:
        raise InvalidSchedule(f"until={until.isoformat()} is in the future: those runs come by themselves")
    rule, mode = firing.rule_of(schedule), schedule.calendar_mode
    days = None if calendar is None else OpenDays(calendar, zone(rule.timezone))
    found: list[datetime] = []
    for at in runs(rule, days, mode, since - TICK):
        if at > until:
            break
        found.append(at)
        if len(found) > MOST_FIRES:
            raise InvalidSchedule(
                f"more than {MOST_FIRES} fires lie between {since.isoformat()} and "
                f"{until.isoformat()}: backfill a shorter range"
            )
    return found


async def not_stored(store: Store, jobs: Sequence[NewJob]) -> list[NewJob]:
    """Those of the jobs that are not in the store."""
    stored: set[str] = set()
    for place in range(0, len(jobs), PAGE):
        ids = tuple(job.id for job in jobs[place : place + PAGE])
        stored |= {job.id for job in (await store.jobs(JobFilter(ids=ids), PageRequest(limit=PAGE))).items}
    return [job for job in jobs if job.id not in stored]
