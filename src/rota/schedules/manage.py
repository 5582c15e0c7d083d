"""Everything one can do with schedules, once: ``app.schedules``. The command line is a client of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import msgspec

from ..core.jobs.options import name_text, options
from ..core.payload import codec
from ..core.schedules import describe, firing, rules
from ..core.schedules.calendars import Calendar, Mode, next_allowed
from ..core.schedules.describe import FirePreview
from ..core.schedules.intervals import seconds
from ..core.schedules.zones import zone
from ..errors import AlreadyRegistered, IllegalMove, InvalidSchedule, NotFound
from ..model import InsertResult, JobFilter, NewJob, Page, PageRequest, Schedule, ScheduleFilter, State
from ..runtime.audit import AuditDraft, audited
from ..store.protocol import Store
from ..tasks.handle import JobHandle, from_new
from .calendars import load
from .runs import RunSummary, ScheduleRun, run_of, summary_of
from .scheduler import scheduled_job

if TYPE_CHECKING:
    from ..app import Rota

TRIES = 10  # against others who write the same schedule
MOST_BACKFILLED = 10_000
SUMMARISED = 1000
ASKED = 500


class ScheduleOptions(TypedDict, total=False):
    """What ``create`` and ``update`` take beside name and tenant."""

    task: str
    cron: str | None
    every: float | str | timedelta | None
    at: datetime | str | None
    timezone: str
    payload: Mapping[str, Any] | None
    enabled: bool
    queue: str | None
    priority: int | None
    max_attempts: int | None
    timeout: float | timedelta | None
    start_at: datetime | str | None
    until: datetime | str | None
    missed: str
    missed_cap: int
    missed_window: float | str | None
    overlap: str
    jitter: float | str | timedelta
    description: str
    calendar: str | None
    calendar_mode: str


class Schedules:
    """The schedules of one app's store."""

    def __init__(self, app: Rota) -> None:
        self._app = app

    # --- making and changing ---------------------------------------------------------------------

    async def create(
        self, *, name: str, tenant: str = "default", **given: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Store a new schedule; its first fire is counted from now."""
        async with self._audited("schedule.create", name, tenant) as note:
            store = await self._app.stores.get()
            fresh = self.build(name, tenant, given)
            schedule = _still_to_come(await self.started(store, fresh))
            if (await store.put_schedules([schedule], self._app.clock.now()))[0] is None:
                raise AlreadyRegistered(
                    f"tenant {tenant!r} already has a schedule named {name!r}: "
                    "update it, or choose another name"
                )
            self._app.wake_scheduler()
            note.after = told(schedule)
            return await self.get(name, tenant=tenant)

    async def update(
        self, name: str, *, tenant: str = "default", **given: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Change what is given, keep the rest. New timing is counted from now."""
        if not given:
            raise InvalidSchedule("nothing to change was given: name at least one field")

        def change(before: Schedule) -> Schedule:
            after = _filled(before, given, self._app)
            if not after.enabled:
                return msgspec.structs.replace(after, look_at=None)
            return msgspec.structs.replace(after, reason=None)

        return await self._write("update", name, tenant, change, restart=TIMED & given.keys() != set())

    async def enable(self, name: str, *, tenant: str = "default") -> Schedule:
        """Fire again, counted from now: what was missed while it was off is not caught up."""
        return await self._write(
            "enable",
            name,
            tenant,
            lambda s: msgspec.structs.replace(s, enabled=True, reason=None),
            restart=True,
        )

    async def disable(self, name: str, *, tenant: str = "default", reason: str | None = None) -> Schedule:
        """Fire no more until enabled; history and settings stay."""
        return await self._write(
            "disable",
            name,
            tenant,
            lambda s: msgspec.structs.replace(s, enabled=False, reason=reason, look_at=None, held=()),
            restart=False,
        )

    async def delete(self, name: str, *, tenant: str = "default") -> None:
        """Forget the schedule. The jobs it has made stay."""
        async with self._audited("schedule.delete", name, tenant) as note:
            schedule = await self.get(name, tenant=tenant)
            note.before = told(schedule)
            store = await self._app.stores.get()
            await store.delete_schedules([schedule.id])

    # --- looking ---------------------------------------------------------------------------------

    async def get(self, name: str, *, tenant: str = "default") -> Schedule:
        """The schedule by its name; NotFound if there is none."""
        store = await self._app.stores.get()
        page = await store.schedules(ScheduleFilter(name=name, tenant=tenant), PageRequest(limit=1))
        if not page.items:
            raise NotFound(f"tenant {tenant!r} has no schedule named {name!r}")
        return page.items[0]

    async def list(
        self,
        *,
        tenant: str | None = None,
        task: str | None = None,
        enabled: bool | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Schedule]:
        """A page of schedules, by tenant and name."""
        store = await self._app.stores.get()
        where = ScheduleFilter(tenant=tenant, task=task, enabled=enabled)
        return await store.schedules(where, PageRequest(limit=limit, cursor=cursor))

    async def preview(self, name: str, n: int = 10, *, tenant: str = "default") -> Sequence[FirePreview]:
        """The next fires from now, each with what a clock change does to it."""
        schedule = await self.get(name, tenant=tenant)
        store = await self._app.stores.get()
        calendar = await self._calendar(store, schedule)
        rule, now = firing.rule_of(schedule), self._app.clock.now()
        if calendar is None:
            return describe.preview(rule, now, n)
        return _preview_kept(rule, calendar, schedule.calendar_mode, now, n)

    def validate(self, n: int = 5, **given: Any) -> tuple[str, Sequence[FirePreview]]:
        """A rule in words, and its next fires; InvalidSchedule says what is wrong, and where."""
        rule = rules.parse(**given)
        return describe.words(rule), describe.preview(rule, self._app.clock.now(), n)

    async def runs(
        self,
        name: str | None = None,
        *,
        tenant: str | None = None,
        failed: bool = False,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[ScheduleRun]:
        """The runs of a schedule, or of all, newest first."""
        store = await self._app.stores.get()
        where = JobFilter(
            schedule=name, scheduled=True, tenant=tenant, states=(State.FAILED,) if failed else None
        )
        page = await store.jobs(where, PageRequest(limit=limit, cursor=cursor))
        return Page(items=[run_of(job) for job in page.items], next=page.next)

    async def summary(self, name: str, *, tenant: str = "default", days: float = 7.0) -> RunSummary:
        """Success rate and durations over the last days (at most the newest thousand runs)."""
        found = await self.runs(name, tenant=tenant, limit=SUMMARISED)
        since = self._app.clock.now() - timedelta(days=days)
        return summary_of([run for run in found.items if (run.finished_at or run.created_at) >= since])

    # --- firing by hand --------------------------------------------------------------------------

    async def trigger(self, name: str, *, tenant: str = "default") -> JobHandle:
        """Run it now, origin ``manual``; its next fire stays as it is. Works on a disabled one too."""
        async with self._audited("schedule.trigger", name, tenant) as note:
            schedule = await self.get(name, tenant=tenant)
            now = self._app.clock.now()
            job = msgspec.structs.replace(
                scheduled_job(
                    schedule,
                    firing.DueFire(at=now, origin="scheduler"),
                    self._app.registry,
                    self._app.settings,
                ),
                id=self._app.ids.new(now),
                origin="manual",
            )
            store = await self._app.stores.get()
            inserted = (await store.insert([job], now))[0]
            note.after = {"job": job.id}
            return from_new(job, inserted, now, self._app)

    async def backfill(
        self, name: str, since: datetime, until: datetime, *, tenant: str = "default", dry_run: bool = True
    ) -> Sequence[datetime]:
        """Make the jobs of the fires in [since, until] that were never made; ``dry_run`` only tells which."""
        schedule = await self.get(name, tenant=tenant)
        store = await self._app.stores.get()
        calendar = await self._calendar(store, schedule)
        jobs = [self._caught_up(schedule, at) for at in self._range(schedule, calendar, since, until)]
        jobs = await _unmade(store, jobs)
        if jobs and not dry_run:
            async with self._audited("schedule.backfill", name, tenant) as note:
                made: Sequence[InsertResult] = await store.insert(jobs, self._app.clock.now(), retrying=True)
                jobs = [job for job, one in zip(jobs, made, strict=True) if one.outcome == "created"]
                note.after = {"since": since, "until": until, "jobs": len(jobs)}
        return [job.scheduled_for for job in jobs if job.scheduled_for is not None]

    def _range(
        self, schedule: Schedule, calendar: Calendar | None, since: datetime, until: datetime
    ) -> Sequence[datetime]:
        if since.tzinfo is None or until.tzinfo is None:
            raise InvalidSchedule("a backfill needs instants with a time zone, such as 2030-01-31T00:00:00Z")
        if until < since:
            raise InvalidSchedule(f"until={until.isoformat()} is before since={since.isoformat()}: swap them")
        if until > self._app.clock.now():
            raise InvalidSchedule(f"until={until.isoformat()} is in the future: those come by themselves")
        rule, mode = firing.rule_of(schedule), schedule.calendar_mode
        found, at = [], since - timedelta(microseconds=1)
        while (following := next_allowed(rule, calendar, mode, at)) is not None and following <= until:
            found.append(following)
            if len(found) > MOST_BACKFILLED:
                raise InvalidSchedule(
                    f"more than {MOST_BACKFILLED} fires lie between {since.isoformat()} and "
                    f"{until.isoformat()}: backfill a shorter range"
                )
            at = following
        return found

    def _caught_up(self, schedule: Schedule, at: datetime) -> NewJob:
        fire = firing.DueFire(at=at, origin="catchup")
        return scheduled_job(schedule, fire, self._app.registry, self._app.settings)

    # --- steps -----------------------------------------------------------------------------------

    def build(self, name: str, tenant: str, given: Mapping[str, Any]) -> Schedule:
        """A checked schedule that is not stored yet."""
        if "task" not in given:
            raise InvalidSchedule(f"schedule {name!r} names no task: give task=…")
        now = self._app.clock.now()
        empty = Schedule(
            id=self._app.ids.new(now),
            name=name_text("name", name),
            tenant=name_text("tenant", tenant),
            task="",
            created_at=now,
            updated_at=now,
        )
        return _filled(empty, given, self._app)

    async def started(self, store: Store, schedule: Schedule) -> Schedule:
        """The schedule with its next fire counted from now."""
        calendar = await self._calendar(store, schedule)
        return firing.start(schedule, self._app.clock.now(), calendar)

    async def _calendar(self, store: Store, schedule: Schedule) -> Calendar | None:
        if schedule.calendar is None:
            return None
        calendar = await load(store, schedule.calendar)
        if calendar is None:
            raise NotFound(f"there is no calendar named {schedule.calendar!r}: import it first")
        return calendar

    def _audited(self, action: str, name: str, tenant: str) -> AbstractAsyncContextManager[AuditDraft]:
        return audited(self._app, action, f"schedule:{tenant}/{name}", tenant)

    async def _write(self, verb: str, name: str, tenant: str, change: Any, *, restart: bool) -> Schedule:
        async with self._audited(f"schedule.{verb}", name, tenant) as note:
            return await self._written(name, tenant, change, restart, note)

    async def _written(
        self, name: str, tenant: str, change: Any, restart: bool, note: AuditDraft
    ) -> Schedule:
        """Read, change, write if nobody else did meanwhile; else once more."""
        store = await self._app.stores.get()
        for _ in range(TRIES):
            before = await self.get(name, tenant=tenant)
            after = change(before)
            if restart or (after.enabled and after.look_at is None and after.next_run_at is None):
                after = await self.started(store, after)
            if restart:
                _still_to_come(after)
            if (await store.put_schedules([after], self._app.clock.now()))[0] is not None:
                self._app.wake_scheduler()
                note.before, note.after = told(before), told(after)
                return await self.get(after.name, tenant=tenant)
        raise IllegalMove(f"schedule {name!r} is being changed by others all the time: try again")


def told(schedule: Schedule) -> dict[str, Any]:
    """What the audit log keeps of a schedule: all that somebody decided, nothing that was computed."""
    kept = {name: getattr(schedule, name) for name in ScheduleOptions.__annotations__ if name != "payload"}
    return {**kept, "payload": schedule.payload, "reason": schedule.reason, "source": schedule.source}


TIMED = frozenset(
    {"cron", "every", "at", "timezone", "start_at", "until", "jitter", "calendar", "calendar_mode", "enabled"}
)


def _filled(schedule: Schedule, given: Mapping[str, Any], app: Rota) -> Schedule:
    """The schedule with what was given, everything checked."""
    unknown = given.keys() - ScheduleOptions.__annotations__.keys()
    if unknown:
        known = ", ".join(ScheduleOptions.__annotations__)
        raise InvalidSchedule(f"a schedule has no {', '.join(sorted(unknown))}; it has: {known}")
    values: dict[str, Any] = {k: v for k, v in given.items() if k != "payload"}
    if {"cron", "every", "at"} & values.keys():
        values = {"cron": None, "every": None, "at": None, **values}
    for name in ("missed_window", "timeout"):
        if values.get(name) is not None:
            values[name] = seconds(name, values[name], 0.0, rules.LONGEST)
    after = msgspec.structs.replace(schedule, **values)
    rule = rules.parse(
        cron=after.cron,
        every=after.every,
        at=after.at,
        timezone=after.timezone,
        start_at=after.start_at,
        until=after.until,
        jitter=after.jitter,
        anchor_at=after.created_at,
    )
    _check(after)
    text = _payload(after.task, given["payload"] or {}, app) if "payload" in given else after.payload_json
    if "payload" not in given and schedule.version == 0:
        text = _payload(after.task, {}, app)
    return msgspec.structs.replace(
        after,
        at=rule.at,
        every=rule.every,
        start_at=rule.start_at,
        until=rule.until,
        jitter=rule.jitter,
        timezone=rule.timezone,
        payload_json=text,
    )


def _preview_kept(
    rule: rules.ScheduleRule, calendar: Calendar, mode: Mode, now: datetime, n: int
) -> list[FirePreview]:
    """The next fires that the calendar lets through, or moves to a working day."""
    found: list[FirePreview] = []
    while len(found) < min(n, describe.MOST_FIRES):
        at = next_allowed(rule, calendar, mode, now)
        if at is None:
            break
        moved = rules.next_after(rule, at - timedelta(microseconds=1)) != at
        note = f"moved to a working day by calendar {calendar.name}" if moved else None
        found.append(FirePreview(at=at, local=at.astimezone(zone(rule.timezone)), note=note))
        now = at
    return found


def _check(schedule: Schedule) -> None:
    name_text("task", schedule.task)
    said = {name: getattr(schedule, name) for name in ("queue", "priority", "max_attempts", "timeout")}
    options(said)
    firing.check(schedule)
    if schedule.calendar is not None:
        name_text("calendar", schedule.calendar)
    if not isinstance(schedule.enabled, bool):
        raise InvalidSchedule(f"enabled={schedule.enabled!r}: must be True or False")
    if not isinstance(schedule.description, str) or len(schedule.description) > 2000:
        raise InvalidSchedule("description: must be text of at most 2000 characters")


def _still_to_come(schedule: Schedule) -> Schedule:
    if schedule.enabled and schedule.next_run_at is None:
        raise InvalidSchedule(
            f"schedule {schedule.name!r} would never fire: its time is over; give a later at or until"
        )
    return schedule


async def _unmade(store: Store, jobs: Sequence[NewJob]) -> list[NewJob]:
    """Those whose fire has made no job yet."""
    made: set[str] = set()
    for place in range(0, len(jobs), ASKED):
        ids = tuple(job.id for job in jobs[place : place + ASKED])
        made |= {job.id for job in (await store.jobs(JobFilter(ids=ids), PageRequest(limit=ASKED))).items}
    return [job for job in jobs if job.id not in made]


def _payload(task: str, given: Mapping[str, Any], app: Rota) -> str:
    known = app.registry.get(task)
    limit = app.settings.max_payload_bytes
    if known is not None:
        return known.signature.encode(given, limit=limit)
    return codec.encode(dict(given), limit=limit, what="payload")
