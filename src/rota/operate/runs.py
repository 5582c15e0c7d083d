"""Actions on the runs of schedules: their history, read off the jobs they created. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ..model import LastRuns, Page, Schedule
from ..schedules.runs import RunSummary, ScheduleRun, run_of
from .actions import ActionGroup, requires
from .requests import RunsRequest, SummaryRequest
from .schedule_selection import by_full_name, visible_schedule


class RunActions(ActionGroup):
    """Actions on the runs of schedules, part of ``operations.schedules``."""

    @requires("read")
    async def runs(self, request: RunsRequest) -> Page[ScheduleRun]:
        """List the runs of one schedule or of all, newest first."""
        if request.schedule is not None and request.tenant is None:
            full = await by_full_name(self.operations, request.schedule, None)
            if full is not None:
                request = msgspec.structs.replace(request, schedule=full.name, tenant=full.tenant)
        page = await self.services.schedules.runs(
            request.schedule, tenant=self.operations.tenant(request.tenant), failed=request.failed,
            limit=request.limit, cursor=request.cursor,
        )  # fmt: skip
        return Page(items=[self._visible(run) for run in page.items], next=page.next)

    @requires("read")
    async def runs_of(self, id: str, request: RunsRequest) -> Page[ScheduleRun]:
        """List the runs of one schedule, newest first."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        return await self.runs(
            msgspec.structs.replace(request, schedule=schedule.name, tenant=schedule.tenant)
        )

    @requires("read")
    async def summary(self, id: str, request: SummaryRequest) -> RunSummary:
        """Summarise the runs that ended in the last days: success rate and durations."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        return await self.services.schedules.summary(schedule.name, tenant=schedule.tenant, days=request.days)

    async def _last_runs(self, schedules: Sequence[Schedule]) -> Mapping[tuple[str, str], ScheduleRun]:
        """The newest run of each schedule that has one, by tenant and name, in one store call."""
        store = await self.operations.store()
        jobs = await store.survey(LastRuns([(schedule.tenant, schedule.name) for schedule in schedules]))
        runs = [self._visible(run_of(job)) for job in jobs]
        return {(run.tenant, run.schedule): run for run in runs}

    def _visible(self, run: ScheduleRun) -> ScheduleRun:
        """A run's details and message come from its output or its error."""
        visibility = self.operations.visibility
        return msgspec.structs.replace(
            run, details=visibility.value(run.details), message=visibility.message(run.message)
        )
