"""Actions on gates: pause and resume everything, a queue, a task, a tenant or a schedule.

Stores gates as documents. Never stops a running job: workers and schedulers read the gates themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from ..core.access import require
from ..core.jobs.options import name_text
from ..errors import Forbidden, NotFound, OptionError
from ..model import Gate, JobFilter, Page, PageRequest, ScheduleFilter, Scope, State, gate_id
from ..runtime.gate_watch import KIND, load
from .actions import ActionGroup, requires
from .known_names import warning_of
from .requests import GateRequest, PauseRequest
from .schedule_selection import by_full_name
from .views import GateView, gate_view


class GateActions(ActionGroup):
    """Pause and resume."""

    subject = "gate"

    @requires("read")
    async def list(self) -> Page[GateView]:
        """List active pauses: who set them, and why."""
        gates = await self.operations.active_gates()
        return Page(items=[gate_view(gate) for gate in gates if await self._concerns(gate)])

    @requires("operate")
    async def pause(self, request: GateRequest) -> GateView:
        """Pause something. Pausing it again replaces the reason and end time."""
        self._check_scope(request.scope, request.name)
        tenant = None
        if request.scope == "schedule":
            full = await by_full_name(self.operations, request.name or "", request.tenant)
            if full is not None:
                request = msgspec.structs.replace(request, name=full.name, tenant=full.tenant)
            tenant = self.operations.tenant(request.tenant) or "default"
        self._require_scope(request.scope, request.name)
        now = self.services.clock.now()
        gate = Gate(
            scope=request.scope,
            name=None if request.scope == "all" else request.name,
            tenant=tenant,
            reason=request.reason,
            actor=self.operations.actor.name,
            since_at=now,
            until_at=_until(request, now),
            by_tenant=self.operations.actor.tenant,
        )
        active = await self.operations.active_gates()
        self._require_own(next((one for one in active if one.id == gate.id), None))
        warning = await self._warning(request.scope, request.name)
        return msgspec.structs.replace(await self._store(gate, now), warning=warning)

    @requires("operate")
    async def resume(self, id: str) -> None:
        """Resume what a gate pauses, by its id: ``all``, ``queue:mail``, ``schedule:default/nightly``."""
        before = next((gate for gate in await self._stored() if gate.id == id), None)
        if before is None or not self._sees(before):
            raise NotFound(f"nothing is paused under {id!r}")
        self._require_scope(before.scope, before.name)
        self._require_own(before)
        async with self.operations.audited(f"{before.scope}.resume", id, _tenant(before)) as draft:
            draft.before = gate_view(before)
            await (await self.operations.store()).delete_document(KIND, id)
            if before.scope == "schedule":
                await self._check_schedule_now(before)

    @requires("operate.shared")
    async def pause_queue(self, name: str, request: PauseRequest) -> GateView:
        """Pause a queue."""
        return await self.pause(
            GateRequest(
                scope="queue", name=name, reason=request.reason, until=request.until, for_s=request.for_s
            )
        )

    @requires("operate.shared")
    async def resume_queue(self, name: str) -> None:
        """Resume a queue."""
        await self.resume(gate_id("queue", name))

    async def _stored(self) -> Sequence[Gate]:
        return await load(await self.operations.store())

    async def _store(self, gate: Gate, now: datetime) -> GateView:
        async with self.operations.audited(f"{gate.scope}.pause", gate.id, _tenant(gate)) as draft:
            store = await self.operations.store()
            if gate.scope == "schedule":
                await self.services.schedules.get(gate.name or "", tenant=gate.tenant or "default")
            draft.before = next((gate_view(one) for one in await self._stored() if one.id == gate.id), None)
            draft.after, draft.message = gate_view(gate), gate.reason or None
            await store.put_document(KIND, gate.id, msgspec.json.encode(gate).decode(), None, now)
            return gate_view(gate)

    async def _check_schedule_now(self, gate: Gate) -> None:
        """Let a scheduler check the schedule now, not at its next check of the gate."""
        store = await self.operations.store()
        where = ScheduleFilter(name=gate.name, tenant=gate.tenant or "default")
        for schedule in (await store.schedules(where, PageRequest(limit=1))).items:
            if schedule.enabled and schedule.next_run_at is not None:
                due = msgspec.structs.replace(schedule, check_at=schedule.next_run_at)
                await store.put_schedules(
                    [due], self.services.clock.now()
                )  # rejected: changed by someone else
        self.services.wake_scheduler()

    async def _warning(self, scope: Scope, name: str | None) -> str | None:
        """Whether the name may be misspelt. The pause is stored all the same: the queue may come later."""
        if name is None or (scope == "tenant" and name == self.operations.actor.tenant):
            return None
        return await warning_of(self.services, scope, name)

    def _check_scope(self, scope: Scope, name: str | None) -> None:
        if scope != "all" and not name:
            raise OptionError(f"which {scope}? give its name")
        if scope == "all" and name:
            raise OptionError("a pause of everything has no name: leave it out, or give a scope")
        if name is not None:
            name_text(scope, name)

    def _require_scope(self, scope: Scope, name: str | None) -> None:
        """An operator of one tenant may pause that tenant and its schedules, nothing that tenants share."""
        if scope != "schedule" and not (scope == "tenant" and name == self.operations.actor.tenant):
            require(self.operations.actor, "operate.shared")

    def _require_own(self, before: Gate | None) -> None:
        """An operator of one tenant cannot change a pause that an operator for all tenants set."""
        if before is not None and self.operations.actor.tenant is not None and before.by_tenant is None:
            raise Forbidden(
                f"{before.id} was paused by another: only an operator for all tenants can resume it"
            )

    async def _concerns(self, gate: Gate) -> bool:
        """A tenant sees the pauses that keep jobs of its own from starting, and no other queue or task."""
        own = self.operations.actor.tenant
        if own is None or gate.scope not in ("queue", "task"):
            return self._sees(gate)
        queue, task = (gate.name, None) if gate.scope == "queue" else (None, gate.name)
        where = JobFilter(tenant=own, queue=queue, task=task, states=(State.WAITING, State.QUEUED))
        store = await self.operations.store()
        return bool((await store.jobs(where, PageRequest(limit=1, brief=True))).items)

    def _sees(self, gate: Gate) -> bool:
        if gate.scope == "tenant":
            return self.operations.sees(gate.name)
        if gate.scope == "schedule":
            return self.operations.sees(gate.tenant)
        return gate.scope == "all" or self.operations.actor.tenant is None


def _until(request: PauseRequest, now: datetime) -> datetime | None:
    if request.for_s is not None:
        if request.until is not None:
            raise OptionError("give until or for_s, not both")
        return now + timedelta(seconds=request.for_s)
    if request.until is None:
        return None
    if request.until.tzinfo is None:
        raise OptionError("until has no time zone: write it as 2030-01-31T08:00:00Z")
    if request.until <= now:
        raise OptionError(f"until={request.until.isoformat()} is in the past: give a later time, or none")
    return request.until


def _tenant(gate: Gate) -> str | None:
    return gate.name if gate.scope == "tenant" else gate.tenant


def scope_of(
    queue: str | None, task: str | None, tenant: str | None, schedule: str | None
) -> tuple[Scope, str | None]:
    """The one scope that is named, and its name; beside a schedule, the tenant is only its owner."""
    paused_tenant = None if schedule is not None else tenant
    given: list[tuple[Scope, str | None]] = [
        ("queue", queue), ("task", task), ("tenant", paused_tenant), ("schedule", schedule),
    ]  # fmt: skip
    named = [(scope, name) for scope, name in given if name is not None]
    if len(named) > 1:
        raise OptionError("name one thing to pause or resume at a time: queue, task, tenant or schedule")
    return named[0] if named else ("all", None)
