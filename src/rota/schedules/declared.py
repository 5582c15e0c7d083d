"""Brings the schedules that this program's code declares into the store, when a worker starts."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..core.schedules import reconcile, restarts
from ..core.schedules.draft import snapshot
from ..core.schedules.names import key_of
from ..errors import InvalidSchedule, NotFound
from ..model import PageRequest, Schedule, ScheduleFilter
from ..runtime.audit import AuditDraft, record
from ..runtime.runtime import Runtime
from ..store.protocol import Store
from ..tasks.published import PublishedTasks
from ..tasks.registry import Registry
from .drafts import ScheduleDrafts
from .edits import ATTEMPTS, find

log = logging.getLogger("rota.scheduler")

PAGE = 500


class DeclaredSchedules:
    """The schedules of one app's code, by tenant and name.

    Owns their reconciliation with the store: an operator's edit is kept, a schedule that the code no
    longer declares is disabled. Never deletes a schedule.
    """

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        published: PublishedTasks,
        drafts: ScheduleDrafts,
        name: str | None,
    ) -> None:
        self._runtime = runtime
        self._registry = registry
        self._published = published
        self._drafts = drafts
        self._name = name
        self._given: dict[tuple[str, str], Mapping[str, Any]] = {}

    def add(self, tenant: str, name: str, given: Mapping[str, Any]) -> None:
        self._drafts.build(name, tenant, given)  # a mistake is reported where it was made
        self._given[tenant, name] = given

    def remove(self, tenant: str, name: str) -> None:
        self._given.pop((tenant, name), None)

    async def sync(self) -> None:
        """Insert new ones, update those that the code changed, disable those it no longer declares."""
        if not self._given and not self._registry.tasks and self._name is None:
            return  # an app without tasks and name owns no schedules
        store = await self._runtime.stores.get()
        await self._published.publish(store)  # before another process can fire one of them
        for (tenant, name), given in self._given.items():
            fresh = self._drafts.build(name, tenant, given)
            try:
                await self._sync_one(store, msgspec.structs.replace(fresh, source="code", owner=self.owner))
            except (InvalidSchedule, NotFound) as error:  # the others must not suffer
                log.error("schedule %s cannot be brought into the store: %s", key_of(fresh), error)
        await self._retire(store)

    @property
    def owner(self) -> str:
        """Whose schedules these are: the app's name, else the program's own top-level package."""
        if self._name is not None:
            return self._name
        for task in self._registry:
            package = str(task.fn.__module__).partition(".")[0]
            if package not in ("__main__", "rota"):  # a built-in task says nothing about the program
                return package
        file = getattr(sys.modules["__main__"], "__file__", None)
        return Path(file).stem if file else "main"

    async def _sync_one(self, store: Store, fresh: Schedule) -> None:
        for _ in range(ATTEMPTS):  # another process of the same program may start right now
            before = await find(store, fresh.name, fresh.tenant)
            declared = restarts.keep_grid(before, fresh, self._runtime.clock.now())
            found = reconcile.reconcile(before, declared)
            if found.kept:
                log.warning(
                    "schedule %s: keeping an operator's change over the code: %s",
                    key_of(fresh),
                    ", ".join(found.kept),
                )
            if found.write is None or await self._put(store, before, found):
                return
        log.warning(
            "schedule %s is being changed by others; the code's declaration is not applied", key_of(fresh)
        )

    async def _put(self, store: Store, before: Schedule | None, found: reconcile.Reconciled) -> bool:
        assert found.write is not None
        write = await self._drafts.restart(store, before, found.write) if found.restart else found.write
        if (await store.put_schedules([write], self._runtime.clock.now()))[0] is None:
            return False
        await self._record("schedule.declare", before, write)
        return True

    async def _record(self, action: str, before: Schedule | None, after: Schedule) -> None:
        entry = AuditDraft(action, f"schedule:{key_of(after)}", after.tenant)
        entry.before, entry.after = before and snapshot(before), snapshot(after)
        await record(self._runtime, entry, "done")

    async def _retire(self, store: Store) -> None:
        cursor: str | None = None
        while True:
            where = ScheduleFilter(source="code", owner=self.owner)
            page = await store.schedules(where, PageRequest(limit=PAGE, cursor=cursor))
            for schedule in page.items:
                if (schedule.tenant, schedule.name) not in self._given:
                    await self._retire_one(store, schedule)
            cursor = page.next
            if cursor is None:
                return

    async def _retire_one(self, store: Store, schedule: Schedule) -> None:
        for _ in range(ATTEMPTS):  # it may fire right now
            off = reconcile.retire(schedule, self.owner)
            if off is None:
                return
            if (await store.put_schedules([off], self._runtime.clock.now()))[0] is not None:
                log.warning("schedule %s is %s", key_of(off), off.reason)
                await self._record("schedule.retire", schedule, off)
                return
            page = await store.schedules(ScheduleFilter(ids=(schedule.id,)), PageRequest(limit=1))
            if not page.items:
                return
            schedule = page.items[0]
