"""Which queues, tasks and tenants are in use, to notice a misspelt one. Reads a bounded amount."""

from __future__ import annotations

import difflib
from datetime import timedelta

from ..core.access import may
from ..core.jobs.options import name_text
from ..model import (
    ActivityBetween,
    Actor,
    CurrentOverview,
    DepthByTenant,
    JobFilter,
    PageRequest,
    Schedule,
    ScheduleFilter,
    Scope,
)
from ..store.protocol import Store
from .services import Services
from .workers import worker_views

RECENT = timedelta(days=1)
SAMPLE = 1000


async def warning_of(services: Services, scope: Scope, name: str, what: str = "pause") -> str | None:
    """Why a pause or limit of this name may have no effect; None if something in use has it."""
    name_text(scope, name)
    store = await services.stores.get()
    match scope:
        case "queue":
            known = await _queues(services, store)
        case "task":
            known = await _tasks(services, store)
        case "tenant":
            known = await _tenants(services, store)
        case _:
            return None
    if name in known:
        return None
    near = difflib.get_close_matches(name, sorted(known), 1, 0.7)
    hint = f"; did you mean {near[0]!r}?" if near else f", so the {what} holds nothing back now"
    return f"no worker, schedule or recent job names {scope} {name!r}{hint}"


async def undeclared(services: Services, actor: Actor, task: str) -> str | None:
    """Why a new job of this task may wait for long; None if a worker has, or had, the task."""
    published = services.producer.published
    store = await services.stores.get()
    if services.producer.has(task) or await published.find(store, task) is not None:
        return None
    workers = await worker_views(store, services.clock, services.settings.lease_duration_s)
    known = {name for worker in workers for name in worker.tasks}
    if task in known:
        return None
    near = next(iter(difflib.get_close_matches(task, sorted(known), 1)), None) or published.near(task)
    # a tenant, or a producer, does not learn the names of others' tasks
    hint = f"; did you mean {near!r}?" if near and may(actor, "read.shared") else ""
    return f"no worker has declared a task named {task!r}: the job waits until one does{hint}"


async def _queues(services: Services, store: Store) -> set[str]:
    now = services.clock.now()
    known = set((await store.survey(CurrentOverview(now))).queues)
    known |= {row.queue for row in await store.survey(ActivityBetween(now - RECENT, now))}
    lease_s = services.settings.lease_duration_s
    known |= {q for worker in await worker_views(store, services.clock, lease_s) for q in worker.queues or ()}
    known |= {
        str(one.options.get("queue", "default"))
        for one in (await services.producer.published.all(store, 0.0)).values()
    }
    return known | {schedule.queue for schedule in await _schedules(store) if schedule.queue is not None}


async def _tasks(services: Services, store: Store) -> set[str]:
    now = services.clock.now()
    known = {row.task for row in await store.survey(ActivityBetween(now - RECENT, now))}
    known |= {
        job.task for job in (await store.jobs(JobFilter(), PageRequest(limit=SAMPLE, brief=True))).items
    }
    lease_s = services.settings.lease_duration_s
    known |= {task for worker in await worker_views(store, services.clock, lease_s) for task in worker.tasks}
    known |= set(await services.producer.published.all(store, 0.0))
    return known | {schedule.task for schedule in await _schedules(store)}


async def _tenants(services: Services, store: Store) -> set[str]:
    known = set(await store.survey(DepthByTenant(services.clock.now(), 100 * SAMPLE)))
    newest = await store.jobs(JobFilter(), PageRequest(limit=SAMPLE, brief=True))
    return known | {job.tenant for job in newest.items} | {one.tenant for one in await _schedules(store)}


async def _schedules(store: Store) -> list[Schedule]:
    return list((await store.schedules(ScheduleFilter(), PageRequest(limit=SAMPLE))).items)
