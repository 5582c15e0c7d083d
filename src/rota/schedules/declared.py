"""Brings the schedules that this program's code declares into the store, when it starts to work."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.schedules import reconcile
from ..core.schedules.firing import key_of
from ..errors import InvalidSchedule, NotFound
from ..model import PageRequest, Schedule, ScheduleFilter
from ..runtime.audit import AuditDraft, record
from ..store.protocol import Store
from .manage import told

if TYPE_CHECKING:
    from ..app import Rota

log = logging.getLogger("rota.scheduler")

TRIES = 10
PAGE = 500


class DeclaredSchedules:
    """The schedules of one app's code, by tenant and name."""

    def __init__(self, app: Rota) -> None:
        self._app = app
        self._given: dict[tuple[str, str], dict[str, Any]] = {}

    def add(self, tenant: str, name: str, given: dict[str, Any]) -> None:
        self._app.schedules.build(name, tenant, given)  # what is wrong is said where it is declared
        self._given[tenant, name] = given

    async def sync(self) -> None:
        """Insert what is new, update what the code changed, retire what it no longer declares."""
        if not self._given and not self._app.registry.tasks and self._app.name is None:
            return  # nobody knows whose program this is
        store = await self._app.stores.get()
        for (tenant, name), given in self._given.items():
            fresh = self._app.schedules.build(name, tenant, given)
            try:
                await self._sync_one(store, msgspec.structs.replace(fresh, source="code", owner=self.owner))
            except (InvalidSchedule, NotFound) as error:  # the others must not suffer
                log.error("schedule %s cannot be brought into the store: %s", key_of(fresh), error)
        await self._retire(store)

    @property
    def owner(self) -> str:
        """Whose schedules these are: the app's name, else the program's own module."""
        if self._app.name is not None:
            return self._app.name
        for task in self._app.registry:
            if task.fn.__module__ != "__main__":
                return str(task.fn.__module__).partition(".")[0]
        file = getattr(sys.modules["__main__"], "__file__", None)
        return Path(file).stem if file else "main"

    async def _sync_one(self, store: Store, fresh: Schedule) -> None:
        for _ in range(TRIES):  # another process of the same program may start right now
            page = await store.schedules(
                ScheduleFilter(name=fresh.name, tenant=fresh.tenant), PageRequest(limit=1)
            )
            before = page.items[0] if page.items else None
            found = reconcile.reconcile(before, fresh)
            if found.kept:
                log.warning(
                    "schedule %s: an operator's change stands against the code: %s",
                    key_of(fresh),
                    ", ".join(found.kept),
                )
            if found.write is None or await self._put(store, before, found):
                return
        log.warning("schedule %s is being changed by others; the code's declaration waits", key_of(fresh))

    async def _put(self, store: Store, before: Schedule | None, found: reconcile.Reconciled) -> bool:
        assert found.write is not None
        write = await self._app.schedules.started(store, found.write) if found.restart else found.write
        if (await store.put_schedules([write], self._app.clock.now()))[0] is None:
            return False
        await self._tell("schedule.declare", before, write)
        return True

    async def _tell(self, action: str, before: Schedule | None, after: Schedule) -> None:
        note = AuditDraft(action, f"schedule:{key_of(after)}", after.tenant)
        note.before, note.after = before and told(before), told(after)
        await record(self._app, note, "done")

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
        for _ in range(TRIES):  # it may fire right now
            off = reconcile.retire(schedule, self.owner)
            if off is None:
                return
            if (await store.put_schedules([off], self._app.clock.now()))[0] is not None:
                log.warning("schedule %s is %s", key_of(off), off.reason)
                await self._tell("schedule.retire", schedule, off)
                return
            page = await store.schedules(ScheduleFilter(ids=(schedule.id,)), PageRequest(limit=1))
            if not page.items:
                return
            schedule = page.items[0]
