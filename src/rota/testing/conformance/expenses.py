"""What tenants spend: added up with the settlement that it belongs to, and with nothing else."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import get_args

from ...model import Period, RetentionCutoffs, State, TenantsInUse, TenantUse
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import ERROR, add, at, change, claimed, new, put_limit, put_tenant, running, want
from .rules import keeps

DAY_S = 86_400.0
LENGTH_S = {"hour": 3600.0, "day": DAY_S, "week": 7 * DAY_S, "month": 31 * DAY_S}

TURNS: dict[Period, datetime] = {
    "hour": datetime(2030, 3, 31, 2, tzinfo=UTC),  # when clocks change in parts of the world
    "day": datetime(2032, 2, 29, tzinfo=UTC),
    "week": datetime(2035, 1, 1, tzinfo=UTC),  # a Monday, and a year
    "month": datetime(2036, 3, 1, tzinfo=UTC),
}


async def in_use(store: Store, tenant: str, now: datetime) -> TenantUse:
    (use,) = await store.survey(TenantsInUse(now, (tenant,)))
    return use


class SpendingRules:
    @keeps(7)
    async def test_costs_are_added_up_by_tenant_whatever_the_outcome(self, store: Store) -> None:
        states = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.QUEUED)
        jobs = [await running(store, at(n), tenant="acme", queue=f"q{n}") for n in range(4)]
        other = await running(store, at(4), tenant="other", queue="q5")
        free = await running(store, at(5), tenant="acme", queue="q6")
        settled = [
            change(job, state, cost_cents=2.5, error_json=ERROR if state is State.FAILED else None)
            for job, state in zip(jobs, states, strict=True)
        ]
        settled += [change(other, State.SUCCEEDED, cost_cents=1.0), change(free, State.SUCCEEDED)]
        assert not await settle(store, settled, at(10))
        assert (await in_use(store, "acme", at(11))).spent == 10.0
        assert (await in_use(store, "other", at(11))).spent == 1.0

    @keeps(6)
    async def test_a_settlement_that_is_refused_costs_nothing(self, store: Store) -> None:
        job = await running(store, at(0), tenant="acme")
        once = change(job, State.SUCCEEDED, cost_cents=5.0)
        assert not await settle(store, [once], at(1))
        assert await settle(store, [once], at(2)) == {job.id}
        assert (await in_use(store, "acme", at(3))).spent == 5.0

    @keeps(11)
    async def test_spending_is_of_the_period_of_the_budget(self, store: Store) -> None:
        for period in get_args(Period):
            await put_tenant(store, period, budget=100.0, period=period)
            job = await running(store, at(0), tenant=period, queue=period)
            assert not await settle(store, [change(job, State.SUCCEEDED, cost_cents=5.0)], at(1))
            assert (await in_use(store, period, at(2))).spent == 5.0
            assert (await in_use(store, period, at(2 + LENGTH_S[period]))).spent == 0.0

    @keeps(26)
    async def test_a_budget_begins_again_with_the_first_instant_of_its_period_in_utc(
        self, store: Store
    ) -> None:
        for period, turn in TURNS.items():
            before, name = turn - timedelta(microseconds=1), f"of-{period}"
            await put_tenant(store, name, before, budget=5.0, period=period)
            job = await running(store, before, tenant=name, queue=period)
            assert not await settle(store, [change(job, State.SUCCEEDED, cost_cents=5.0)], before)
            next = new(tenant=name, queue=period)
            await add(store, next, now=before)
            assert (await in_use(store, name, before)).spent == 5.0
            assert not await claim(store, want(queues=(period,)), before)
            assert (await in_use(store, name, turn)).spent == 0.0
            await claimed(store, next.id, turn, queues=(period,))

    @keeps(12)
    async def test_upkeep_keeps_what_is_spent_in_the_current_periods(self, store: Store) -> None:
        await put_tenant(store, "acme", budget=100.0, period="month")
        for n in range(3):
            job = await running(store, at(n * DAY_S), tenant="acme", queue=f"q{n}")
            assert not await settle(store, [change(job, State.SUCCEEDED, cost_cents=5.0)], at(n * DAY_S))
        before = await in_use(store, "acme", at(2 * DAY_S + 1))
        await store.maintain(RetentionCutoffs(jobs={}), 100, at(2 * DAY_S + 2))
        after = await in_use(store, "acme", at(2 * DAY_S + 3))
        assert after == before
        assert after.spent > 0

    @keeps(11)
    async def test_a_tenants_waiting_jobs_are_counted_however_many_others_there_are(
        self, store: Store
    ) -> None:
        await add(store, *[new(tenant="other") for _ in range(20)])
        await add(store, *[new(tenant="acme", run_at=at(n * 1000)) for n in range(4)])
        await add(store, *[new() for _ in range(3)])
        found = await store.survey(TenantsInUse(at(1), ("acme", "default", "other"), 10))
        assert [(use.name, use.waiting) for use in found] == [("acme", 4), ("default", 3), ("other", 10)]

    @keeps(11)
    async def test_what_a_tenant_spent_is_known_without_counting_its_jobs(self, store: Store) -> None:
        job = await running(store, at(0), tenant="acme")
        assert not await settle(store, [change(job, State.SUCCEEDED, cost_cents=5.0)], at(1))
        await add(store, new(tenant="acme"))
        (use,) = await store.survey(TenantsInUse(at(2), ("acme",), 0))
        assert (use.waiting, use.running, use.spent) == (0, 0, 5.0)

    @keeps(11)
    async def test_jobs_of_a_tenant_that_run_do_not_count_as_waiting(self, store: Store) -> None:
        for tenant in ("other", "acme"):
            for n in range(3):
                await running(store, at(n), tenant=tenant)
        await add(store, new(tenant="acme"))
        for most in (1, 2, 10):
            (use,) = await store.survey(TenantsInUse(at(9), ("acme",), most))
            assert use.waiting == 1

    @keeps(11)
    async def test_a_tenants_waiting_jobs_are_counted_wherever_they_wait(self, store: Store) -> None:
        await put_limit(store, "key:full", running=1)
        jobs = [new()]  # of the default tenant, before there were others
        await add(store, *jobs)
        for n in range(60):
            job = new(
                tenant=("acme", "other", "default")[n % 3],
                queue=f"q{n % 4}",
                priority=n % 2,
                run_at=at(3600) if n % 5 == 0 else None,
                concurrency_key="full" if n % 7 == 0 else None,
            )
            await add(store, job)
            jobs.append(job)
        jobs += [new(tenant="bulk", queue=f"q{n % 4}") for n in range(80)]
        await add(store, *jobs[-80:])
        waiting = Counter(job.tenant for job in jobs)

        async def check(now: datetime) -> None:
            names = ("acme", "other", "bulk", "default", "none")
            for most in (1000, 3):
                found = await store.survey(TenantsInUse(now, names, most))
                assert {use.name: use.waiting for use in found} == {
                    name: min(most, waiting[name]) for name in names
                }

        await check(at(1))
        begun = await claim(store, want(40), at(1))  # most of the key are held from now on
        waiting.subtract(job.tenant for job in begun)
        await check(at(1))
        await settle(store, [change(job, State.QUEUED, run_at=at(60)) for job in begun[:20]], at(2))
        waiting.update(job.tenant for job in begun[:20])
        await check(at(2))
        waiting.subtract(job.tenant for job in await claim(store, want(100), at(7200)))
        await check(at(7200))
