"""Alerts about budgets: once per tenant, period and level, however many workers look."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota import Context, Event, Rota
from rota.model import AuditFilter, PageRequest
from rota.testing import FakeClock, drain
from rota.worker.budget_alerts import KIND, raise_alerts


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url, clock=FakeClock())

    @app.task
    async def spend(ctx: Context, cents: float) -> None:
        ctx.cost(cents=cents)

    yield app
    await app.close()


async def spend(app: Rota, cents: float, tenant: str = "acme") -> None:
    await app.enqueue("spend", {"cents": cents}, tenant=tenant)
    await drain(app)


async def alerts(app: Rota) -> list[str]:
    events = await raise_alerts(await app.stores.get(), app.clock, "w1")
    return [event.name.removeprefix("tenant.budget_") for event in events]


async def test_each_level_is_said_once_a_period(app: Rota) -> None:
    await app.tenants.set("acme", budget="1.00/day", budget_alert=0.8)
    await app.tenants.set("calm", budget="1.00/day", budget_alert=0.8)
    await spend(app, 79)
    assert await alerts(app) == []
    await spend(app, 1)
    assert await alerts(app) == ["alert"]
    assert await alerts(app) == []
    await spend(app, 20)
    assert await alerts(app) == ["reached"]
    assert await alerts(app) == []
    clock = app.clock
    assert isinstance(clock, FakeClock)
    clock.advance(86_400)
    assert await alerts(app) == []
    await spend(app, 90)
    assert await alerts(app) == ["alert"]


async def test_a_budget_that_was_raised_starts_again(app: Rota) -> None:
    await app.tenants.set("acme", budget="1.00/day")
    await spend(app, 99)
    assert await alerts(app) == []
    await spend(app, 5)
    assert await alerts(app) == ["reached"]
    await app.tenants.set("acme", budget="2.00/day")
    assert await alerts(app) == []
    await spend(app, 100)
    assert await alerts(app) == ["reached"]


async def test_of_several_workers_one_says_it(app: Rota) -> None:
    await app.tenants.set("acme", budget="1.00/day")
    await spend(app, 100)
    store = await app.stores.get()
    found = await asyncio.gather(*(raise_alerts(store, app.clock, f"w{n}") for n in range(5)))
    assert sum(map(len, found)) == 1


async def test_the_alert_is_in_the_audit_log_of_the_tenant(app: Rota) -> None:
    await app.tenants.set("acme", budget="1.00/day", budget_alert=0.5)
    await spend(app, 60)
    (event,) = await raise_alerts(await app.stores.get(), app.clock, "w1")
    store = await app.stores.get()
    where = AuditFilter(action="tenant.budget_alert", tenant="acme")
    (entry,) = (await store.audit(where, PageRequest(limit=5))).items
    assert entry.message == event.message == "tenant acme has spent 0.60 of 1.00/day, 60%"
    assert (entry.object, entry.actor) == ("tenant:acme", "worker:w1")
    assert (event.tenant, event.spent_cents, event.budget_cents) == ("acme", 60.0, 100.0)


async def test_a_document_spoiled_by_hand_delays_nothing(app: Rota) -> None:
    await app.tenants.set("acme", budget="1.00/day")
    await spend(app, 100)
    await (await app.stores.get()).put_document(KIND, "acme", "{}", 0, app.clock.now())
    assert await alerts(app) == ["reached"]


async def test_hooks_of_a_running_worker_get_the_event(tmp_path: object) -> None:
    app = Rota(f"sqlite:///{tmp_path}/rota.db")
    noted: asyncio.Future[Event] = asyncio.get_running_loop().create_future()

    @app.task
    async def spend(ctx: Context) -> None:
        ctx.cost(cents=500)

    @app.on("tenant.budget_reached")
    def note(event: Event) -> None:
        noted.get_loop().call_soon_threadsafe(noted.set_result, event)

    await app.migrate()
    await app.tenants.set("acme", budget="5.00/day")
    await app.enqueue("spend", tenant="acme")
    await drain(app)
    async with app.running():
        event = await asyncio.wait_for(noted, 30)
    assert (event.tenant, event.spent_cents) == ("acme", 500.0)
    await app.close()
