"""Doctor's findings about limits and budgets: what stays full, what is spent, what can never begin."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from shlex import quote

import msgspec

from ..core.jobs.buckets import budget_admits
from ..core.jobs.limits import is_family
from ..core.jobs.order import claim_order
from ..core.jobs.periods import period_ends
from ..core.jobs.why_limits import set_command
from ..core.tenants import level, money
from ..model import (
    Finding,
    Held,
    Job,
    JobCount,
    JobFilter,
    Limits,
    PageRequest,
    State,
    TenantRule,
    TenantRules,
    TenantsInUse,
    TenantUse,
)
from ..store.protocol import Store
from .why_facts import jobs_under, limit_names

STUCK = timedelta(minutes=10)  # a limit that no job has begun under for so long, though it is full
MOST_LIMITS = 20  # whose holders are read
MOST_HOLDERS = 1000
MOST_OVERSIZED = 100
MOST_TENANTS = 100
MOST_WAITING = 1000


async def limit_findings(store: Store, now: datetime, store_now: datetime | None) -> Sequence[Finding]:
    held = await store.survey(Limits(store_now))
    return [
        *await _stuck(store, held, now),
        *await _oversized(store, held, store_now),
        *await _spent(store, now, store_now),
    ]


# --- full for long -------------------------------------------------------------------------------


async def _stuck(store: Store, held: Sequence[Held], now: datetime) -> Sequence[Finding]:
    each = [one for limit in held for one in (limit.keys if is_family(limit.name) else (limit,))]
    full = [one for one in each if one.most is not None and one.running >= one.most]
    return [finding for one in full[:MOST_LIMITS] for finding in await _of_full(store, one, now)]


async def _of_full(store: Store, held: Held, now: datetime) -> Sequence[Finding]:
    """A limit that is full is as it should be; one that nothing leaves, while jobs wait, may not be."""
    under = jobs_under(held.name)
    running = msgspec.structs.replace(under, states=(State.RUNNING,))
    page = await store.jobs(running, PageRequest(limit=MOST_HOLDERS, newest_first=False, brief=True))
    holders = sorted((job for job in page.items if job.started_at is not None), key=_began)
    if not holders or _began(holders[-1]) > now - STUCK:
        return ()
    queued = msgspec.structs.replace(under, states=(State.QUEUED,))
    if not await store.survey(JobCount(queued, 1)):
        return ()
    first = holders[0]
    text = (
        f"limit {held.name} is full ({held.running} of {held.most}), jobs wait for it, and none has begun "
        f"under it since {_began(holders[-1]):%Y-%m-%d %H:%M} UTC; job {first.id} on worker {first.worker} "
        "has held it longest"
    )
    remedy = (
        f"See whether it still works: rota jobs show {first.id}. Or raise the limit: "
        f"{set_command(held, running=(held.most or 0) + 1)}"
    )
    return [Finding(check="limits", level="warning", text=text, remedy=remedy)]


def _began(job: Job) -> datetime:
    return job.started_at or job.run_at


# --- never ---------------------------------------------------------------------------------------


async def _oversized(store: Store, held: Sequence[Held], store_now: datetime | None) -> Sequence[Finding]:
    """Jobs that take more units than a bucket can hold: it was made smaller after they were enqueued."""
    bursts = [one.burst for one in held if one.rate is not None and one.burst is not None]
    if not bursts:
        return ()
    where = JobFilter(states=(State.QUEUED,), units_above=min(bursts))
    jobs = (await store.jobs(where, PageRequest(limit=MOST_OVERSIZED, newest_first=False, brief=True))).items
    names = sorted({name for job in jobs for name in limit_names(job)})
    over = {one.name: one for one in await store.survey(Limits(store_now, tuple(names)))} if names else {}
    worst: dict[str, Job] = {}
    for job in jobs:
        for name in limit_names(job):
            if _is_oversized(job, over.get(name)) and job.units > getattr(worst.get(name), "units", 0):
                worst[name] = job
    return [_too_small(over[name], job) for name, job in sorted(worst.items())]


def _is_oversized(job: Job, held: Held | None) -> bool:
    return held is not None and held.rate is not None and job.units > (held.burst or job.units)


def _too_small(held: Held, job: Job) -> Finding:
    return Finding(
        check="limits",
        level="problem",
        text=f"job {job.id} can never begin: it takes {job.units:,} units, and the burst of limit "
        f"{held.name} is {held.burst:,}",
        remedy=f"Raise it: {set_command(held, burst=job.units)}. Or cancel the job.",
    )


# --- budgets -------------------------------------------------------------------------------------


async def _spent(store: Store, now: datetime, store_now: datetime | None) -> Sequence[Finding]:
    rules = {one.name: one for one in await store.survey(TenantRules()) if one.budget is not None}
    names = tuple(sorted(rules))[:MOST_TENANTS]
    used = await store.survey(TenantsInUse(store_now, names, MOST_WAITING)) if names else ()
    return [finding for use in used for finding in await _of_budget(store, rules[use.name], use, now)]


async def _of_budget(store: Store, rule: TenantRule, use: TenantUse, now: datetime) -> Sequence[Finding]:
    if rule.budget is None or rule.period is None or not use.waiting:
        return ()
    too_dear = ""
    if level(rule, use.spent) != "reached":
        price = None if use.reserved else await _next_price(store, rule.name, now)
        if price is None or budget_admits(rule.budget, use.spent, price):
            return ()
        too_dear = f", too little is left for the next job, whose price is {money(price)}"
    count = f"{use.waiting} or more jobs wait" if use.waiting >= MOST_WAITING else f"{use.waiting} jobs wait"
    waiting = "1 job waits" if use.waiting == 1 else count
    text = (
        f"tenant {use.name} has spent {money(use.spent)} of {money(rule.budget)} per {rule.period}"
        f"{too_dear}, and {waiting} until {period_ends(rule.period, now):%Y-%m-%d %H:%M} UTC"
    )
    remedy = f"Raise it: rota tenants budget {quote(use.name)} AMOUNT/{rule.period}"
    return [Finding(check="budgets", level="warning", text=text, remedy=remedy)]


async def _next_price(store: Store, tenant: str, now: datetime) -> float | None:
    """The price of the tenant's next job, of its oldest thousand; None: none is due, or it has no price."""
    where = JobFilter(tenant=tenant, states=(State.QUEUED,))
    page = await store.jobs(where, PageRequest(limit=MOST_WAITING, newest_first=False, brief=True))
    due = [job for job in page.items if job.run_at <= now]
    return min(due, key=claim_order).price if due else None
