"""Actions on schedules: access checks and views. ``app.schedules`` owns their rules and their auditing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.jobs.gates import over_schedule
from ..core.schedules import describe, firing
from ..core.schedules.describe import FirePreview
from ..errors import RotaError
from ..model import Gate, Page, Schedule, ScheduleFilter
from ..runtime.heavy import Work, heavy_response, off_the_loop
from .actions import requires
from .calendars import CalendarActions
from .requests import (
    BackfillRequest,
    CreateScheduleRequest,
    DisableRequest,
    FiresRequest,
    PreviewRequest,
    RuleFields,
    SchedulesRequest,
    TenantRequest,
    UpdateScheduleRequest,
    ValidateRequest,
)
from .runs import RunActions
from .schedule_selection import visible_schedule
from .upcoming_fires import upcoming_fires
from .views import Backfill, Fires, FireView, JobView, Preview, ScheduleView, job_view, schedule_view

CLEARABLE = ("start_at", "until")
RULE = ("cron", "every", "at", "timezone", "start_at", "until", "jitter")


class ScheduleActions(RunActions, CalendarActions):
    """Actions on schedules, their runs and calendars."""

    subject = "schedule"

    # --- reads -----------------------------------------------------------------------------------

    @requires("read")
    async def list(self, request: SchedulesRequest) -> Page[ScheduleView]:
        """List schedules by tenant and name; each with its newest run or summary if requested."""
        page = await self.services.schedules.list(
            tenant=self.operations.tenant(request.tenant), task=request.task, enabled=request.enabled,
            limit=request.limit, cursor=request.cursor,
        )  # fmt: skip
        gates = await self.operations.active_gates()
        views = [self._view(schedule, gates) for schedule in page.items]
        pairs = [(view.tenant, view.name) for view in views]
        if request.last_run:
            runs = await self._last_runs(page.items)
            views = [
                msgspec.structs.replace(view, last_run=runs.get(pair))
                for view, pair in zip(views, pairs, strict=True)
            ]
        if request.summary:
            summaries = await self.services.schedules.summaries(pairs)
            views = [
                msgspec.structs.replace(view, summary=summary)
                for view, summary in zip(views, summaries, strict=True)
            ]
        return Page(items=views, next=page.next)

    @requires("read")
    async def show(self, id: str, request: TenantRequest) -> ScheduleView:
        """Show one schedule, by its id or name."""
        return await self._current(await visible_schedule(self.operations, id, request.tenant))

    @requires("read")
    async def preview(self, id: str, request: PreviewRequest) -> Preview:
        """Preview the next fire times, with a note where a clock change affects one."""
        schedule = await visible_schedule(self.operations, id, request.tenant)

        async def make(work: Work) -> Preview:
            fires = await self.services.schedules.preview_of(schedule, request.n, work)
            return Preview(
                rule_summary=_summary(schedule),
                timezone=schedule.timezone,
                fires=_fires(fires),
                truncated=len(fires) < request.n and work.is_spent,
            )

        return await heavy_response(("preview", schedule, request.n), make)

    @requires("read")
    async def fires(self, request: FiresRequest) -> Fires:
        """List the fire times of all schedules within the next hours, in time order."""
        where = ScheduleFilter(tenant=self.operations.tenant(request.tenant), enabled=True)
        store, now = await self.operations.store(), self.services.clock.now()
        return await heavy_response(
            ("fires", where, request.hours),
            lambda work: upcoming_fires(store, where, now, request.hours, work),
        )

    @requires("read")
    async def validate(self, request: ValidateRequest) -> Preview:
        """Check a rule: its summary and next fire times, or what is wrong with it."""
        summary, fires = await off_the_loop(self.services.schedules.validate, request.n, **_rule(request))
        return Preview(rule_summary=summary, timezone=request.timezone or "UTC", fires=_fires(fires))

    # --- changes ---------------------------------------------------------------------------------

    @requires("operate")
    async def create(self, request: CreateScheduleRequest) -> ScheduleView:
        """Create a schedule."""
        tenant = self.operations.tenant(request.tenant) or "default"
        return await self._current(
            await self.services.schedules.create(
                name=request.name, tenant=tenant, on_conflict=request.on_conflict, **_given(request)
            )
        )

    @requires("operate")
    async def update(self, id: str, request: UpdateScheduleRequest) -> ScheduleView:
        """Update a schedule: given fields change, the others stay."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        return await self._current(
            await self.services.schedules.update(schedule.name, tenant=schedule.tenant, **_given(request))
        )

    @requires("operate")
    async def enable(self, id: str, request: TenantRequest) -> ScheduleView:
        """Enable a schedule; its next run is counted from now."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        return await self._current(
            await self.services.schedules.enable(schedule.name, tenant=schedule.tenant)
        )

    @requires("operate")
    async def disable(self, id: str, request: DisableRequest) -> ScheduleView:
        """Disable a schedule: no runs until it is enabled."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        return await self._current(
            await self.services.schedules.disable(
                schedule.name, tenant=schedule.tenant, reason=request.reason
            )
        )

    @requires("operate")
    async def delete(self, id: str, request: TenantRequest) -> None:
        """Delete a schedule. The jobs it created stay."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        await self.services.schedules.delete(schedule.name, tenant=schedule.tenant)

    @requires("operate")
    async def trigger(self, id: str, request: TenantRequest) -> JobView:
        """Run a schedule now; its next fire time stays as it is."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        job = await self.services.schedules.trigger(schedule.name, tenant=schedule.tenant)
        return job_view(job, self.operations.visibility)

    @requires("operate")
    async def backfill(self, id: str, request: BackfillRequest) -> Backfill:
        """Create jobs for past fire times that have none; ``dry_run`` only lists them."""
        schedule = await visible_schedule(self.operations, id, request.tenant)
        fires = await self.services.schedules.backfill(
            schedule.name, request.since, request.until, tenant=schedule.tenant, dry_run=request.dry_run
        )
        return Backfill(dry_run=request.dry_run, fires=tuple(fires))

    # --- views -----------------------------------------------------------------------------------

    async def _current(self, schedule: Schedule) -> ScheduleView:
        return self._view(schedule, await self.operations.active_gates())

    def _view(self, schedule: Schedule, gates: Sequence[Gate]) -> ScheduleView:
        gate = over_schedule(gates, schedule.tenant, schedule.name)
        return schedule_view(
            schedule, self.operations.visibility, _summary(schedule), gate, self.services.clock.now()
        )


def _summary(schedule: Schedule) -> str:
    """Its rule in words; what is wrong with a rule that cannot be parsed."""
    try:
        return describe.summary(firing.rule_of(schedule))
    except RotaError as error:
        return f"cannot be read: {error}"


def _rule(request: RuleFields) -> dict[str, Any]:
    """The given fields of the rule; null clears ``start_at`` and ``until``, and is ignored elsewhere."""
    given = {name: value for name in RULE if (value := getattr(request, name)) is not msgspec.UNSET}
    return {name: value for name, value in given.items() if value is not None or name in CLEARABLE}


def _given(request: UpdateScheduleRequest) -> dict[str, Any]:
    """The given fields of the schedule, except its name and tenant."""
    others = set(request.__struct_fields__) - {*RULE, "tenant", "name", "on_conflict"}
    given = {name: value for name in others if (value := getattr(request, name)) is not msgspec.UNSET}
    return {**given, **_rule(request)}


def _fires(fires: Sequence[FirePreview]) -> tuple[FireView, ...]:
    return tuple(FireView(at=fire.at, local=fire.local.isoformat(), note=fire.note) for fire in fires)
