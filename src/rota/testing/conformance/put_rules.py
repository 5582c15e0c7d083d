"""Rules of limits and tenants: compare and swap by name, and what is in use of them."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from msgspec.structs import replace

from ...model import (
    Limit,
    LimitRule,
    LimitRules,
    Limits,
    State,
    TenantRule,
    TenantRules,
    TenantsInUse,
    TenantUse,
    WaitingRetries,
    WaitingTenants,
)
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import T0, add, at, change, new, running, want
from .rules import keeps

FIVE = LimitRule(name="queue:mail", chosen=Limit(running=5))


class PutRulesRules:
    @keeps(14)
    async def test_a_new_rule_has_version_one(self, store: Store) -> None:
        declared = Limit(running=2, rate="10/m", burst=3, strict=True)
        assert await store.put_rules([replace(FIVE, declared=declared)], T0) == [1]
        (rule,) = await store.survey(LimitRules())
        assert rule == replace(FIVE, declared=declared, version=1, updated_at=T0)

    @keeps(14)
    async def test_a_rule_is_written_over_its_own_version_only(self, store: Store) -> None:
        assert await store.put_rules([FIVE], T0) == [1]
        assert await store.put_rules([FIVE], T0) == [None]
        assert await store.put_rules([replace(FIVE, chosen=Limit(running=6), version=1)], at(1)) == [2]
        assert await store.put_rules([replace(FIVE, version=1)], at(2)) == [None]
        (rule,) = await store.survey(LimitRules(("queue:mail",)))
        assert (rule.chosen, rule.version, rule.updated_at) == (Limit(running=6), 2, at(1))

    @keeps(14)
    async def test_a_rule_that_says_nothing_is_deleted(self, store: Store) -> None:
        await store.put_rules([FIVE, TenantRule(name="acme", weight=3)], T0)
        nothing = LimitRule(name="queue:mail", version=1)
        assert await store.put_rules([replace(nothing, version=7)], T0) == [None]
        assert await store.put_rules([nothing, TenantRule(name="acme", version=1)], T0) == [0, 0]
        assert list(await store.survey(LimitRules())) == []
        assert list(await store.survey(TenantRules())) == []
        assert await store.put_rules([LimitRule(name="queue:mail")], T0) == [0]

    @keeps(14)
    async def test_a_tenants_rule_comes_back_as_written(self, store: Store) -> None:
        acme = TenantRule(
            name="acme", weight=2.5, max_priority=-5, waiting=10**10, schedules=50, bytes_per_day=10**12,
            budget=5000.5, period="week", budget_alert=0.8, retention_days=14.5,
        )  # fmt: skip
        other = TenantRule(name="Zed", waiting=0)
        assert await store.put_rules([acme, other], T0) == [1, 1]
        assert list(await store.survey(TenantRules())) == [
            replace(other, version=1, updated_at=T0),
            replace(acme, version=1, updated_at=T0),
        ]
        assert await store.put_rules([replace(acme, weight=3.0, version=1)], at(1)) == [2]
        (stored,) = await store.survey(TenantRules(("acme", "none")))
        assert (stored.weight, stored.version, stored.updated_at) == (3.0, 2, at(1))

    @keeps(14)
    async def test_results_are_in_the_order_of_the_rules(self, store: Store) -> None:
        await store.put_rules([LimitRule(name="queue:b", chosen=Limit(running=1))], T0)
        names = ("task:z", "queue:b", "key:a*", "tenant:x")
        rules = [LimitRule(name=name, chosen=Limit(running=1)) for name in names]
        assert await store.put_rules(rules, T0) == [1, None, 1, 1]
        found = [rule.name for rule in await store.survey(LimitRules())]
        assert found == ["key:a*", "queue:b", "task:z", "tenant:x"]
        assert await store.put_rules([], T0) == []

    @keeps(14)
    async def test_of_many_writers_of_a_rule_with_one_version_one_wins(self, store: Store) -> None:
        await store.put_rules([FIVE], T0)
        rules = [replace(FIVE, chosen=Limit(running=n), version=1) for n in range(1, 9)]
        results = await asyncio.gather(*[store.put_rules([rule], T0) for rule in rules])
        assert sorted([result[0] for result in results], key=str) == [2, *[None] * 7]

    @keeps(11)
    async def test_jobs_that_run_are_counted_under_each_limit_they_are_under(self, store: Store) -> None:
        names = ("queue:mail", "task:work", "tenant:acme", "key:a")
        await store.put_rules([LimitRule(name=name, chosen=Limit(running=9)) for name in names], T0)
        job = await running(store, queue="mail", tenant="acme", concurrency_key="a")
        await running(store, queue="mail", concurrency_key="b")
        held = {one.name: one.running for one in await store.survey(Limits(T0))}
        assert held == {"key:a": 1, "queue:mail": 2, "task:work": 2, "tenant:acme": 1}
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        held = {one.name: one.running for one in await store.survey(Limits(at(1)))}
        assert held == {"key:a": 0, "queue:mail": 1, "task:work": 1, "tenant:acme": 0}

    @keeps(11)
    async def test_the_limit_set_at_run_time_is_shown_and_what_the_code_says(self, store: Store) -> None:
        code, chosen = Limit(running=2), Limit(rate="60/m", burst=4)
        rules = [
            LimitRule(name="queue:a", declared=code),
            LimitRule(name="queue:b", declared=code, chosen=chosen),
        ]
        await store.put_rules(rules, T0)
        a, b = await store.survey(Limits(T0))
        assert (a.most, a.source, a.declared, a.rule, a.tokens) == (2, "code", None, "queue:a", None)
        assert (b.most, b.rate, b.burst, b.source, b.declared) == (None, "60/m", 4, "run time", code)
        assert (b.tokens, b.next_token_at) == (4.0, None)

    @keeps(11)
    async def test_each_key_of_a_family_is_counted_alone_under_the_longest_prefix(self, store: Store) -> None:
        names = ("key:*", "key:account:*", "key:account:vip:*", "key:account:7")
        await store.put_rules([LimitRule(name=name, chosen=Limit(running=9)) for name in names], T0)
        for key in ("account:1", "account:1", "account:2", "account:7", "account:vip:1", "other"):
            await add(store, new(concurrency_key=key))
        assert len(await claim(store, want(), T0)) == 6
        held = {one.name: one for one in await store.survey(Limits(T0))}
        assert {name: one.running for name, one in held.items()} == {
            "key:*": 1, "key:account:*": 3, "key:account:7": 1, "key:account:vip:*": 1,
        }  # fmt: skip
        shown = [(key.name, key.running) for key in held["key:account:*"].keys]
        assert shown == [("key:account:1", 2), ("key:account:2", 1)]
        asked = ("key:account:1", "key:account:vip:9", "key:account:7", "queue:none")
        assert [(one.name, one.rule, one.running) for one in await store.survey(Limits(T0, asked))] == [
            ("key:account:1", "key:account:*", 2),
            ("key:account:7", "key:account:7", 1),
            ("key:account:vip:9", "key:account:vip:*", 0),
        ]

    @keeps(11)
    async def test_what_a_full_limit_holds_up_is_counted_by_lanes(self, store: Store) -> None:
        names = ("queue:mail", "tenant:acme", "key:account:*", "task:never")
        await store.put_rules([LimitRule(name=name, chosen=Limit(running=1)) for name in names], T0)
        assert {one.waiting_lanes for one in await store.survey(Limits(T0))} == {0}
        for fields in (
            {"queue": "mail"}, {"tenant": "acme"},
            {"concurrency_key": "account:1"}, {"concurrency_key": "account:2"},
        ):  # fmt: skip
            await add(store, new(**fields), new(**fields), new(**fields))
        assert len(await claim(store, want(limit=20), T0)) == 4
        assert not await claim(store, want(limit=20), T0)
        held = {one.name: one for one in await store.survey(Limits(T0))}
        assert {name: one.waiting_lanes for name, one in held.items()} == {
            "queue:mail": 1, "tenant:acme": 1, "key:account:*": 2, "task:never": 0,
        }  # fmt: skip
        assert [key.waiting_lanes for key in held["key:account:*"].keys] == [1, 1]

    @keeps(11)
    async def test_jobs_that_need_more_units_than_are_left_count_as_waiting(self, store: Store) -> None:
        await store.put_rules([LimitRule(name="key:openai", chosen=Limit(rate="1/h", burst=3))], T0)
        await add(store, *[new(concurrency_key="openai", units=2) for _ in range(3)])
        assert len(await claim(store, want(), T0)) == 1
        assert not await claim(store, want(), T0)
        (held,) = await store.survey(Limits(T0))
        assert (held.tokens, held.waiting_lanes) == (1.0, 1)

    @keeps(11)
    async def test_only_so_many_limits_are_shown_as_asked_for(self, store: Store) -> None:
        await store.put_rules([LimitRule(name=f"queue:{n}", chosen=Limit(running=1)) for n in range(5)], T0)
        assert [one.name for one in await store.survey(Limits(T0, most=2))] == ["queue:0", "queue:1"]

    @keeps(11)
    async def test_what_tenants_have_is_counted(self, store: Store) -> None:
        await running(store, tenant="acme", price=12.5)
        await add(
            store, new(tenant="acme"), new(tenant="acme", run_at=T0 + timedelta(days=9)), new(tenant="b")
        )
        (acme, none) = await store.survey(TenantsInUse(T0, ("none", "acme")))
        assert acme == TenantUse(name="acme", waiting=2, running=1, reserved=12.5)
        assert none == TenantUse(name="none")

    @keeps(11)
    async def test_tenants_with_live_jobs_are_found_by_name(self, store: Store) -> None:
        await running(store, tenant="b")
        await add(store, new(tenant="a"), new(tenant="a"), new(tenant="c"))
        done = await running(store, tenant="d", queue="other")
        await settle(store, [change(done, State.SUCCEEDED)], at(1))
        assert list(await store.survey(WaitingTenants())) == ["a", "b", "c"]
        assert list(await store.survey(WaitingTenants("a", 1))) == ["b"]

    @keeps(11)
    async def test_the_retries_that_a_key_waits_for_are_found(self, store: Store) -> None:
        for n, key in enumerate(("account:1", "account:1", "other")):
            ran = await running(store, queue=f"q{n}", concurrency_key=key)
            assert not await settle(store, [change(ran, State.QUEUED, run_at=at(90 - n))], at(1))
        await add(store, new(concurrency_key="account:1"))
        retries = await store.survey(WaitingRetries("account:1", 10))
        assert [(job.queue, job.run_at) for job in retries] == [("q1", at(89)), ("q0", at(90))]
        assert [job.queue for job in await store.survey(WaitingRetries("account:1"))] == ["q1"]
        assert list(await store.survey(WaitingRetries("account:2"))) == []
