"""Doctor's findings about work that waits for a person: pauses, failed jobs, failing schedules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from shlex import quote

from ..core.jobs.gates import active
from ..model import (
    FINAL,
    CurrentOverview,
    DepthByTenant,
    Finding,
    Gate,
    Job,
    JobCount,
    JobFilter,
    LastRuns,
    Overview,
    PageRequest,
    Schedule,
    State,
)
from ..runtime.gate_watch import load
from ..store.protocol import Store

MOST = 1000
MOST_NAMED = 5
MOST_SCHEDULES = 50  # whose runs are read, of those whose last one failed
NEWEST_RUNS = 10
FEWEST_RUNS = 2  # one failed run proves nothing about a schedule


async def paused_work(store: Store, now: datetime) -> Sequence[Finding]:
    """Pauses that hold due jobs back."""
    found, overview = [], await store.survey(CurrentOverview(now))
    for gate in active(await load(store), now):
        held = await _held_back(store, gate, overview, now)
        if held:
            what = "everything" if gate.scope == "all" else f"{gate.scope} {gate.name}"
            flag = "" if gate.scope == "all" else f" --{gate.scope} {quote(gate.name or '')}"
            reason = f": {gate.reason}" if gate.reason else ""
            jobs = "1 due job waits" if held == 1 else f"{held} due jobs wait"
            text = f"{what} is paused by {gate.actor}{reason}, and {jobs}"
            remedy = f"If the reason is gone: rota resume{flag}"
            found.append(Finding(check="pauses", level="warning", text=text, remedy=remedy))
    return found


async def _held_back(store: Store, gate: Gate, overview: Overview, now: datetime) -> int:
    """How many due jobs a pause holds back; of a task, those queued for later too, up to a limit."""
    match gate.scope:
        case "all":
            return sum(depth.due for depth in overview.queues.values())
        case "queue":
            depth = overview.queues.get(gate.name or "")
        case "tenant":
            depth = (await store.survey(DepthByTenant(now, 100 * MOST))).get(gate.name or "")
        case "task":
            return await store.survey(JobCount(JobFilter(task=gate.name, states=(State.QUEUED,)), MOST))
        case _:
            return 0
    return 0 if depth is None else depth.due


async def failed_jobs(store: Store) -> Sequence[Finding]:
    """Failed jobs that were neither retried nor deleted."""
    where = JobFilter(states=(State.FAILED,))
    jobs = (await store.jobs(where, PageRequest(limit=MOST, brief=True))).items
    if not jobs:
        return ()
    tasks = Counter(job.task for job in jobs).most_common()
    named = ", ".join(f"{task} ({n})" for task, n in tasks[:MOST_NAMED])
    more = f" and {len(tasks) - MOST_NAMED} more tasks" if len(tasks) > MOST_NAMED else ""
    count = "1 failed job waits" if len(jobs) == 1 else f"{_at_most(len(jobs))} failed jobs wait"
    remedy = (
        "See why: rota jobs failures. Then run them again: "
        f"rota jobs retry --state failed --task {quote(tasks[0][0])} --dry-run. Or delete them."
    )
    text = f"{count} for a decision: {named}{more}"
    return [Finding(check="failures", level="warning", text=text, remedy=remedy)]


def _at_most(n: int) -> str:
    return f"{n} or more" if n == MOST else str(n)


async def failing_schedules(store: Store, schedules: Sequence[Schedule]) -> Sequence[Finding]:
    """Enabled schedules whose newest runs failed, every one of them."""
    enabled = {(one.tenant, one.name): one for one in schedules if one.enabled}
    last = await store.survey(LastRuns(tuple(enabled))) if enabled else ()
    suspects = [job for job in last if job.state is State.FAILED][:MOST_SCHEDULES]
    found = []
    for job in suspects:
        runs = await _newest_runs(store, job)
        if len(runs) >= FEWEST_RUNS and all(run.state is State.FAILED for run in runs):
            name, tenant = quote(job.schedule or ""), quote(job.tenant)
            text = f"schedule {job.tenant}/{job.schedule}: its last {len(runs)} runs failed, every one"
            remedy = f"See why: rota runs list --schedule {name} --tenant {tenant}"
            found.append(Finding(check="schedules", level="warning", text=text, remedy=remedy))
    return found


async def _newest_runs(store: Store, job: Job) -> Sequence[Job]:
    where = JobFilter(schedule=job.schedule, tenant=job.tenant, states=tuple(FINAL))
    return (await store.jobs(where, PageRequest(limit=NEWEST_RUNS, brief=True))).items
