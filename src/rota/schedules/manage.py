"""Everything that can be done with schedules from a program: ``app.schedules``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

import msgspec

from ..core.jobs.options import NO_OPTIONS, Options
from ..core.schedules import describe, firing, rules
from ..core.schedules.describe import FirePreview
from ..core.schedules.draft import snapshot
from ..core.schedules.options import TIMING, ScheduleOptions, check_on_conflict
from ..errors import InvalidSchedule
from ..model import (
    JobFilter,
    NewJob,
    OnScheduleConflict,
    Page,
    PageRequest,
    RunCounts,
    Schedule,
    ScheduleFilter,
    State,
)
from ..runtime.heavy import Work, off_the_loop
from ..runtime.portal import Portal
from ..runtime.runtime import Runtime
from ..runtime.sync_twins import sync_twin
from ..store.protocol import Store
from ..tasks.handle import JobAccess, JobHandle, from_new
from ..tasks.published import PublishedTasks
from ..tasks.registry import Registry
from .backfill import not_stored, past_fires
from .drafts import ScheduleDrafts
from .edits import Change, ScheduleEdits, get
from .runs import WINDOW_DAYS, RunSummary, ScheduleRun, run_of, summary_of, window_start
from .scheduler import scheduled_job


class Schedules:
    """The schedules of one app's store: create, change, read, preview, run now and backfill.

    Owns no rule of its own: rules are pure functions in ``core/schedules``, writing is ``ScheduleEdits``.
    Never fires a schedule because its time has come: that is the scheduler's.
    """

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        published: PublishedTasks,
        access: JobAccess,
        wake: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._published = published
        self._access = access
        self._drafts = ScheduleDrafts(runtime, registry)
        self._edits = ScheduleEdits(runtime, self._drafts, wake)

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self._runtime.portal

    def build(self, name: str, tenant: str, given: Mapping[str, Any]) -> Schedule:
        """A checked schedule that is not stored."""
        return self._drafts.build(name, tenant, given)

    # --- create and change -----------------------------------------------------------------------

    async def create(
        self,
        *,
        name: str,
        tenant: str = "default",
        on_conflict: OnScheduleConflict = "raise",
        connection: Any = None,
        **given: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Store a new schedule; its first fire is counted from now.

        If the name is in use, ``on_conflict="update"`` changes the given fields of that schedule. With
        ``connection``, the caller's own open transaction, all of it is part of that transaction.
        """
        check_on_conflict(on_conflict)
        within = None if connection is None else await self._edits.store(connection)
        async with self._edits.audited("create", name, tenant, within) as entry:
            store = within or await self._edits.store(None)
            fresh = self._drafts.build(name, tenant, given)
            if on_conflict == "update":
                schedule = await self._edits.create_or_change(store, entry, fresh, self._change(given))
            else:
                schedule = await self._edits.create(store, fresh)
                entry.after = snapshot(schedule)
        if within is None:
            await self._published.introduce(await self._runtime.stores.get(), schedule.task)
        return schedule

    create_sync = sync_twin(create)

    async def update(
        self,
        name: str,
        *,
        tenant: str = "default",
        connection: Any = None,
        **given: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Change the given fields, keep the others. New timing is counted from now."""
        if not given:
            raise InvalidSchedule("nothing to change was given: name at least one field")
        restart = bool((TIMING | {"enabled"}) & given.keys())
        schedule = await self._edits.change(
            "update", name, tenant, self._change(given), restart=restart, connection=connection
        )
        if connection is None:
            await self._published.introduce(await self._runtime.stores.get(), schedule.task)
        return schedule

    update_sync = sync_twin(update)

    def _change(self, given: Mapping[str, Any]) -> Change:
        def change(before: Schedule) -> Schedule:
            after = self._drafts.change(before, given)
            if not after.enabled:
                return msgspec.structs.replace(after, check_at=None)
            return msgspec.structs.replace(after, reason=None)

        return change

    async def enable(self, name: str, *, tenant: str = "default") -> Schedule:
        """Fire again, counted from now: fires missed while it was disabled are not caught up."""

        def change(before: Schedule) -> Schedule:
            return msgspec.structs.replace(before, enabled=True, reason=None)

        return await self._edits.change("enable", name, tenant, change, restart=True)

    enable_sync = sync_twin(enable)

    async def disable(self, name: str, *, tenant: str = "default", reason: str | None = None) -> Schedule:
        """Stop firing until it is enabled; its history and settings stay."""

        def change(before: Schedule) -> Schedule:
            return msgspec.structs.replace(before, enabled=False, reason=reason, check_at=None, held=())

        return await self._edits.change("disable", name, tenant, change, restart=False)

    disable_sync = sync_twin(disable)

    async def delete(self, name: str, *, tenant: str = "default", connection: Any = None) -> None:
        """Delete the schedule. The jobs it has created stay."""
        await self._edits.delete(name, tenant, connection)

    delete_sync = sync_twin(delete)

    # --- read ------------------------------------------------------------------------------------

    async def get(self, name: str, *, tenant: str = "default") -> Schedule:
        """The schedule by its name; NotFound if there is none."""
        return await get(await self._runtime.stores.get(), name, tenant)

    get_sync = sync_twin(get)

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
        store = await self._runtime.stores.get()
        where = ScheduleFilter(tenant=tenant, task=task, enabled=enabled)
        return await store.schedules(where, PageRequest(limit=limit, cursor=cursor))

    list_sync = sync_twin(list)

    async def preview(self, name: str, n: int = 10, *, tenant: str = "default") -> Sequence[FirePreview]:
        """The next fires from now, each with the effect of a clock change on it."""
        return await self.preview_of(await self.get(name, tenant=tenant), n, Work())

    preview_sync = sync_twin(preview)

    async def preview_of(self, schedule: Schedule, n: int, work: Work) -> Sequence[FirePreview]:
        """The next fires of this schedule, as far as the work has time for them."""
        calendar = await self._drafts.calendar(await self._runtime.stores.get(), schedule)
        rule, now = firing.rule_of(schedule), self._runtime.clock.now()
        first = describe.manual_fire(schedule)[:n]
        if first:
            now, n = max(now, first[0].at), n - 1
        if calendar is None:
            return [*first, *await work.run(describe.preview, rule, now, n, work.step)]
        mode = schedule.calendar_mode
        rest = await work.run(describe.preview_with_calendar, rule, calendar, mode, now, n, work.check)
        return [*first, *rest]

    preview_of_sync = sync_twin(preview_of)

    def validate(self, n: int = 5, **given: Any) -> tuple[str, Sequence[FirePreview]]:
        """A summary of a rule, and its next fires; InvalidSchedule names the mistake and the field."""
        rule = rules.parse(**given)
        return describe.summary(rule), describe.preview(rule, self._runtime.clock.now(), n)

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
        store = await self._runtime.stores.get()
        where = JobFilter(
            schedule=name, from_schedule=True, tenant=tenant, states=(State.FAILED,) if failed else None
        )
        page = await store.jobs(where, PageRequest(limit=limit, cursor=cursor))
        return Page(items=[run_of(job) for job in page.items], next=page.next)

    runs_sync = sync_twin(runs)

    async def summary(self, name: str, *, tenant: str = "default", days: int = WINDOW_DAYS) -> RunSummary:
        """Success rate and durations over the last days; see ``RunSummary`` for what is counted."""
        (found,) = await self.summaries([(tenant, name)], days=days)
        return found

    summary_sync = sync_twin(summary)

    async def summaries(
        self, schedules: Sequence[tuple[str, str]], *, days: int = WINDOW_DAYS
    ) -> Sequence[RunSummary]:
        """The summary of each (tenant, name) pair, in their order."""
        since = window_start(self._runtime.clock.now(), days)
        store = await self._runtime.stores.get()
        counts = await store.survey(RunCounts(schedules, since.date()))
        found = {(count.tenant, count.schedule): count for count in counts}
        return [summary_of(found.get(pair), days, since) for pair in schedules]

    summaries_sync = sync_twin(summaries)

    # --- run now, backfill -----------------------------------------------------------------------

    async def trigger(self, name: str, *, tenant: str = "default") -> JobHandle:
        """Run it now, origin ``manual``; its next fire is unchanged. Works on a disabled one too."""
        async with self._edits.audited("trigger", name, tenant) as entry:
            schedule, now = await self.get(name, tenant=tenant), self._runtime.clock.now()
            fire = firing.DueFire(at=now, origin="scheduler")
            store = await self._runtime.stores.get()
            job = scheduled_job(schedule, fire, await self._task(store, schedule), self._runtime.settings)
            job = msgspec.structs.replace(job, id=self._runtime.ids.new(now), origin="manual")
            (job,) = await self._runtime.tenants.admitted(store, [job])
            (inserted,) = await store.insert([job], now)
            entry.after = {"job": job.id}
            return from_new(job, inserted, now, self._access)

    trigger_sync = sync_twin(trigger)

    async def backfill(
        self, name: str, since: datetime, until: datetime, *, tenant: str = "default", dry_run: bool = True
    ) -> Sequence[datetime]:
        """Create jobs for fire times in [since, until] that have none; ``dry_run`` only lists them."""
        schedule = await self.get(name, tenant=tenant)
        store, now = await self._runtime.stores.get(), self._runtime.clock.now()
        calendar = await self._drafts.calendar(store, schedule)
        task, settings = await self._task(store, schedule), self._runtime.settings

        def past_jobs() -> list[NewJob]:
            fires = past_fires(schedule, calendar, since, until, now)
            due = [firing.DueFire(at=at, origin="catchup") for at in fires]
            return [scheduled_job(schedule, fire, task, settings) for fire in due]

        jobs = await not_stored(store, await off_the_loop(past_jobs))
        if jobs and not dry_run:
            async with self._edits.audited("backfill", name, tenant) as entry:
                jobs = list(await self._runtime.tenants.admitted(store, jobs))
                results = await store.insert(jobs, self._runtime.clock.now(), retrying=True)
                jobs = [job for job, one in zip(jobs, results, strict=True) if one.outcome == "created"]
                entry.after = {"since": since, "until": until, "jobs": len(jobs)}
        return [job.scheduled_for for job in jobs if job.scheduled_for is not None]

    backfill_sync = sync_twin(backfill)

    async def _task(self, store: Store, schedule: Schedule) -> Options:
        """What its task says, the same in every process."""
        return (await self._published.options_for_schedules(store)).get(schedule.task, NO_OPTIONS)
