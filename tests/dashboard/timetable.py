"""Schedules for the dashboard's tests: created, run, overdue; and as stored."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from admin.sites import Site
from rota.model import Job, JobFilter, PageRequest, Schedule
from rota.testing import drain

DAILY = "0 8 * * *"


def make(site: Site, name: str, **given: Any) -> Schedule:
    values = {"task": "send_receipt", "payload": {"order_id": 1}, **given}
    if not {"cron", "every", "at"} & values.keys():
        values["cron"] = DAILY
    return site.do(lambda: site.rota.schedules.create(name=name, **values))


def run(site: Site, name: str, tenant: str = "default") -> None:
    """One run by hand, to its end."""

    async def act() -> None:
        await site.rota.schedules.trigger(name, tenant=tenant)
        await drain(site.rota)

    site.do(act)


def caught_up(site: Site, name: str) -> None:
    """Catch up the fires of the last three hours."""

    async def act() -> None:
        now = site.rota.clock.now()
        await site.rota.schedules.backfill(name, now - timedelta(hours=3), now, dry_run=False)
        await drain(site.rota)

    site.do(act)


def clear(site: Site) -> None:
    async def act() -> None:
        for one in (await site.rota.schedules.list()).items:
            await site.rota.schedules.delete(one.name, tenant=one.tenant)

    site.do(act)


def overdue(site: Site, name: str, hours: float = 2.0) -> None:
    """As if no scheduler had been there for so long."""

    async def act() -> None:
        store, now = await site.operations().store(), site.rota.clock.now()
        schedule = await site.rota.schedules.get(name)
        due = now - timedelta(hours=hours)
        await store.put_schedules([msgspec.structs.replace(schedule, next_run_at=due, check_at=due)], now)

    site.do(act)


def stored(site: Site, name: str, tenant: str = "default") -> Schedule:
    return site.do(lambda: site.rota.schedules.get(name, tenant=tenant))


def names(site: Site) -> set[str]:
    return {one.name for one in site.do(lambda: site.rota.schedules.list()).items}


def made_by(site: Site, name: str) -> list[Job]:
    """The jobs that a schedule has made."""

    async def act() -> list[Job]:
        page = await (await site.operations().store()).jobs(JobFilter(schedule=name), PageRequest(limit=100))
        return list(page.items)

    found: list[Job] = site.do(act)
    return found
