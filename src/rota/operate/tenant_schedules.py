"""``app.for_tenant(name).schedules``: the schedules of one tenant, by the methods of ``app.schedules``."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from ..core.schedules.describe import FirePreview
from ..core.schedules.options import ScheduleOptions
from ..errors import OptionError
from ..model import OnScheduleConflict, Page, Schedule
from ..runtime.portal import Portal
from ..runtime.sync_twins import sync_twin
from ..schedules.manage import Schedules
from ..schedules.runs import WINDOW_DAYS, RunSummary, ScheduleRun
from ..tasks.handle import JobAccess, JobHandle, from_job


class TenantSchedules:
    """Create, change, read, run and delete the schedules of one tenant. Others are not found."""

    def __init__(self, schedules: Schedules, tenant: str, access: JobAccess) -> None:
        self._schedules = schedules
        self._tenant = tenant
        self._access = access  # of the handles on jobs

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self._schedules.portal

    def _check(self, given: Mapping[str, Any]) -> None:
        if "tenant" in given:
            raise OptionError(
                f"tenant={given['tenant']!r}: this client is for tenant {self._tenant!r}; leave tenant out"
            )

    async def create(
        self,
        *,
        name: str,
        on_conflict: OnScheduleConflict = "raise",
        connection: Any = None,
        **given: Unpack[ScheduleOptions],
    ) -> Schedule:
        """Store a new schedule; its first fire is counted from now."""
        self._check(given)
        return await self._schedules.create(
            name=name, tenant=self._tenant, on_conflict=on_conflict, connection=connection, **given
        )

    create_sync = sync_twin(create)

    async def update(
        self, name: str, *, connection: Any = None, **given: Unpack[ScheduleOptions]
    ) -> Schedule:
        """Change the given fields, keep the others."""
        self._check(given)
        return await self._schedules.update(name, tenant=self._tenant, connection=connection, **given)

    update_sync = sync_twin(update)

    async def enable(self, name: str) -> Schedule:
        """Fire again, counted from now."""
        return await self._schedules.enable(name, tenant=self._tenant)

    enable_sync = sync_twin(enable)

    async def disable(self, name: str, *, reason: str | None = None) -> Schedule:
        """Stop firing until it is enabled."""
        return await self._schedules.disable(name, tenant=self._tenant, reason=reason)

    disable_sync = sync_twin(disable)

    async def delete(self, name: str, *, connection: Any = None) -> None:
        """Delete the schedule. The jobs it has created stay."""
        await self._schedules.delete(name, tenant=self._tenant, connection=connection)

    delete_sync = sync_twin(delete)

    async def get(self, name: str) -> Schedule:
        """The schedule by its name; NotFound if this tenant has none."""
        return await self._schedules.get(name, tenant=self._tenant)

    get_sync = sync_twin(get)

    async def list(
        self,
        *,
        task: str | None = None,
        enabled: bool | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[Schedule]:
        """A page of the tenant's schedules, by name."""
        return await self._schedules.list(
            tenant=self._tenant, task=task, enabled=enabled, limit=limit, cursor=cursor
        )

    list_sync = sync_twin(list)

    async def preview(self, name: str, n: int = 10) -> Sequence[FirePreview]:
        """The next fires from now."""
        return await self._schedules.preview(name, n, tenant=self._tenant)

    preview_sync = sync_twin(preview)

    async def runs(
        self, name: str | None = None, *, failed: bool = False, limit: int = 50, cursor: str | None = None
    ) -> Page[ScheduleRun]:
        """The runs of a schedule, or of all of the tenant's, newest first."""
        return await self._schedules.runs(
            name, tenant=self._tenant, failed=failed, limit=limit, cursor=cursor
        )

    runs_sync = sync_twin(runs)

    async def summary(self, name: str, *, days: int = WINDOW_DAYS) -> RunSummary:
        """Success rate and durations over the last days."""
        return await self._schedules.summary(name, tenant=self._tenant, days=days)

    summary_sync = sync_twin(summary)

    async def trigger(self, name: str) -> JobHandle:
        """Run it now; its next fire is unchanged."""
        return from_job(await self._schedules.trigger(name, tenant=self._tenant), self._access)

    trigger_sync = sync_twin(trigger)

    async def backfill(
        self, name: str, since: datetime, until: datetime, *, dry_run: bool = True
    ) -> builtins.list[datetime]:
        """Create jobs for fire times in [since, until] that have none; ``dry_run`` only lists them."""
        found = await self._schedules.backfill(name, since, until, tenant=self._tenant, dry_run=dry_run)
        return builtins.list(found)

    backfill_sync = sync_twin(backfill)
