"""Recurring work per tenant in one call: ``app.register`` and ``app.unregister``.

The function stays in this process; the store holds only the schedule. A process without the function
sees the schedule and fires it, and leaves its jobs to one that has the function.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from ..core.jobs.lifecycle import cancel
from ..core.jobs.options import Options
from ..core.schedules.draft import snapshot
from ..core.schedules.names import full_name, key_of
from ..core.schedules.restarts import keep_grid
from ..durations import Duration
from ..errors import AlreadyRegistered, IllegalMove, NotFound
from ..model import JobFilter, PageRequest, Schedule, State
from ..runtime.audit import AuditDraft, record
from ..runtime.runtime import Runtime
from ..store.protocol import Store
from ..tasks.registry import Registry
from ..tasks.task import Task, TaskProducer, choose_executor
from .drafts import ScheduleDrafts
from .edits import ATTEMPTS, find, get

OWN = ("task", "every", "start_at", "queue", "priority", "timeout")  # what registering again sets again
PAGE = 500


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
        every: Duration,
        start_at: datetime | None = None,
        queue: str | None = None,
        priority: int | None = None,
        timeout: Duration | None = None,
    ) -> Schedule:
        """Run ``fn`` for the tenant at this interval, from ``start_at`` (else an interval from now) on.

        A stored schedule of that id gets this function and this timing; a start that is now or was before
        leaves it in step. A run that fails or is missed never delays the next one; two never overlap.
        """
        if (tenant, id) in self._here:
            raise AlreadyRegistered(f"tenant {tenant!r} already has {id!r} registered in this process")
        name = full_name(tenant, id)
        given = {
            "task": name,
            "every": every,
            "start_at": start_at,
            "overlap": "skip",
            "max_attempts": 1,
            "queue": queue,
            "priority": priority,
            "timeout": timeout,
        }
        fresh = msgspec.structs.replace(self._drafts.build(id, tenant, given), source="registry")
        task = Task(fn, name, Options(tenant=tenant), choose_executor(fn, None, name), self._producer)
        task.is_shared = False
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
        """Remove the function here, and the schedule and its job that has not started in the store."""
        if (tenant, id) not in self._here:
            raise NotFound(f"tenant {tenant!r} has no {id!r} registered in this process")
        store = await self._runtime.stores.get()
        found = await find(store, id, tenant)
        if found is not None:
            await store.delete_schedules([found.id])
            await self._cancel_queued(store, found)
            await self._record("schedule.unregister", found, None)
        self._remove(tenant, id)

    async def _cancel_queued(self, store: Store, schedule: Schedule) -> None:
        """No process has the function any more: what waits would wait for ever. What runs ends by itself."""
        where = JobFilter(
            schedule=schedule.name, tenant=schedule.tenant, states=(State.WAITING, State.QUEUED)
        )
        now = self._runtime.clock.now()
        edit = cancel(f"{schedule.name} was unregistered", now)
        edit = msgspec.structs.replace(edit, touches=edit.touches - {State.RUNNING})
        while jobs := (await store.jobs(where, PageRequest(limit=PAGE, brief=True))).items:
            if not await store.edit([job.id for job in jobs], edit, now):
                return  # a worker has just started them

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
                declared = keep_grid(stored, fresh, self._runtime.clock.now())
                write = msgspec.structs.replace(stored, **{name: getattr(declared, name) for name in OWN})
            if stored is None:
                await self._runtime.tenants.check_schedules(store, fresh.tenant)
            if stored is None or write != stored:
                write = await self._drafts.restart(store, stored, write)
                if (await store.put_schedules([write], self._runtime.clock.now()))[0] is None:
                    continue
                await self._record("schedule.register", stored, write)
            return await get(store, fresh.name, fresh.tenant)
        raise IllegalMove(f"schedule {fresh.name!r} is being changed by others all the time: try again")

    async def _record(self, action: str, before: Schedule | None, after: Schedule | None) -> None:
        one = after or before
        assert one is not None
        entry = AuditDraft(action, f"schedule:{key_of(one)}", one.tenant)
        entry.before, entry.after = before and snapshot(before), after and snapshot(after)
        await record(self._runtime, entry, "done")

    def _remove(self, tenant: str, id: str) -> None:
        self._registry.remove(self._here.pop((tenant, id)))

    def clear(self) -> None:
        """The app stopped: its functions are gone with it, the schedules stay."""
        for tenant, id in list(self._here):
            self._remove(tenant, id)
