"""Gates at the desk: pause and resume everything, a queue, a task, a tenant or a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ..core.access import require
from ..core.jobs.gates import active
from ..core.jobs.options import name_text
from ..errors import Forbidden, NotFound, OptionError
from ..model import Gate, Page, PageRequest, ScheduleFilter, Scope, gate_id
from ..runtime.gate_watch import KIND, load
from .operations import ActionGroup, requires
from .requests import GateRequest, PauseRequest
from .views import GateView, gate_view

SCOPES: tuple[Scope, ...] = ("all", "queue", "task", "tenant", "schedule")


class GateActions(ActionGroup):
    thing = "gate"

    async def stored(self) -> Sequence[Gate]:
        return await load(await self.operations.store())

    @requires("read")
    async def list(self) -> Page[GateView]:
        """The gates that stand now."""
        gates = active(await self.stored(), self.app.clock.now())
        return Page(items=[gate_view(gate) for gate in gates if self._seen(gate)])

    @requires("operate")
    async def pause(self, ask: GateRequest) -> GateView:
        """Close a gate; a gate that stands already gets the new reason and end."""
        self._check_scope(ask.scope, ask.name)
        tenant = (self.operations.tenant(ask.tenant) or "default") if ask.scope == "schedule" else None
        self._may(ask.scope, ask.name)
        now = self.app.clock.now()
        gate = Gate(
            scope=ask.scope,
            name=None if ask.scope == "all" else ask.name,
            tenant=tenant,
            reason=ask.reason,
            actor=self.operations.actor.name,
            since_at=now,
            until_at=_until(ask, now),
            by_tenant=self.operations.actor.tenant,
        )
        self._mine(next((one for one in active(await self.stored(), now) if one.id == gate.id), None))
        return await self._close(gate, now)

    @requires("operate")
    async def resume(self, id: str) -> None:
        """Open a gate, by its id: ``all``, ``queue:mail``, ``schedule:default/nightly``."""
        before = next((gate for gate in await self.stored() if gate.id == id), None)
        if before is None or not self._seen(before):
            raise NotFound(f"nothing is paused under {id!r}")
        self._may(before.scope, before.name)
        self._mine(before)
        async with self.operations.audited(f"{before.scope}.resume", id, _tenant(before)) as note:
            note.before = gate_view(before)
            await (await self.operations.store()).delete_document(KIND, id)
            if before.scope == "schedule":
                await self._look_again(before)

    @requires("operate.shared")
    async def pause_queue(self, name: str, ask: PauseRequest) -> GateView:
        """Pause a queue."""
        return await self.pause(
            GateRequest(scope="queue", name=name, reason=ask.reason, until=ask.until, for_s=ask.for_s)
        )

    @requires("operate.shared")
    async def resume_queue(self, name: str) -> None:
        """Let a queue go on."""
        await self.resume(gate_id("queue", name))

    async def _close(self, gate: Gate, now: datetime) -> GateView:
        async with self.operations.audited(f"{gate.scope}.pause", gate.id, _tenant(gate)) as note:
            store = await self.operations.store()
            if gate.scope == "schedule":
                await self.app.schedules.get(gate.name or "", tenant=gate.tenant or "default")
            note.before = next((gate_view(one) for one in await self.stored() if one.id == gate.id), None)
            note.after, note.message = gate_view(gate), gate.reason or None
            await store.put_document(KIND, gate.id, msgspec.json.encode(gate).decode(), None, now)
            return gate_view(gate)

    async def _look_again(self, gate: Gate) -> None:
        """A scheduler shall look at the schedule now, not when it would have looked at the gate again."""
        store = await self.operations.store()
        where = ScheduleFilter(name=gate.name, tenant=gate.tenant or "default")
        for schedule in (await store.schedules(where, PageRequest(limit=1))).items:
            if schedule.enabled and schedule.next_run_at is not None:
                due = msgspec.structs.replace(schedule, look_at=schedule.next_run_at)
                await store.put_schedules([due], self.app.clock.now())  # refused: somebody else wrote it
        self.app.wake_scheduler()

    def _check_scope(self, scope: Scope, name: str | None) -> None:
        if scope != "all" and not name:
            raise OptionError(f"which {scope}? give its name")
        if scope == "all" and name:
            raise OptionError("a gate over everything has no name: leave it out, or say which scope")
        if name is not None:
            name_text(scope, name)

    def _may(self, scope: Scope, name: str | None) -> None:
        """A tenant's own operator may pause that tenant and its schedules, and nothing that others share."""
        if scope != "schedule" and not (scope == "tenant" and name == self.operations.actor.tenant):
            require(self.operations.actor, "operate.shared")

    def _mine(self, before: Gate | None) -> None:
        """What was closed over a tenant's head, the tenant cannot open."""
        if before is not None and self.operations.actor.tenant is not None and before.by_tenant is None:
            raise Forbidden(f"{before.id} was paused by {before.actor}, who is bound to no tenant: ask them")

    def _seen(self, gate: Gate) -> bool:
        """What covers a tenant's jobs is for the tenant to know."""
        if gate.scope == "tenant":
            return self.operations.sees(gate.name)
        return self.operations.sees(gate.tenant) if gate.scope == "schedule" else True


def _until(ask: PauseRequest, now: datetime) -> datetime | None:
    if ask.for_s is not None:
        if ask.until is not None:
            raise OptionError("give until or for_s, not both")
        return now + timedelta(seconds=ask.for_s)
    if ask.until is None:
        return None
    if ask.until.tzinfo is None:
        raise OptionError("until has no time zone: write it as 2030-01-31T08:00:00Z")
    if ask.until <= now:
        raise OptionError(f"until={ask.until.isoformat()} is in the past: give a later time, or none")
    return ask.until


def _tenant(gate: Gate) -> str | None:
    return gate.name if gate.scope == "tenant" else gate.tenant


def scope_of(
    queue: str | None, task: str | None, tenant: str | None, schedule: str | None
) -> tuple[Scope, str | None]:
    """What is meant by these names; with a schedule, the tenant only says whose it is."""
    whose = None if schedule is not None else tenant
    given: list[tuple[Scope, str | None]] = [
        ("queue", queue), ("task", task), ("tenant", whose), ("schedule", schedule),
    ]  # fmt: skip
    named = [(scope, name) for scope, name in given if name is not None]
    if len(named) > 1:
        raise OptionError("name one thing to pause or resume at a time: queue, task, tenant or schedule")
    return named[0] if named else ("all", None)
