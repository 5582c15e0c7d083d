"""What tenants may and what they use: set, shown and dropped by operators for all tenants."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from actors import operations_of

from rota import Context, Forbidden, NotFound, OptionError, Rota
from rota.operate import Operations
from rota.operate.requests import AuditRequest, PutTenantRequest, TenantsRequest
from rota.testing import FakeClock, drain


async def enqueue(app: Rota, tenant: str, **options: object) -> None:
    await app.enqueue("send", {"to": "x"}, tenant=tenant, **options)  # type: ignore[arg-type]


async def test_what_is_set_is_shown_and_only_the_given_fields_change(app: Rota) -> None:
    await app.tenants.set("acme", weight=3, waiting=100, budget="50.00/day", budget_alert=0.8)
    tenant = await app.tenants.set("acme", max_priority=5, schedules=50, retention_days=14)
    assert (tenant.weight, tenant.max_priority, tenant.retention_days) == (3.0, 5, 14.0)
    assert {quota.name: quota.most for quota in tenant.quotas} == {
        "waiting": 100, "schedules": 50, "bytes_per_day": None,
    }  # fmt: skip
    assert tenant.budget is not None
    assert (tenant.budget.budget, tenant.budget.cents, tenant.budget.alert) == ("50.00/day", 5000.0, 0.8)
    assert tenant.budget.ends_at - tenant.budget.starts_at == timedelta(days=1)
    cleared = await app.tenants.set("acme", budget=None, waiting=None)
    assert (cleared.budget, cleared.quotas[0].most, cleared.weight) == (None, None, 3.0)
    assert await app.tenants.get("acme") == cleared


async def test_a_rule_that_says_nothing_is_gone(app: Rota) -> None:
    await app.tenants.set("acme", weight=2)
    await app.tenants.set("acme", weight=None)
    with pytest.raises(
        NotFound, match="tenant 'acme' has no jobs, no schedules, no rule, no limit and no pause"
    ):
        await app.tenants.get("acme")
    await app.tenants.set("acme", waiting=0)
    await app.tenants.drop("acme")
    with pytest.raises(NotFound, match="tenant 'acme' has no rule"):
        await app.tenants.drop("acme")


async def test_several_who_change_one_rule_at_once_lose_nothing(app: Rota) -> None:
    await asyncio.gather(
        app.tenants.set("acme", weight=3),
        app.tenants.set("acme", waiting=7),
        app.tenants.set("acme", schedules=8),
        app.tenants.set("acme", budget="1/hour"),
    )
    tenant = await app.tenants.get("acme")
    assert tenant.weight == 3.0
    assert [quota.most for quota in tenant.quotas] == [7, 8, None]
    assert tenant.budget is not None and tenant.budget.budget == "1.00/hour"


async def test_the_list_has_shares_by_weight_and_what_each_has(app: Rota) -> None:
    for tenant in ("acme", "beta", "beta"):
        await enqueue(app, tenant)
    await enqueue(app, "later", delay=60)
    await app.tenants.set("beta", weight=3)
    await app.tenants.set("quiet", weight=2)
    found = {tenant.name: tenant async for tenant in app.tenants.list()}
    assert list(found) == ["acme", "beta", "later", "quiet"]
    assert {name: tenant.share for name, tenant in found.items()} == {
        "acme": 0.25, "beta": 0.75, "later": None, "quiet": None,
    }  # fmt: skip
    assert [tenant.waiting for tenant in found.values()] == [1, 2, 1, 0]


async def test_the_list_is_read_page_by_page(app: Rota, operations: Operations) -> None:
    for name in ("a", "b", "c"):
        await app.tenants.set(name, weight=2)
    first = await operations.tenants.list(TenantsRequest(limit=2))
    rest = await operations.tenants.list(TenantsRequest(limit=2, cursor=first.next))
    assert [one.name for one in (*first.items, *rest.items)] == ["a", "b", "c"]
    assert rest.next is None


async def test_the_limit_of_a_tenant_is_shown_with_it(app: Rota) -> None:
    from rota.model import Limit, LimitRule

    store = await app.stores.get()
    await store.put_rules([LimitRule(name="tenant:acme", chosen=Limit(running=20))], None)
    tenant = await app.tenants.set("acme", weight=2)
    assert tenant.limit is not None and (tenant.limit.running, tenant.limit.most) == (0, 20)


async def test_what_jobs_cost_counts_as_spent(app: Rota) -> None:
    @app.task
    async def ask(ctx: Context) -> None:
        ctx.cost(cents=12.5)

    await app.tenants.set("acme", budget="1.00/day", budget_alert=0.2)
    for _ in range(2):
        await app.enqueue("ask", tenant="acme")
    await drain(app)
    tenant = await app.tenants.get("acme")
    assert tenant.budget is not None
    assert (tenant.budget.spent, tenant.spent_cents, tenant.budget.level) == (25.0, 25.0, "alert")
    assert (tenant.done, tenant.cost_cents) == (2, 25.0)


async def test_spending_starts_again_with_the_period(app: Rota) -> None:
    @app.task
    async def ask(ctx: Context) -> None:
        ctx.cost(cents=100)

    clock = app.clock
    assert isinstance(clock, FakeClock)
    for period, seconds in (("hour", 3600), ("day", 86_400), ("week", 7 * 86_400), ("month", 32 * 86_400)):
        await app.tenants.set(period, budget=f"5.00/{period}")
        await app.enqueue("ask", tenant=period)
        await drain(app)
        assert (await app.tenants.get(period)).spent_cents == 100.0
        clock.advance(seconds)
        assert (await app.tenants.get(period)).spent_cents == 0.0


async def test_a_change_is_audited_with_before_and_after(app: Rota, operations: Operations) -> None:
    await operations.tenants.put("acme", PutTenantRequest(budget="50.00/day"))
    await operations.tenants.put("acme", PutTenantRequest(budget="50.00/day"))  # changes nothing
    await operations.tenants.put("acme", PutTenantRequest(weight=2))
    await operations.tenants.drop("acme")
    entries = (await operations.system.audit(AuditRequest(object="tenant:acme"))).items
    assert [(one.action, one.before, one.after) for one in entries] == [
        ("tenant.drop", {"weight": 2.0, "budget": "50.00/day"}, None),
        ("tenant.set", {"weight": 1.0, "budget": "50.00/day"}, {"weight": 2.0, "budget": "50.00/day"}),
        ("tenant.set", None, {"weight": 1.0, "budget": "50.00/day"}),
    ]
    assert {one.tenant for one in entries} == {"acme"}


async def test_a_tenant_sees_itself_only_and_cannot_raise_its_own_limits(app: Rota) -> None:
    await app.tenants.set("acme", waiting=5)
    await app.tenants.set("other", waiting=5)
    await enqueue(app, "acme")
    own = operations_of(app, "admin", "acme")
    assert [tenant.name for tenant in (await own.tenants.list(TenantsRequest())).items] == ["acme"]
    shown = await own.tenants.show("acme")
    assert (shown.quotas[0].most, shown.share) == (5, None)  # how many others wait is not its affair
    with pytest.raises(NotFound):
        await own.tenants.show("other")
    for call in (own.tenants.put("acme", PutTenantRequest(waiting=10**6)), own.tenants.drop("acme")):
        with pytest.raises(Forbidden):
            await call
    with pytest.raises(Forbidden):
        await operations_of(app, "viewer").tenants.put("acme", PutTenantRequest(weight=2))
    assert (await own.tenants.show("acme")).quotas[0].most == 5


async def test_bad_input_writes_nothing(app: Rota) -> None:
    with pytest.raises(OptionError, match="has no period; write an amount"):
        await app.tenants.set("acme", weight=2, budget="50.00")
    with pytest.raises(OptionError, match="did you mean weight"):
        await app.tenants.set("acme", wieght=2)  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="name=''"):
        await app.tenants.set("", weight=2)
    assert [tenant async for tenant in app.tenants.list()] == []


def test_sync_code_lists_tenants_too(store_url: str) -> None:
    app = Rota(store_url)
    app.tenants.set_sync("acme", weight=2)
    assert [(tenant.name, tenant.weight) for tenant in app.tenants.list_sync()] == [("acme", 2.0)]
    app.tenants.drop_sync("acme")
    app.close_sync()
