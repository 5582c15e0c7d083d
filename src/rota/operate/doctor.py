"""Health checks: first those that every store shares, then the store's own. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from shlex import quote
from typing import get_args

from ..core.schedules.names import key_of
from ..model import (
    AuditChainEnds,
    AuditFilter,
    CurrentOverview,
    Finding,
    JobFilter,
    Level,
    PageRequest,
    ScheduleFilter,
    State,
)
from ..runtime.clock import Clock
from ..runtime.service_records import ServiceStatus
from ..store.protocol import Store
from ..worker.unknown_tasks import is_live, unserved
from . import audit_chain
from .credential_checks import examine_credentials
from .limit_findings import limit_findings
from .requests import VerifyAuditRequest
from .services import Services
from .work_findings import failed_jobs, failing_schedules, paused_work
from .workers import live_workers, service_statuses, worker_record

SKEW_S = 1.0
LATE_S = 300.0
MOST_SCHEDULES = 1000
MOST_QUARANTINED = 100
QUARANTINED_WITHIN = timedelta(days=7)
SEALS_CHECKED = 10
UNSEALED_S = 3600.0


async def examine(app: Services) -> list[Finding]:
    """Every finding, worst first."""
    store = await app.stores.get()
    findings = [Finding(check="store", level="ok", text=f"{store.url} answers")]
    findings += await _clock(store, app.clock)
    findings += await _work(app, store)
    findings += await _quarantined(app, store)
    findings += await paused_work(store, app.clock.now())
    findings += await limit_findings(store, app.clock.now(), app.clock.store_now)
    findings += await failed_jobs(store)
    findings += await _services(app, store)
    findings += await _schedules(app, store)
    findings += await examine_credentials(store, app.clock.now())
    findings += await _audit(app, store)
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


async def _quarantined(app: Services, store: Store) -> Sequence[Finding]:
    """Jobs that were quarantined recently and that no operator has dealt with."""
    where = AuditFilter(action="job.quarantined", since_at=app.clock.now() - QUARANTINED_WITHIN)
    entries = (await store.audit(where, PageRequest(limit=MOST_QUARANTINED))).items
    ids = tuple({(entry.object or "").removeprefix("job:") for entry in entries})
    if not ids:
        return ()
    failed = JobFilter(ids=ids, states=(State.FAILED,))
    jobs = (await store.jobs(failed, PageRequest(limit=len(ids), brief=True))).items
    left = [job for job in jobs if job.crashes]
    if not left:
        return ()
    tasks = ", ".join(sorted({job.task for job in left}))
    jobs_are = "1 job is" if len(left) == 1 else f"{len(left)} jobs are"
    text = f"{jobs_are} quarantined: workers stopped responding during {tasks}"
    which = left[0].id if len(left) == 1 else "--state failed --error Quarantined --dry-run"
    remedy = (
        f"Find out why the workers stopped: rota jobs show {left[0].id}. "
        f"Then release what may run again: rota jobs retry {which}"
    )
    return [Finding(check="quarantine", level="warning", text=text, remedy=remedy)]


async def _services(app: Services, store: Store) -> Sequence[Finding]:
    """Whether the background services of each running worker have succeeded recently."""
    now, found, checked = app.clock.now(), list[Finding](), 0
    for document in await store.documents("worker"):
        if not is_live(document, app.clock, app.settings.lease_duration_s):
            continue
        for service in service_statuses(worker_record(document)):
            checked += 1
            if service.state != "ok":
                found.append(_late_service(document.key, service, now))
    if not found and checked:
        text = f"{checked} background services have succeeded recently"
        found.append(Finding(check="services", level="ok", text=text))
    return found


def _late_service(worker: str, service: ServiceStatus, now: datetime) -> Finding:
    at = service.succeeded_at
    since = (
        "has not succeeded yet" if at is None else f"last succeeded {(now - at).total_seconds():.0f} s ago"
    )
    text = f"{service.name} of worker {worker} {since}" + (f": {service.error}" if service.error else "")
    if service.name == "listener":
        remedy = (
            "Workers poll meanwhile. Behind a pooler, add ?listen=URL with a direct address, or ?listen=off."
        )
        return Finding(check="services", level="warning", text=text, remedy=remedy)
    stuck = service.state == "stuck"
    remedy = "Restart the worker." if stuck else "If it does not recover by itself, restart the worker."
    return Finding(check="services", level="problem", text=text, remedy=remedy)


async def _audit(app: Services, store: Store) -> Sequence[Finding]:
    """The newest seals of the audit log, and whether entries wait for one for long."""
    ends = await store.survey(AuditChainEnds())
    head = 0 if ends.head is None else ends.head.number
    after = head - SEALS_CHECKED if head > SEALS_CHECKED else None
    by = audit_chain.Judged(timedelta(days=app.settings.retention_audit_days), app.clock.now())
    result = await audit_chain.verify(store, VerifyAuditRequest(after=after, limit=SEALS_CHECKED + 1), by)
    found = [
        Finding(
            check="audit",
            level="problem",
            text=f"the audit log was tampered with: seal {problem.seal}: {problem.text}",
            remedy="Check it all: rota audit verify. Compare with a backup and with heads noted elsewhere.",
        )
        for problem in result.problems[:3]
    ]
    age_s = audit_chain.age_s(ends, app.clock.now())
    if age_s > UNSEALED_S:
        text = f"{ends.unsealed} audit entries have no seal yet, the oldest for {age_s:.0f} s"
        found.append(
            Finding(check="audit", level="warning", text=text, remedy="Start a worker: it seals them.")
        )
    if not found:
        text = f"the newest of {head} seals hold" if head else "no audit entry is sealed yet"
        found.append(Finding(check="audit", level="ok", text=text))
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
        name = key_of(schedule)
        has_ended = schedule.next_run_at is None and schedule.last_fire_at is not None
        if not schedule.enabled and schedule.reason and not has_ended:
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
    found += await failing_schedules(store, page.items)
    if not found:
        found.append(Finding(check="schedules", level="ok", text=f"{len(page.items)} checked"))
    return found
