"""Recurring work per tenant in one call: ``app.register`` and ``app.unregister``.

The function stays in this process; the store holds only the schedule. A process without the function
sees the schedule and fires it, and leaves its jobs to one that has the function.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ..core.jobs.options import Options
from ..core.schedules.draft import snapshot
from ..errors import AlreadyRegistered, IllegalMove, NotFound
from ..model import Schedule
from ..runtime.audit import AuditDraft, record
from ..runtime.runtime import Runtime
from ..tasks.registry import Registry
from ..tasks.task import Task, TaskProducer, choose_executor
from .drafts import ScheduleDrafts
from .edits import ATTEMPTS, find, get


class RegisteredSchedules:
    """The functions that this process has registered, and their schedules in the store.

    Owns what is registered here; never touches a schedule that was created another way.
    """

    def __init__(
        self,
        runtime: Runtime,
        registry: Registry,
        drafts: ScheduleDrafts,
        producer: TaskProducer,
        wake: Callable[[], None],
    ) -> None:
        self._runtime = runtime
        self._registry = registry
        self._drafts = drafts
        self._producer = producer
        self._wake = wake
        self._here: dict[tuple[str, str], Task[..., Any]] = {}

    async def register(
        self,
        tenant: str,
        id: str,
        fn: Callable[[], Any],
        *,
        every: float | str | timedelta,
        start_at: datetime | None = None,
    ) -> Schedule:
        """Run ``fn`` for the tenant at this interval, from ``start_at`` (else from now) on.

        A stored schedule of that id gets this function and this timing. A run that fails or is missed
        never delays the next one; two never overlap.
        """
        if (tenant, id) in self._here:
            raise AlreadyRegistered(f"tenant {tenant!r} already has {id!r} registered in this process")
        name = f"{tenant}/{id}"
        given = {"task": name, "every": every, "start_at": start_at, "overlap": "skip", "max_attempts": 1}
        fresh = msgspec.structs.replace(self._drafts.build(id, tenant, given), source="registry")
        task = Task(fn, name, Options(tenant=tenant), choose_executor(fn, None, name), self._producer)
        if name in self._registry.tasks:
            raise AlreadyRegistered(f"a task named {name!r} is already registered: choose another id")
        self._registry.add(task)
        self._here[tenant, id] = task
        try:
            stored = await self._attach(fresh)
        except BaseException:
            self._remove(tenant, id)
            raise
        self._wake()
        return stored

    async def unregister(self, tenant: str, id: str) -> None:
        """Remove the function here and delete the schedule in the store."""
        if (tenant, id) not in self._here:
            raise NotFound(f"tenant {tenant!r} has no {id!r} registered in this process")
        store = await self._runtime.stores.get()
        found = await find(store, id, tenant)
        if found is not None:
            await store.delete_schedules([found.id])
            await self._record("schedule.unregister", found, None)
        self._remove(tenant, id)

    async def _attach(self, fresh: Schedule) -> Schedule:
        store = await self._runtime.stores.get()
        for _ in range(ATTEMPTS):
            stored = await find(store, fresh.name, fresh.tenant)
            write = fresh
            if stored is not None:
                if stored.source != "registry":
                    raise AlreadyRegistered(
                        f"tenant {fresh.tenant!r} has a schedule named {fresh.name!r} "
                        "that was created another way: choose another id"
                    )
                timing = {"every": fresh.every, "start_at": fresh.start_at, "task": fresh.task}
                write = msgspec.structs.replace(stored, **timing)
            if stored is None or write != stored:
                write = await self._drafts.start(store, write)
                if (await store.put_schedules([write], self._runtime.clock.now()))[0] is None:
                    continue
                await self._record("schedule.register", stored, write)
            return await get(store, fresh.name, fresh.tenant)
        raise IllegalMove(f"schedule {fresh.name!r} is being changed by others all the time: try again")

    async def _record(self, action: str, before: Schedule | None, after: Schedule | None) -> None:
        one = after or before
        assert one is not None
        entry = AuditDraft(action, f"schedule:{one.tenant}/{one.name}", one.tenant)
        entry.before, entry.after = before and snapshot(before), after and snapshot(after)
        await record(self._runtime, entry, "done")

    def _remove(self, tenant: str, id: str) -> None:
        self._registry.remove(self._here.pop((tenant, id)))

    def clear(self) -> None:
        """The app stopped: its functions are gone with it, the schedules stay."""
        for tenant, id in list(self._here):
            self._remove(tenant, id)
