"""Actions on the installation: counts, queues, tasks, workers, activity, audit, health, settings.

Reads only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, get_args

from .. import config
from ..core.access import PERMISSIONS, may
from ..model import (
    ActivityBetween,
    ActivityCount,
    AuditFilter,
    CurrentOverview,
    Gate,
    Job,
    JobFilter,
    Level,
    Page,
    PageRequest,
    QueueDepth,
    State,
    gate_id,
)
from ..version import __version__
from . import audit_chain, doctor
from .actions import ActionGroup, requires
from .requests import ActivityRequest, AuditRequest, VerifyAuditRequest
from .views import (
    ActivityBucket,
    AuditVerification,
    AuditView,
    CurrentActor,
    DoctorReport,
    GateView,
    QueueView,
    Setting,
    Stats,
    TaskView,
    WorkerView,
    audit_view,
    gate_view,
    is_anonymous,
)
from .workers import live_workers, worker_views

RECENT = timedelta(minutes=10)
SAMPLE = 1000
OUTCOMES = {"succeeded": "succeeded", "removed": "succeeded", "failed": "failed", "cancelled": "cancelled"}


class SystemActions(ActionGroup):
    """Reads across all subjects."""

    @requires("me")
    async def me(self) -> CurrentActor:
        """Show the current actor and its permissions."""
        actor = self.operations.actor
        return CurrentActor(
            name=actor.name,
            role=actor.role,
            tenant=actor.tenant,
            payloads=actor.payloads,
            permissions=tuple(name for name in PERMISSIONS if may(actor, name)),
            version=__version__,
            store=self.services.stores.root().url if may(actor, "read.shared") else None,
            now=self.services.clock.now(),
        )

    @requires("read")
    async def stats(self) -> Stats:
        """Count jobs by state and queue, with the age of the oldest due job."""
        now = self.services.clock.now()
        overview = await (await self.operations.store()).survey(
            CurrentOverview(now, self.operations.tenant(None))
        )
        return Stats(
            **{state.value: overview.counts.get(state, 0) for state in State},
            oldest_due_s=overview.oldest_due_s,
            queues=dict(overview.queues),
            estimated=tuple(sorted(overview.estimated)),
            paused=any(gate.scope == "all" for gate in await self.operations.active_gates()),
            now=now,
        )

    @requires("read")
    async def queues(self) -> Page[QueueView]:
        """List queues with jobs, recent activity, a dedicated worker or a pause."""
        store, now = await self.operations.store(), self.services.clock.now()
        own = self.operations.tenant(None)
        depths = dict((await store.survey(CurrentOverview(now, own))).queues)
        gates = {gate.id: gate for gate in await self.operations.active_gates()}
        workers = await live_workers(store, self.services.clock, self.services.settings.lease_duration_s)
        recent = [] if own is not None else await store.survey(ActivityBetween(now - RECENT, now))
        finished, failed = _rates(recent, "queue")
        names = {*depths, *finished}
        if own is None:
            names |= {gate.name for gate in gates.values() if gate.scope == "queue" and gate.name}
            names |= {queue for worker in workers for queue in worker.queues or ()}
        return Page(
            items=[
                QueueView(
                    name=name,
                    **_depth(depths.get(name, QueueDepth())),
                    per_minute=finished[name],
                    failed_per_minute=failed[name],
                    workers=sum(worker.serves(name) for worker in workers),
                    gate=_gate(gates, "queue", name),
                )
                for name in sorted(names)
            ]
        )

    @requires("read.shared")
    async def tasks(self) -> Page[TaskView]:
        """List tasks of running workers or with recent jobs: options, throughput and durations."""
        store, now = await self.operations.store(), self.services.clock.now()
        declared = await self.services.published.all(store)
        gates = {gate.id: gate for gate in await self.operations.active_gates()}
        workers = await live_workers(store, self.services.clock, self.services.settings.lease_duration_s)
        recent = await store.survey(ActivityBetween(now - RECENT, now))
        finished, failed = _rates(recent, "task")
        newest = (await store.jobs(JobFilter(states=(State.SUCCEEDED,)), PageRequest(limit=SAMPLE))).items
        durations = _durations(newest)
        queues: dict[str, set[str]] = defaultdict(set)
        for task, queue in (*((row.task, row.queue) for row in recent), *((j.task, j.queue) for j in newest)):
            queues[task].add(queue)
        names = {*finished, *(task for worker in workers for task in worker.tasks)}
        names |= {gate.name for gate in gates.values() if gate.scope == "task" and gate.name}
        return Page(
            items=[
                TaskView(
                    name=name,
                    per_minute=finished[name],
                    failed_per_minute=failed[name],
                    workers=sum(name in worker.tasks for worker in workers),
                    p50_ms=_quantile(durations[name], 0.5),
                    p95_ms=_quantile(durations[name], 0.95),
                    p99_ms=_quantile(durations[name], 0.99),
                    queues=tuple(sorted(queues[name])),
                    gate=_gate(gates, "task", name),
                    declared=declared.get(name),
                )
                for name in sorted(names)
            ]
        )

    @requires("read.shared")
    async def workers(self) -> Page[WorkerView]:
        """List workers seen recently, running ones first."""
        store = await self.operations.store()
        return Page(
            items=await worker_views(store, self.services.clock, self.services.settings.lease_duration_s)
        )

    @requires("read.shared")
    async def activity(self, request: ActivityRequest) -> Page[ActivityBucket]:
        """Count finished jobs by outcome in time buckets, oldest first; empty buckets are left out."""
        store, now = await self.operations.store(), self.services.clock.now()
        rows = await store.survey(ActivityBetween(now - timedelta(hours=request.hours), now))
        counts: dict[tuple[datetime, str | None], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for row in rows:
            seconds = int(row.at.timestamp())
            at = row.at - timedelta(seconds=seconds % request.step_s)
            name = None if request.by == "all" else getattr(row, request.by)
            if row.state in OUTCOMES:
                counts[at, name][OUTCOMES[row.state]] += row.n
        return Page(
            items=[
                ActivityBucket(
                    at=at,
                    name=name,
                    succeeded=found["succeeded"],
                    failed=found["failed"],
                    cancelled=found["cancelled"],
                )
                for (at, name), found in sorted(counts.items(), key=lambda one: (one[0][0], one[0][1] or ""))
            ]
        )

    @requires("audit")
    async def audit(self, request: AuditRequest) -> Page[AuditView]:
        """List audit entries, newest first."""
        where = AuditFilter(
            actor=request.actor,
            action=request.action,
            object=request.object,
            tenant=self.operations.tenant(request.tenant),
            result=request.result,
            since_at=request.since,
            until_at=request.until,
        )
        store = await self.operations.store()
        page = await store.audit(where, PageRequest(limit=request.limit, cursor=request.cursor))
        visibility = self.operations.visibility
        # a name that is not shown must not be found either
        found = [one for one in page.items if request.actor is None or not is_anonymous(one, visibility)]
        return Page(items=[audit_view(entry, visibility) for entry in found], next=page.next)

    @requires("operate.shared")
    async def verify_audit(self, request: VerifyAuditRequest) -> AuditVerification:
        """Check the hash chain over the audit log: whether entries were changed, removed or forged.

        A call checks ``limit`` seals and returns ``next``: send it as ``after`` to continue.
        """
        retention = timedelta(days=self.services.settings.retention_audit_days)
        return await audit_chain.verify(
            await self.operations.store(), request, audit_chain.Judged(retention, self.services.clock.now())
        )

    @requires("operate.shared")
    async def doctor(self) -> DoctorReport:
        """Run all health checks, each finding with its remedy."""
        findings = await doctor.examine(self.services)
        levels: tuple[Level, ...] = get_args(Level)  # from the best to the worst
        worst = max((finding.level for finding in findings), key=levels.index, default=levels[0])
        return DoctorReport(findings=tuple(findings), worst=worst)

    @requires("admin.shared")
    async def settings(self) -> Page[Setting]:
        """List settings with their values and sources; secrets are masked."""
        return Page(items=[Setting(**setting) for setting in config.explain(self.services.settings)])


def _depth(depth: QueueDepth) -> dict[str, Any]:
    return {name: getattr(depth, name) for name in QueueDepth.__struct_fields__}


def _gate(gates: dict[str, Gate], scope: str, name: str) -> GateView | None:
    gate = gates.get(gate_id(scope, name))
    return None if gate is None else gate_view(gate)


def _rates(rows: Sequence[ActivityCount], by: str) -> tuple[dict[str, float], dict[str, float]]:
    """Finished jobs per minute, and of these the failed ones, by queue or task."""
    minutes = RECENT.total_seconds() / 60
    finished: dict[str, float] = defaultdict(float)
    failed: dict[str, float] = defaultdict(float)
    for row in rows:
        finished[getattr(row, by)] += row.n / minutes
        if row.state == "failed":
            failed[getattr(row, by)] += row.n / minutes
    return finished, failed


def _durations(jobs: Sequence[Job]) -> dict[str, list[float]]:
    """Durations in milliseconds, by task."""
    found: dict[str, list[float]] = defaultdict(list)
    for job in jobs:
        if job.started_at is not None and job.finished_at is not None:
            found[job.task].append((job.finished_at - job.started_at).total_seconds() * 1000)
    return found


def _quantile(values: Sequence[float], part: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]
