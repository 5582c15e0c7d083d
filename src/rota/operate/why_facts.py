"""The facts by which ``rota jobs why`` explains a job: read here, judged in ``core/jobs/why.py``.

Reads no more than the job's state asks for, each with a bound. A tenant learns what holds its own jobs up,
not how much others have in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ..core.jobs.order import claim_order
from ..core.jobs.why import WhyFacts
from ..core.jobs.why_limits import BudgetFacts, LimitFacts
from ..model import (
    ActivityBetween,
    Held,
    Job,
    JobFilter,
    JobsAhead,
    Limits,
    PageRequest,
    State,
    TenantRules,
    TenantsInUse,
    WaitingRetries,
    WaitingTenants,
)
from ..store.protocol import Store
from .actions import ActionContext
from .workers import live_workers

MOST_AHEAD = 1000
MOST_HOLDERS = 3
MOST_BEFORE = 1000  # waiting jobs of a key that are read
LATELY = timedelta(minutes=10)


async def why_facts(context: ActionContext, job: Job) -> WhyFacts:
    store, clock = await context.store(), context.services.clock
    now = clock.now()
    facts: dict[str, Any] = {
        "job": job,
        "now": now,
        "gates": await context.active_gates(),
        "workers": await live_workers(store, clock, context.services.settings.lease_duration_s),
    }
    if job.state is State.QUEUED:
        facts |= await _place(context, store, job, now)
        if job.run_at <= now:
            facts |= {
                "limits": await _limits(context, store, job),
                "budget": await _budget(store, job, clock.store_now),
            }
    return WhyFacts(**facts)


async def _place(context: ActionContext, store: Store, job: Job, now: datetime) -> dict[str, Any]:
    """What comes first, and how fast that begins."""
    # how much others have to do is not a tenant's affair: it learns whether any job comes first
    if context.actor.tenant is not None:
        return {"ahead": await store.survey(JobsAhead(job, 1)), "most_ahead": 1}
    ended = await store.survey(ActivityBetween(now - LATELY, now))
    return {
        "ahead": await store.survey(JobsAhead(job, MOST_AHEAD)),
        "most_ahead": MOST_AHEAD,
        "is_shared": len(await store.survey(WaitingTenants("", 2))) > 1,
        "per_s": sum(one.n for one in ended if one.queue == job.queue) / LATELY.total_seconds(),
    }


async def _limits(context: ActionContext, store: Store, job: Job) -> Sequence[LimitFacts]:
    found = await store.survey(Limits(context.services.clock.store_now, limit_names(job)))
    return [await _limit(context, store, job, held) for held in found]


def limit_names(job: Job) -> tuple[str, ...]:
    """The names of all limits that the job could be under."""
    names = (f"queue:{job.queue}", f"task:{job.task}", f"tenant:{job.tenant}")
    return names if job.concurrency_key is None else (*names, f"key:{job.concurrency_key}")


def jobs_under(name: str) -> JobFilter:
    """The jobs that are under the limit of this name."""
    scope, _, subject = name.partition(":")
    match scope:
        case "queue":
            return JobFilter(queue=subject)
        case "task":
            return JobFilter(task=subject)
        case "tenant":
            return JobFilter(tenant=subject)
        case _:
            return JobFilter(concurrency_key=subject)


async def _limit(context: ActionContext, store: Store, job: Job, held: Held) -> LimitFacts:
    holders: Sequence[Job] = ()
    before, has_more = 0, False
    if held.most is not None and held.running >= held.most:
        under = jobs_under(held.name)
        own = context.actor.tenant or under.tenant
        where = msgspec.structs.replace(under, tenant=own, states=(State.RUNNING,))
        page = await store.jobs(where, PageRequest(limit=MOST_HOLDERS, newest_first=False, brief=True))
        holders = sorted(page.items, key=lambda one: (one.started_at or one.run_at, one.id))
        if held.name.startswith("key:"):
            before, has_more = await _before(context, store, job)
    retrying = None
    if held.strict and job.concurrency_key is not None:
        waiting = await store.survey(WaitingRetries(job.concurrency_key))
        retrying = next((one for one in waiting if context.sees(one.tenant)), None)
    is_shared = context.actor.tenant is not None and held.name != f"tenant:{context.actor.tenant}"
    return LimitFacts(
        held=held, holders=holders, retrying=retrying, before=before, has_more=has_more,
        is_shared=is_shared,
    )  # fmt: skip


async def _before(context: ActionContext, store: Store, job: Job) -> tuple[int, bool]:
    """How many due jobs of the same key come first, and whether there are more than were read."""
    where = JobFilter(
        concurrency_key=job.concurrency_key, tenant=context.actor.tenant, states=(State.QUEUED,)
    )
    page = await store.jobs(where, PageRequest(limit=MOST_BEFORE, newest_first=False, brief=True))
    now, place = context.services.clock.now(), claim_order(job)
    first = sum(one.run_at <= now and claim_order(one) < place for one in page.items)
    return first, page.next is not None


async def _budget(store: Store, job: Job, now: datetime | None) -> BudgetFacts | None:
    rules = [rule for rule in await store.survey(TenantRules((job.tenant,))) if rule.budget is not None]
    if not rules:
        return None
    (use,) = await store.survey(TenantsInUse(now, (job.tenant,)))
    return BudgetFacts(rule=rules[0], use=use)
