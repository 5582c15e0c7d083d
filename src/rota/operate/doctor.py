"""Health checks: first those that every store shares, then the store's own. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import get_args

from ..model import CurrentOverview, Finding, Level, PageRequest, ScheduleFilter
from ..runtime.clock import Clock
from ..store.protocol import Store
from ..worker.maintenance import unserved
from .services import Services
from .workers import live_workers

SKEW_S = 1.0
LATE_S = 300.0
MOST_SCHEDULES = 1000


async def examine(app: Services) -> list[Finding]:
    """Every finding, worst first."""
    store = await app.stores.get()
    findings = [Finding(check="store", level="ok", text=f"{store.url} answers")]
    findings += await _clock(store, app.clock)
    findings += await _work(app, store)
    findings += await _schedules(app, store)
    findings += await store.check_health(app.clock.now())
    levels = get_args(Level)  # from the best to the worst
    return sorted(findings, key=lambda finding: levels.index(finding.level), reverse=True)


async def _clock(store: Store, clock: Clock) -> Sequence[Finding]:
    skew = (await clock.sync(store.clock)).total_seconds()
    if abs(skew) > SKEW_S:
        text = f"this machine's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} the store's"
        remedy = "rota uses the store's clock, so nothing breaks; set up NTP here so that logs agree."
        return [Finding(check="clock", level="warning", text=text, remedy=remedy)]
    return [Finding(check="clock", level="ok", text=f"clocks agree within {abs(skew):.2f} s")]


async def _work(app: Services, store: Store) -> Sequence[Finding]:
    lease_s = app.settings.lease_duration_s
    workers = await live_workers(store, app.clock, lease_s)
    oldest = (await store.survey(CurrentOverview(app.clock.now()))).oldest_due_s
    found = []
    if not workers and oldest is None:
        text = "no worker is running, and no job is due"
        found.append(Finding(check="workers", level="ok", text=text))
    elif not workers:
        remedy = "Start one: rota worker --app MODULE:APP"
        found.append(Finding(check="workers", level="problem", text="no worker is running", remedy=remedy))
    else:
        found.append(Finding(check="workers", level="ok", text=f"{len(workers)} running"))
        for task, n in (await unserved(store, app.clock, lease_s)).items():
            text = f"no running worker has task {task}, and {n} or more of its jobs are due"
            remedy = "Start a worker whose app declares it, or cancel the jobs."
            found.append(Finding(check="tasks", level="problem", text=text, remedy=remedy))
    if oldest is not None and oldest > LATE_S:
        text = f"the oldest due job was due {oldest:.0f} s ago"
        remedy = "Find out why: rota jobs list --state queued, then rota jobs why ID."
        found.append(Finding(check="waiting", level="warning", text=text, remedy=remedy))
    return found


async def _schedules(app: Services, store: Store) -> Sequence[Finding]:
    page = await store.schedules(ScheduleFilter(), PageRequest(limit=MOST_SCHEDULES))
    now = app.clock.now()
    tasks = {
        task
        for worker in await live_workers(store, app.clock, app.settings.lease_duration_s)
        for task in worker.tasks
    }
    found = []
    for schedule in page.items:
        name = f"{schedule.tenant}/{schedule.name}"
        if not schedule.enabled and schedule.reason and schedule.next_run_at is not None:
            text = f"schedule {name} is disabled: {schedule.reason}"
            command = f"rota schedules enable {quote(schedule.name)} --tenant {quote(schedule.tenant)}"
            remedy = f"Fix it, then: {command}"
            found.append(Finding(check="schedules", level="warning", text=text, remedy=remedy))
        elif schedule.enabled and schedule.next_run_at is not None and tasks and schedule.task not in tasks:
            text = f"schedule {name} creates jobs of task {schedule.task}, which no running worker has"
            remedy = "Start a worker whose app declares it, or disable the schedule."
            found.append(Finding(check="schedules", level="warning", text=text, remedy=remedy))
        elif (
            schedule.enabled
            and schedule.next_run_at is not None
            and (late := (now - schedule.next_run_at).total_seconds()) > LATE_S
        ):
            text = f"schedule {name} should have fired {late:.0f} s ago"
            remedy = "Start a worker that fires schedules: one without --no-scheduler."
            found.append(Finding(check="schedules", level="problem", text=text, remedy=remedy))
    if not found:
        found.append(Finding(check="schedules", level="ok", text=f"{len(page.items)} checked"))
    return found
