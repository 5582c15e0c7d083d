"""The fire times to come of all schedules, within bounds. Reads only; a scheduler never uses it.

Rare schedules come first: every schedule is walked a few fires far before any is walked further, so that
what does not fit, or takes too long, is the later fires of the most frequent ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice

from ..core.schedules import firing
from ..core.schedules.calendars import Calendar, OpenDays, runs
from ..core.schedules.zones import zone
from ..errors import RotaError
from ..model import PageRequest, Schedule, ScheduleFilter
from ..runtime.heavy import Work
from ..schedules.calendars import load
from ..store.protocol import Store
from .views import Fires, TruncatedSchedule, UpcomingFire

MOST_FIRES = 5000
MOST_FIRES_EACH = 200
MOST_PAGES = 25  # of 200 schedules
MOST_STEPS = 100_000  # fires that are looked at
DEPTHS = (8, 40)  # fires of every schedule before any is walked further

Calendars = Mapping[str | None, Calendar | None]


async def upcoming_fires(
    store: Store, where: ScheduleFilter, now: datetime, hours: float, work: Work
) -> Fires:
    """Every fire time of the schedules within the next hours, in time order."""
    schedules: list[Schedule] = []
    calendars: dict[str | None, Calendar | None] = {None: None}
    cursor: str | None = None
    end = now + timedelta(hours=hours)
    for _ in range(MOST_PAGES):
        page = await store.schedules(where, PageRequest(limit=200, cursor=cursor))
        schedules += [one for one in page.items if one.next_run_at is not None and one.next_run_at <= end]
        work.check()
        if (cursor := page.next) is None:
            break
    for name in {schedule.calendar for schedule in schedules if schedule.calendar is not None}:
        calendars[name] = await load(store, name)
    return await work.run(_planned, schedules, calendars, now, end, work, cursor is None)


class Plan:
    """The fires of one schedule, as far as it has been walked."""

    def __init__(self, schedule: Schedule, walk: Iterator[datetime]) -> None:
        self.schedule = schedule
        self.fires: list[datetime] = []
        self.is_whole = False
        self._walk = walk

    def walk(self, depth: int, work: Work) -> None:
        """Until it has this many fires, or no more; a rule that cannot be parsed has none."""
        try:
            for at in islice(self._walk, depth - len(self.fires)):
                self.fires.append(at)
                work.step()
        except RotaError:
            self.is_whole = True
        self.is_whole = self.is_whole or len(self.fires) < depth


def _planned(
    schedules: Sequence[Schedule],
    calendars: Calendars,
    now: datetime,
    end: datetime,
    work: Work,
    complete: bool,
) -> Fires:
    days: dict[tuple[str, str], OpenDays] = {}
    plans = [Plan(schedule, _walk(schedule, calendars, days, now, end)) for schedule in schedules]
    left, steps = plans, MOST_STEPS
    for depth in (*DEPTHS, MOST_FIRES_EACH + 1):
        for plan in left:
            if steps <= 0 or work.is_spent:
                break
            steps += len(plan.fires)
            plan.walk(depth, work)
            steps -= len(plan.fires) + 1
        left = [plan for plan in left if not plan.is_whole]
    return _truncated(plans, now, complete)


def _walk(
    schedule: Schedule,
    calendars: Calendars,
    days: dict[tuple[str, str], OpenDays],
    now: datetime,
    end: datetime,
) -> Iterator[datetime]:
    """The fires of a schedule from now until ``end``. What is known of closed days is shared."""
    first = schedule.next_run_at
    rule, calendar, opened = firing.rule_of(schedule), calendars[schedule.calendar], None
    if first is None:
        return
    if first >= now:
        yield first
    if calendar is not None:
        opened = days.setdefault((calendar.name, rule.timezone), OpenDays(calendar, zone(rule.timezone)))
    for at in runs(rule, opened, schedule.calendar_mode, max(first, now)):
        if at > end:
            return
        yield at


def _truncated(plans: Sequence[Plan], now: datetime, complete: bool) -> Fires:
    """Truncate to the limit, keeping the rarest schedules."""
    found: list[UpcomingFire] = []
    cut: list[TruncatedSchedule] = []
    for plan in sorted(plans, key=lambda plan: len(plan.fires) if plan.is_whole else MOST_FIRES_EACH + 1):
        fits = len(found) + min(len(plan.fires), MOST_FIRES_EACH) <= MOST_FIRES
        shown = plan.fires[:MOST_FIRES_EACH] if fits else []
        name, tenant = plan.schedule.name, plan.schedule.tenant
        found += [UpcomingFire(at=at, schedule=name, tenant=tenant) for at in shown]
        was_walked = plan.is_whole or len(plan.fires) > MOST_FIRES_EACH
        complete = complete and fits and was_walked
        if len(shown) < len(plan.fires) or not was_walked:
            after = shown[-1] if shown else now
            cut.append(TruncatedSchedule(schedule=name, tenant=tenant, after=after))
    return Fires(items=tuple(sorted(found, key=lambda fire: fire.at)), cut=tuple(cut), more=not complete)
