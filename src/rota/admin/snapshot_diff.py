"""What changed since the last pass over the store, as events. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from ..app import Rota
from ..core.ids import uuid7
from ..model import Actor, AuditFilter, Job, JobFilter, PageRequest, State
from ..operate.requests import SchedulesRequest
from ..operate.views import AuditView, GateView, JobView, Visibility, WorkerView, audit_view, job_view

MOST_JOBS = 100  # in one pass
MOST_RUNNING = 500
MOST_AUDIT = 100
SCHEDULE_PAGES = 5
SCHEDULES_EVERY = 5  # passes
NEW = timedelta(seconds=5)  # how far the clocks of programs that create jobs may differ
ALL_TENANTS = "\0all"  # no name of a tenant
LIMITED_TO_ONE = "\0one"  # for every actor that is limited to a tenant


class ChangeEvent(NamedTuple):
    """One change, with the new view of what changed."""

    kind: str  # stats, job, gate, schedule, worker, audit
    data: Any
    tenant: str | None  # its owner; None: only actors for all tenants see it


class SnapshotDiff:
    """Remembers the last pass and compares the next one with it."""

    def __init__(self, rota: Rota) -> None:
        self._rota = rota
        self._operations = rota.operations(Actor(name="events", role="operator"))
        self._passes = 0
        self._stats: dict[str | None, Any] = {}
        self._recent: dict[str, State] = {}
        self._running: set[str] = set()
        self._seen: dict[str, dict[str, Any]] = {}
        self._audit_id: str | None = None

    async def changes(self, tenants: Iterable[str | None]) -> list[ChangeEvent]:
        """Changes since the last pass; none in the first. ``tenants``: those to count jobs for."""
        is_first, found = self._passes == 0, list[ChangeEvent]()
        for tenant in tenants:
            found += await self._stats_of(tenant)
        found += await self._jobs()
        found += self._diff("gate", await self._gates())
        found += self._diff("worker", await self._workers())
        if self._passes % SCHEDULES_EVERY == 0:
            found += self._diff("schedule", await self._schedules())
        found += await self._audit()
        self._passes += 1
        return [] if is_first else found

    # --- jobs ------------------------------------------------------------------------------------

    async def _stats_of(self, tenant: str | None) -> list[ChangeEvent]:
        actor = Actor(name="events", role="viewer", tenant=tenant)
        stats = await self._rota.operations(actor).system.stats()
        counts = (*(getattr(stats, state) for state in State), stats.paused, *sorted(stats.queues))
        if self._stats.get(tenant) == counts:
            return []
        self._stats[tenant] = counts
        return [ChangeEvent("stats", stats, tenant)]

    async def _jobs(self) -> list[ChangeEvent]:
        """New jobs, and those that started or stopped running; at most ``MOST_JOBS``."""
        store, now = await self._operations.store(), self._rota.clock.now()
        since = uuid7(int((now - NEW).timestamp() * 1000), 0)
        new = (await store.jobs(JobFilter(after_id=since), PageRequest(limit=MOST_JOBS))).items
        running = (
            await store.jobs(JobFilter(states=(State.RUNNING,)), PageRequest(limit=MOST_RUNNING))
        ).items
        now_running = {job.id for job in running}
        left = tuple(sorted(self._running - now_running))[:MOST_JOBS]
        stopped = (await store.jobs(JobFilter(ids=left), PageRequest(limit=MOST_JOBS))).items if left else ()
        changed = [job for job in new if self._recent.get(job.id) != job.state]
        changed += [job for job in running if job.id not in self._running]
        changed += stopped
        self._recent = {job.id: job.state for job in new}
        self._running = now_running
        once = {job.id: job for job in changed}
        return [ChangeEvent("job", self._job(job), job.tenant) for job in list(once.values())[:MOST_JOBS]]

    def _job(self, job: Job) -> JobView:
        view = job_view(job, Visibility(payloads=False, secrets=self._rota.settings.secret_fields))
        return msgspec.structs.replace(view, payload=None, output=None)

    # --- gates, workers, schedules ---------------------------------------------------------------

    async def _gates(self) -> dict[str, ChangeEvent]:
        """Every tenant learns that something is paused which it may concern: its own list says what."""
        gates = (await self._operations.gates.list()).items
        found = {gate.id: ChangeEvent("gate", _bare_gate(gate), _tenant_of(gate)) for gate in gates}
        shared = sum(_tenant_of(gate) is None for gate in gates)
        if shared:
            found["shared"] = ChangeEvent("gate", {"id": "shared", "count": shared}, LIMITED_TO_ONE)
        return found

    async def _workers(self) -> dict[str, ChangeEvent]:
        return {
            one.id: ChangeEvent("worker", one, None)
            for one in (await self._operations.system.workers()).items
        }

    async def _schedules(self) -> dict[str, ChangeEvent]:
        found: dict[str, ChangeEvent] = {}
        cursor: str | None = None
        for _ in range(SCHEDULE_PAGES):
            page = await self._operations.schedules.list(SchedulesRequest(limit=200, cursor=cursor))
            for view in page.items:
                gate = None if view.gate is None else _bare_gate(view.gate)
                bare = msgspec.structs.replace(view, payload=None, late_s=None, gate=gate)
                found[view.id] = ChangeEvent("schedule", bare, view.tenant)
            if (cursor := page.next) is None:
                break
        return found

    def _diff(self, kind: str, now: dict[str, ChangeEvent]) -> Iterator[ChangeEvent]:
        """New and changed ones, and for each that is gone ``{"id": …, "gone": true}``."""
        before = self._seen.get(kind, {})
        self._seen[kind] = now
        for id, one in now.items():
            if id not in before or _without_heartbeat(before[id].data) != _without_heartbeat(one.data):
                yield one
        for id in before.keys() - now.keys():
            yield ChangeEvent(kind, {"id": id, "gone": True}, before[id].tenant)

    # --- audit -----------------------------------------------------------------------------------

    async def _audit(self) -> list[ChangeEvent]:
        page = await (await self._operations.store()).audit(AuditFilter(), PageRequest(limit=MOST_AUDIT))
        new: list[AuditView] = []
        for entry in page.items:
            if entry.id == self._audit_id:
                break
            visibility = msgspec.structs.replace(self._operations.visibility, tenant=entry.tenant)
            new.append(audit_view(entry, visibility))
        if page.items:
            self._audit_id = page.items[0].id
        return [ChangeEvent("audit", view, view.tenant) for view in reversed(new)]


def _tenant_of(gate: GateView) -> str | None:
    """Whose pause it is; None: of what all tenants share, whose names are not every tenant's affair."""
    match gate.scope:
        case "tenant":
            return gate.name
        case "schedule":
            return gate.tenant
        case "all":
            return ALL_TENANTS
        case _:
            return None


def _bare_gate(gate: GateView) -> GateView:
    """Who paused it and why is for the list to say."""
    return msgspec.structs.replace(gate, actor="", reason="")


def _without_heartbeat(view: Any) -> Any:
    """The view without the times that every heartbeat changes."""
    if not isinstance(view, WorkerView):
        return view
    states = tuple((service.name, service.state) for service in view.services)
    return msgspec.structs.replace(view, seen_at=None, services=states)
