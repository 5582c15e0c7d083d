"""Sets the sample rules, and enqueues the sample tasks at a low rate and in a fixed order, until stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count, cycle
from typing import Any

from ..app import Rota
from ..errors import NotFound, QuotaExceeded
from ..runtime.service import pause
from ..tasks.handle import JobHandle
from . import tasks

FIRST_ROUND_S = 0.25  # shows every kind of task soon
LATER_S = 0.5
DELAY_S = 2.0

Report = Callable[[JobHandle, bool], Awaitable[None]]  # the job, and whether it existed before

NAMES = ("Ada", "Grace", "Edsger", "Barbara", "Donald")
TENANTS = ("acme", "globex")
CITIES = ("Lisbon", "Nairobi", "Oslo", "Lima")
ACCOUNTS = 3
BURST = 6  # jobs that come together, so that some have to wait for their limit

RULES: dict[str, dict[str, Any]] = {
    "acme": {"weight": 3},  # the paid plan
    "initech": {"budget": "1.00/hour", "budget_alert": 0.5, "waiting": 20},
}


async def set_rules(app: Rota) -> None:
    """Set what limits and tenants are shown with; a tenant that has a rule keeps it."""
    await app.limits.set("key:demo.account:*", running=1)
    for tenant, rule in RULES.items():
        with suppress(NotFound):
            if (await app.tenants.get(tenant)).updated_at is not None:
                continue
        await app.tenants.set(tenant, **rule)


async def feed(stop: asyncio.Event, report: Report) -> None:
    """Enqueue a job of each kind in turn; the first round a little faster."""
    seen: dict[str, str] = {}
    for number, enqueue in zip(count(), cycle(KINDS), strict=False):
        with suppress(QuotaExceeded):  # of a tenant whose budget is spent: its jobs wait
            job = await enqueue(number // len(KINDS) + number)
            existed = job.key is not None and seen.get(job.key) == job.id
            if job.key is not None:
                seen[job.key] = job.id
            await report(job, existed)
        if await pause(FIRST_ROUND_S if number < len(KINDS) else LATER_S, stop):
            return


async def _contacts(n: int) -> JobHandle:
    batch = ({"number": 100 * n + one} for one in range(BURST))
    return (await tasks.contact.options(tenant=TENANTS[n % 2]).enqueue_many(batch))[-1]


async def _accounts(n: int) -> JobHandle:
    batch = ({"account": one % ACCOUNTS, "change": 100 * n + one} for one in range(BURST))
    return (await tasks.account.options(tenant=TENANTS[n % 2]).enqueue_many(batch))[-1]


KINDS: tuple[Callable[[int], Awaitable[JobHandle]], ...] = (
    lambda n: tasks.report.enqueue(pages=12),
    _contacts,
    _accounts,
    lambda n: tasks.draw.options(tenant="initech").enqueue(prompt=CITIES[n % len(CITIES)]),
    lambda n: tasks.greet.enqueue(name=NAMES[n % len(NAMES)]),
    lambda n: tasks.flaky.options(tenant=TENANTS[n % 2]).enqueue(city=CITIES[n % len(CITIES)]),
    lambda n: tasks.refresh.options(key="page:home").enqueue(page="home"),
    lambda n: tasks.primes.enqueue(below=2_000_000 + n),
    lambda n: tasks.reminder.options(delay=DELAY_S).enqueue(text="tea is ready"),
    lambda n: tasks.refresh.options(key="page:home").enqueue(page="home"),
    lambda n: tasks.fingerprint.options(tenant=TENANTS[n % 2]).enqueue(text=f"document {n}"),
    lambda n: tasks.failing.options(tenant=TENANTS[n % 2]).enqueue(order=1000 + n),
    lambda n: tasks.sweep.enqueue(),
    lambda n: tasks.newsletter.enqueue(subscribers=0),
    lambda n: tasks.greet.enqueue(name=NAMES[n % len(NAMES)]),
)
