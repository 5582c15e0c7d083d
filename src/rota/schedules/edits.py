"""Changes to stored schedules: read, change, write unless someone else wrote meanwhile; audited."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager
from typing import Any

from ..core.schedules.draft import require_next_run, snapshot
from ..core.schedules.names import full_name
from ..core.schedules.options import TIMING
from ..core.schedules.restarts import keep_grid
from ..errors import AlreadyRegistered, IllegalMove, NotFound
from ..model import PageRequest, Schedule, ScheduleFilter
from ..runtime.audit import AuditDraft, audited
from ..runtime.runtime import Runtime
from ..store.protocol import StoreWithin
from .drafts import ScheduleDrafts

ATTEMPTS = 10  # while others write the same schedule
Change = Callable[[Schedule], Schedule]


async def find(store: StoreWithin, name: str, tenant: str) -> Schedule | None:
    page = await store.schedules(ScheduleFilter(name=name, tenant=tenant), PageRequest(limit=1))
    return page.items[0] if page.items else None


async def get(store: StoreWithin, name: str, tenant: str) -> Schedule:
    """The schedule of this name; NotFound if there is none."""
    schedule = await find(store, name, tenant)
    if schedule is None:
        raise NotFound(f"tenant {tenant!r} has no schedule named {name!r}")
    return schedule


class ScheduleEdits:
    """Writes schedules one at a time. Owns the audit entries about them; never fires one."""

    def __init__(self, runtime: Runtime, drafts: ScheduleDrafts, wake: Callable[[], None]) -> None:
        self._runtime = runtime
        self._drafts = drafts
        self._wake = wake  # a schedule changed here may be due before the scheduler's next tick

    async def store(self, connection: Any) -> StoreWithin:
        """The store, or the caller's own transaction on this connection."""
        if connection is None:
            return await self._runtime.stores.get()  # reads the store's clock
        return self._runtime.stores.root().within(connection)

    def audited(
        self, verb: str, name: str, tenant: str, within: StoreWithin | None = None
    ) -> AbstractAsyncContextManager[AuditDraft]:
        object = f"schedule:{full_name(tenant, name)}"
        return audited(self._runtime, f"schedule.{verb}", object, tenant, within)

    async def create(self, store: StoreWithin, fresh: Schedule) -> Schedule:
        """Store a new schedule; its first fire is counted from now."""
        name, tenant = fresh.name, fresh.tenant
        schedule = require_next_run(await self._drafts.start(store, fresh))
        await self._runtime.tenants.check_schedules(store, tenant)
        if (await store.put_schedules([schedule], self._runtime.clock.now()))[0] is None:
            raise AlreadyRegistered(
                f"tenant {tenant!r} already has a schedule named {name!r}: update it, "
                "create it with on_conflict='update', or choose another name"
            )
        self._wake()
        return await get(store, name, tenant)

    async def create_or_change(
        self, store: StoreWithin, entry: AuditDraft, fresh: Schedule, change: Change
    ) -> Schedule:
        """Store a new schedule, or apply the change to the one of its name; the run due next stays due."""
        name, tenant = fresh.name, fresh.tenant
        for _ in range(ATTEMPTS):
            before = await find(store, name, tenant)
            after = fresh if before is None else keep_grid(before, change(before), self._runtime.clock.now())
            if before is None:
                await self._runtime.tenants.check_schedules(store, tenant)
            if before is None or _differ(before, after, TIMING | {"enabled"}):
                after = require_next_run(await self._drafts.restart(store, before, after))
            if after == before:
                entry.is_needed = False
                return after
            if (await store.put_schedules([after], self._runtime.clock.now()))[0] is not None:
                self._wake()
                if before is not None:
                    entry.action, entry.before = "schedule.update", snapshot(before)
                entry.after = snapshot(after)
                return await get(store, name, tenant)
        raise IllegalMove(f"schedule {name!r} is being changed by others all the time: try again")

    async def change(
        self, verb: str, name: str, tenant: str, change: Change, *, restart: bool, connection: Any = None
    ) -> Schedule:
        """Apply the change to the stored schedule; ``restart``: its next fire is counted from now."""
        within = None if connection is None else await self.store(connection)
        async with self.audited(verb, name, tenant, within) as entry:
            store = within or await self.store(None)
            for _ in range(ATTEMPTS):
                before = await get(store, name, tenant)
                after = await self._started(store, change(before), restart)
                if (await store.put_schedules([after], self._runtime.clock.now()))[0] is not None:
                    self._wake()
                    entry.before, entry.after = snapshot(before), snapshot(after)
                    return await get(store, after.name, tenant)
            raise IllegalMove(f"schedule {name!r} is being changed by others all the time: try again")

    async def delete(self, name: str, tenant: str, connection: Any = None) -> None:
        within = None if connection is None else await self.store(connection)
        async with self.audited("delete", name, tenant, within) as entry:
            store = within or await self.store(None)
            schedule = await get(store, name, tenant)
            entry.before = snapshot(schedule)
            await store.delete_schedules([schedule.id])

    async def _started(self, store: StoreWithin, after: Schedule, restart: bool) -> Schedule:
        if restart or (after.enabled and after.check_at is None and after.next_run_at is None):
            after = await self._drafts.start(store, after)
        return require_next_run(after) if restart else after


def _differ(before: Schedule, after: Schedule, names: Collection[str]) -> bool:
    return any(getattr(before, name) != getattr(after, name) for name in names)
