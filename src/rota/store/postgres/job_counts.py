"""How much there is: of now by state, queue and tenant; of the past by minute; ahead of one job.

Owns the SQL of the counts. Must never read without a bound: what lies beyond it is estimated, and
said to be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, cast

from ...errors import StoreError
from ...model import (
    FINAL,
    ActivityBetween,
    ActivityCount,
    Answer,
    AuditChainEnds,
    AuditSeals,
    CurrentOverview,
    DepthByTenant,
    DueLane,
    DueLanes,
    ExpiredJobs,
    Job,
    JobCount,
    JobsAhead,
    LastRuns,
    LimitRules,
    Limits,
    Overview,
    Question,
    QueueDepth,
    RunCount,
    RunCounts,
    State,
    TenantRules,
    TenantsInUse,
    WaitingRetries,
    WaitingTenants,
)
from . import audit_queries, rules
from .connections import Connections, Fetch
from .job_pages import count as count_matching
from .job_pages import expired, last_runs, waiting_retries
from .rows import Row, ids

COUNT_AT_MOST = 100_000  # live jobs
SAMPLE = 10_000  # ended jobs that are read for one tenant, the newest

_QUEUED = """
SELECT queue, run_at <= %s, count(*) FILTER (WHERE mine), min(run_at) FILTER (WHERE mine), count(*)
  FROM (SELECT queue, run_at, tenant = coalesce(%s, tenant) AS mine FROM rota.queued LIMIT %s) AS q
 GROUP BY 1, 2
"""
_RUNNING = """
SELECT queue, count(*) FILTER (WHERE mine), count(*)
  FROM (SELECT queue, tenant = coalesce(%s, tenant) AS mine FROM rota.running LIMIT %s) AS r
 GROUP BY 1
"""
_ENDED = "SELECT state, sum(n)::bigint FROM rota.tally GROUP BY 1"
_SAMPLE = """
SELECT state, count(*) FILTER (WHERE tenant = %s), count(*)
  FROM (SELECT state, tenant FROM rota.done ORDER BY id DESC LIMIT %s) AS d GROUP BY 1
"""
_ESTIMATE = "SELECT reltuples::bigint FROM pg_class WHERE oid = CAST(%s AS regclass)"
_TENANTS = """
SELECT tenant, place, count(*), min(run_at)
  FROM (SELECT id, tenant, run_at, CASE WHEN run_at <= %s THEN 'due' ELSE 'due_later' END AS place
          FROM rota.queued
        UNION ALL SELECT id, tenant, run_at, 'running' FROM rota.running
        ORDER BY id LIMIT %s) AS live
 GROUP BY 1, 2
"""
_ACTIVITY = """
SELECT minute, queue, task, state, sum(n)::bigint FROM rota.tally WHERE minute >= %s AND minute < %s
 GROUP BY 1, 2, 3, 4 HAVING sum(n) > 0 ORDER BY 1, 2, 3, 4
"""
_RUNS = """
SELECT tenant, schedule, greatest(sum(succeeded), 0)::bigint, greatest(sum(failed), 0)::bigint,
       greatest(sum(cancelled), 0)::bigint,
       sum(timed)::bigint, sum(total_us)::double precision / 1000, max(longest_us)::double precision / 1000
  FROM rota.run_counts
 WHERE (tenant, schedule) IN (SELECT * FROM unnest(%s::text[], %s::text[])) AND day >= %s
 GROUP BY 1, 2 ORDER BY 1, 2
"""
_LANES = """
SELECT queue, task, count(*) FROM (
    SELECT * FROM (SELECT id, queue, task, run_at FROM rota.queued ORDER BY id LIMIT %s) AS oldest
    UNION
    SELECT * FROM (SELECT id, queue, task, run_at FROM rota.queued WHERE due LIMIT %s) AS ready) AS q
 WHERE run_at <= %s GROUP BY 1, 2 ORDER BY 1, 2
