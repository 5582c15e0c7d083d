"""Per-tenant recurring work in one call: ``app.register`` and ``app.unregister``.

The function stays in this process; the store holds only the schedule. A process without the function
sees the schedule and fires it, and leaves its jobs to one that has the function.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.jobs.options import Options
from ..errors import AlreadyRegistered, IllegalMove, NotFound, RotaError
from ..model import PageRequest, Schedule, ScheduleFilter
from ..runtime.audit import AuditDraft, record
from ..tasks.task import Task, choose_executor
from .manage import told

if TYPE_CHECKING:
    from ..app import Rota

TRIES = 10


class RegisteredSchedules:
    def __init__(self, app: Rota) -> None:
        self._app = app
        self._here: set[tuple[str, str]] = set()

    async def register(
        self,
        tenant: str,
        id: str,
        fn: Callable[[], Any],
        *,
        every: float | str | timedelta,
        start_at: datetime | None = None,
    ) -> Schedule:
        """Run ``fn`` for the tenant every so often, from ``start_at`` (else from now) on.

        A schedule of that id that is stored already gets this function and this timing. A run that
        fails or is missed never holds up the next one; two never overlap.
        """
        app = self._app
        if not app.is_running:
            raise RotaError(
                f"register({tenant!r}, {id!r}) before the app runs: start it first, with app.running()"
            )
        if (tenant, id) in self._here:
            raise AlreadyRegistered(f"tenant {tenant!r} already has {id!r} registered in this process")
        name = f"{tenant}/{id}"
        given = {"task": name, "every": every, "start_at": start_at, "overlap": "skip", "max_attempts": 1}
        fresh = msgspec.structs.replace(app.schedules.build(id, tenant, given), source="registry")
        task = Task(app, fn, name, Options(tenant=tenant), choose_executor(fn, None, name))
        if name in app.registry.tasks:
            raise AlreadyRegistered(f"a task named {name!r} is already registered: choose another id")
        self._here.add((tenant, id))
        app.registry.tasks[name] = task
        try:
            stored = await self._attach(fresh)
        except BaseException:
            self._forget(tenant, id)
            raise
        app.wake_scheduler()
        return stored

    async def unregister(self, tenant: str, id: str) -> None:
        """Forget the function here and the schedule in the store."""
        if (tenant, id) not in self._here:
            raise NotFound(f"tenant {tenant!r} has no {id!r} registered in this process")
        store = await self._app.stores.get()
        found = await self._stored(tenant, id)
        if found is not None:
            await store.delete_schedules([found.id])
            await self._tell("schedule.unregister", found, None)
        self._forget(tenant, id)

    async def _attach(self, fresh: Schedule) -> Schedule:
        store = await self._app.stores.get()
        for _ in range(TRIES):
            stored = await self._stored(fresh.tenant, fresh.name)
            write = fresh
            if stored is not None:
                if stored.source != "registry":
                    raise AlreadyRegistered(
                        f"tenant {fresh.tenant!r} has a schedule named {fresh.name!r} made otherwise: "
                        "choose another id"
                    )
                timing = {"every": fresh.every, "start_at": fresh.start_at, "task": fresh.task}
                write = msgspec.structs.replace(stored, **timing)
            if stored is None or write != stored:
                write = await self._app.schedules.started(store, write)
                if (await store.put_schedules([write], self._app.clock.now()))[0] is None:
                    continue
                await self._tell("schedule.register", stored, write)
            return await self._app.schedules.get(fresh.name, tenant=fresh.tenant)
        raise IllegalMove(f"schedule {fresh.name!r} is being changed by others all the time: try again")

    async def _tell(self, action: str, before: Schedule | None, after: Schedule | None) -> None:
        one = after or before
        assert one is not None
        note = AuditDraft(action, f"schedule:{one.tenant}/{one.name}", one.tenant)
        note.before, note.after = before and told(before), after and told(after)
        await record(self._app, note, "done")

    async def _stored(self, tenant: str, id: str) -> Schedule | None:
        store = await self._app.stores.get()
        page = await store.schedules(ScheduleFilter(name=id, tenant=tenant), PageRequest(limit=1))
        return page.items[0] if page.items else None

    def _forget(self, tenant: str, id: str) -> None:
        self._here.discard((tenant, id))
        self._app.registry.tasks.pop(f"{tenant}/{id}", None)

    def clear(self) -> None:
        """The app stopped: its functions are gone with it, the schedules stay."""
        for tenant, id in list(self._here):
            self._forget(tenant, id)