"""
_AHEAD = "SELECT rota.ahead(%s, %s, %s, %s, %s)"


async def answer(connections: Connections, question: Question[Answer]) -> Answer:
    return cast(Answer, await _answer(connections, question))  # the type of a question is its answer's


async def _answer(connections: Connections, question: Question[Answer]) -> object:
    match question:
        case JobCount(where, most):
            return await count_matching(connections, where, most)
        case JobsAhead(job, most):
            return await count_ahead(connections, job, most)
        case DepthByTenant(now, most):
            return await tenants(connections, now, most)
        case ActivityBetween(since, until):
            return await activity(connections, since, until)
        case CurrentOverview(now, tenant):
            return await overview(connections, now, tenant)
        case LastRuns(schedules):
            return await last_runs(connections, schedules)
        case RunCounts(schedules, since):
            return await run_counts(connections, schedules, since)
        case ExpiredJobs(now, most):
            return await expired(connections, now, most)
        case DueLanes(now, most):
            rows = await connections.rows(_LANES, (most, most, now))
            return [DueLane(queue=queue, task=task, due=due) for queue, task, due in rows]
        case Limits(now, names, most):
            return await rules.limits(connections, now, names, most)
        case LimitRules(names):
            return await rules.limit_rules(connections, names)
        case TenantRules(names):
            return await rules.tenant_rules(connections, names)
        case TenantsInUse(now, names, most):
            return await rules.tenants_in_use(connections, now, names, most)
        case WaitingRetries(key, most):
            return await waiting_retries(connections, key, most)
        case WaitingTenants(after, most):
            return await rules.waiting_tenants(connections, after, most)
        case AuditChainEnds(most):
            return await audit_queries.chain(connections, most)
        case AuditSeals(after, limit):
            return await audit_queries.seals(connections, after, limit)
    raise StoreError(f"this store cannot answer {type(question).__name__}: upgrade it to match rota")


async def overview(connections: Connections, now: datetime, tenant: str | None) -> Overview:
    estimated: set[str] = set()
    async with connections.snapshot() as fetch:  # or a job on the move could be seen in no state at all
        queued = await fetch(_QUEUED, (now, tenant, COUNT_AT_MOST + 1))
        running = await fetch(_RUNNING, (tenant, COUNT_AT_MOST + 1))
        ended = await _ended(fetch, tenant, estimated)
        more = await _scale(fetch, State.QUEUED, sum(row[4] for row in queued), estimated)
        more_running = await _scale(fetch, State.RUNNING, sum(row[2] for row in running), estimated)
    queues = _queues(queued, more, running, more_running, now)
    counts = {state.value: max(ended.get(state, 0), 0) for state in State}
    counts[State.QUEUED] = sum(depth.due + depth.due_later for depth in queues.values())
    counts[State.RUNNING] = sum(depth.running for depth in queues.values())
    oldest = max((d.oldest_due_s for d in queues.values() if d.oldest_due_s is not None), default=None)
    return Overview(counts=counts, oldest_due_s=oldest, queues=queues, estimated=frozenset(estimated))


async def _ended(fetch: Fetch, tenant: str | None, estimated: set[str]) -> dict[str, int]:
    """By state; of one tenant from its part in the newest ones."""
    total = {row[0]: row[1] for row in await fetch(_ENDED)}
    if tenant is None:
        return total
    sample = await fetch(_SAMPLE, (tenant, SAMPLE + 1))
    if sum(row[2] for row in sample) <= SAMPLE:
        return {state: mine for state, mine, _ in sample}
    estimated.update(FINAL)
    return {state: round(mine * max(total.get(state, 0), read) / read) for state, mine, read in sample}


async def _scale(fetch: Fetch, state: State, counted: int, estimated: set[str]) -> float:
    """1 if everything was counted, else how much larger the table is than the part that was."""
    if counted <= COUNT_AT_MOST:
        return 1.0
    estimated.add(state)
    ((estimate,),) = await fetch(_ESTIMATE, (f"rota.{state}",))
    return float(max(estimate, counted + 1)) / counted


def _queues(
    queued: Sequence[Row], more: float, running: Sequence[Row], more_running: float, now: datetime
) -> dict[str, QueueDepth]:
    found: dict[str, dict[str, Any]] = {}
    for queue, due, count, oldest, _ in queued:
        if count:
            entry = found.setdefault(queue, {})
            entry["due" if due else "due_later"] = round(count * more)
            if due:
                entry["oldest_due_s"] = (now - oldest).total_seconds()
    for queue, count, _ in running:
        if count:
            found.setdefault(queue, {})["running"] = round(count * more_running)
    return {queue: QueueDepth(**entry) for queue, entry in sorted(found.items())}


async def tenants(connections: Connections, now: datetime, most: int) -> Mapping[str, QueueDepth]:
    found: dict[str, dict[str, Any]] = {}
    for tenant, place, count, oldest in await connections.rows(_TENANTS, (now, most)):
        entry = found.setdefault(tenant, {})
        entry[place] = count
        if place == "due":
            entry["oldest_due_s"] = (now - oldest).total_seconds()
    return {tenant: QueueDepth(**entry) for tenant, entry in sorted(found.items())}


async def activity(connections: Connections, since: datetime, until: datetime) -> list[ActivityCount]:
    rows = await connections.rows(_ACTIVITY, (since, until))
    return [
        ActivityCount(at=at, queue=queue, task=task, state=state, n=n) for at, queue, task, state, n in rows
    ]


async def count_ahead(connections: Connections, job: Job, most: int) -> int:
    if not ids((job.id,)):
        return 0
    ((count,),) = await connections.rows(_AHEAD, (job.queue, -job.priority, job.run_at, job.id, most))
    return int(count)


async def run_counts(
    connections: Connections, schedules: Sequence[tuple[str, str]], since: date
) -> list[RunCount]:
    tenants, names = [tenant for tenant, _ in schedules], [name for _, name in schedules]
    rows = await connections.rows(_RUNS, (tenants, names, since))
    return [RunCount(**dict(zip(RunCount.__struct_fields__, row, strict=True))) for row in rows]
