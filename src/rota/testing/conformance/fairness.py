"""Tenants share a queue: by weight, each in its own order, and none is in the way of another."""

from __future__ import annotations

from collections import Counter

from ...model import Job
from ...store.calls import claim
from ...store.protocol import Store
from .factories import T0, add, at, finish, ids, new, put_limit, put_tenant, want
from .rules import keeps


class FairnessRules:
    @keeps(24)
    async def test_a_queue_with_one_tenant_keeps_its_exact_order(self, store: Store) -> None:
        jobs = [new(tenant="acme", priority=n % 3, run_at=at(n % 7)) for n in range(60)]
        await add(store, *jobs)
        expected = [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))]
        taken: list[str] = []
        while batch := await claim(store, want(7), at(10)):
            taken += ids(batch)
        assert taken == expected

    @keeps(24)
    async def test_every_tenant_keeps_its_own_order_and_nothing_is_left_over(self, store: Store) -> None:
        jobs = [
            new(tenant="abcd"[n * n % 4], priority=n % 2, run_at=at(n % 5), task=f"t{n % 3}")
            for n in range(80)
        ]
        await add(store, *jobs)
        waiting = sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))
        while waiting:
            taken = await claim(store, want(9), at(10))
            assert len(taken) == min(9, len(waiting))
            assert [job.priority for job in taken] == [job.priority for job in waiting[: len(taken)]]
            for tenant in "abcd":
                own = [job.id for job in taken if job.tenant == tenant]
                assert own == [job.id for job in waiting if job.tenant == tenant][: len(own)]
            waiting = [job for job in waiting if job.id not in ids(taken)]

    @keeps(24)
    async def test_a_hundred_that_come_later_do_not_wait_for_the_one_with_many(self, store: Store) -> None:
        await add(store, *[new(tenant="hot") for _ in range(1500)])
        await add(store, *[new(tenant=f"t{n}") for n in range(100)], now=at(1))
        served: list[str] = []
        while len(served) < 200:  # twice their share, in claims of ten
            taken = await claim(store, want(10), at(2))
            assert len(taken) == 10
            served += [job.tenant for job in taken]
            await finish(store, *taken, now=at(2))
        assert set(served) == {"hot", *[f"t{n}" for n in range(100)]}
        assert len(await claim(store, want(200), at(3))) == 200  # the one still gets all the rest

    @keeps(24)
    async def test_they_do_not_wait_either_if_they_come_one_by_one(self, store: Store) -> None:
        await add(store, *[new(tenant="hot") for _ in range(300)])
        for n in range(10):
            late = new(tenant=f"late{n}")
            await add(store, late, now=at(n))
            taken: list[str] = []
            for _ in range(4):
                taken += ids(await claim(store, want(2), at(n)))
            assert late.id in taken

    @keeps(24)
    async def test_the_default_tenant_does_not_wait_for_another_with_many(self, store: Store) -> None:
        await add(store, *[new(tenant="hot") for _ in range(500)])
        late = new()
        await add(store, late, now=at(1))
        taken: list[str] = []
        for _ in range(4):
            taken += ids(await claim(store, want(4), at(2)))
        assert late.id in taken

    @keeps(24)
    async def test_weights_decide_under_overload(self, store: Store) -> None:
        await put_tenant(store, "b", weight=3.0)
        await add(store, *[new(tenant="a") for _ in range(400)])
        await add(store, *[new(tenant="b") for _ in range(400)], now=at(1))
        served: Counter[str] = Counter()
        for _ in range(25):
            taken = await claim(store, want(16), at(2))
            served.update(job.tenant for job in taken)
            await finish(store, *taken, now=at(2))
        assert served.total() == 400
        assert abs(served["b"] - 300) <= 45

    @keeps(24)
    async def test_weights_decide_in_large_claims_behind_a_crowd(self, store: Store) -> None:
        await put_tenant(store, "c", weight=3.0)
        await add(store, *[new(tenant="a") for _ in range(2000)])
        await add(store, *[new(tenant="bc"[n % 2]) for n in range(2000)], now=at(1))
        taken = Counter[str]()
        for _ in range(4):
            taken.update(await self._run_some(store, 300))
        assert abs(taken["a"] - 240) < 36
        assert abs(taken["b"] - 240) < 36
        assert abs(taken["c"] - 720) < 108

    @keeps(24)
    async def test_weights_decide_in_small_claims_behind_a_crowd(self, store: Store) -> None:
        await put_tenant(store, "c", weight=3.0)
        await add(store, *[new(tenant="a") for _ in range(500)])
        await add(store, *[new(tenant="bc"[n % 2]) for n in range(500)], now=at(1))
        taken = Counter[str]()
        for _ in range(30):
            taken.update(await self._run_some(store, 10))
        assert abs(taken["a"] - 60) < 9
        assert abs(taken["b"] - 60) < 9
        assert abs(taken["c"] - 180) < 27

    async def _run_some(self, store: Store, limit: int) -> list[str]:
        """Claim and finish jobs; their tenants."""
        jobs = await claim(store, want(limit), at(2))
        await finish(store, *jobs, now=at(2))
        return [job.tenant for job in jobs]

    @keeps(24)
    async def test_weights_decide_among_more_tenants_than_a_claim_has_jobs(self, store: Store) -> None:
        names = [f"t{n}" for n in range(100)]
        weights = dict.fromkeys(names[::10], 5.0) | dict.fromkeys(names[5::10], 0.2)
        for name, weight in weights.items():
            await put_tenant(store, name, weight=weight)
        await add(store, *[new(tenant=name) for _ in range(50) for name in names])
        served: Counter[float] = Counter()
        jobs = 1280
        for n in range(jobs // 16):
            taken = await claim(store, want(16), at(1 + n))
            assert len(taken) == 16
            served.update(weights.get(job.tenant, 1.0) for job in taken)
            await finish(store, *taken, now=at(1 + n))
        for weight, tenants in ((5.0, 10), (1.0, 80), (0.2, 10)):
            due = jobs * weight * tenants / (5.0 * 10 + 1.0 * 80 + 0.2 * 10)
            assert abs(served[weight] - due) <= max(0.15 * due, 8), (weight, served)

    @keeps(24)
    async def test_weights_decide_in_each_of_several_queues(self, store: Store) -> None:
        names = [f"t{n}" for n in range(60)]
        heavy = set(names[::6])
        for name in heavy:
            await put_tenant(store, name, weight=5.0)
        for queue in ("a", "c"):
            await add(store, *[new(queue=queue, tenant=name) for _ in range(30) for name in names])
        await add(store, *[new(queue="b", tenant="many") for _ in range(600)])
        await add(store, *[new(queue="b", tenant="few") for _ in range(300)])
        served: Counter[tuple[str, bool]] = Counter()
        for n in range(20):
            taken = await claim(store, want(48), at(1 + n))
            served.update((job.queue, job.tenant in heavy or job.tenant == "few") for job in taken)
            await finish(store, *taken, now=at(1 + n))
        assert [served[queue, True] + served[queue, False] for queue in "abc"] == [320] * 3
        for queue in ("a", "c"):  # ten weigh 5, fifty weigh 1
            assert abs(served[queue, True] - 160) <= 24, served
        assert abs(served["b", True] - 160) <= 24, served

    @keeps(24)
    async def test_where_tenants_take_turns_none_has_every_slot(self, store: Store) -> None:
        names = [f"t{n}" for n in range(30)]
        await put_tenant(store, "t3", weight=9.0)
        await add(store, *[new(tenant=name) for _ in range(20) for name in names])
        for _ in range(40):  # of t3 the worker has as many in hand as it is due: four of the sixteen
            taken = await claim(store, want(4, holds=(("t3", 4), ("t5", 1), ("t6", 1))), at(2))
            assert len(taken) == 4
            assert not {"t3", "t5", "t6"} & {job.tenant for job in taken}

    @keeps(24)
    async def test_what_the_worker_has_in_hand_counts_as_served(self, store: Store) -> None:
        await add(store, *[new(tenant="slow") for _ in range(50)])
        await add(store, *[new(tenant="quick") for _ in range(50)], now=at(1))
        taken = await claim(store, want(4, holds=(("slow", 8),)), at(2))
        assert Counter(job.tenant for job in taken) == {"quick": 4}
        taken = await claim(store, want(4, holds=(("slow", 2), ("quick", 2))), at(2))
        assert Counter(job.tenant for job in taken) == {"slow": 2, "quick": 2}

    @keeps(24)
    async def test_what_one_does_not_use_the_others_get(self, store: Store) -> None:
        await put_tenant(store, "rich", weight=50.0)
        await add(store, new(tenant="rich"), *[new(tenant="a") for _ in range(50)])
        taken = await claim(store, want(20), at(1))
        assert Counter(job.tenant for job in taken) == {"rich": 1, "a": 19}

    @keeps(24)
    async def test_a_higher_priority_goes_first_across_tenants(self, store: Store) -> None:
        await add(store, *[new(tenant="a") for _ in range(20)])
        urgent = [new(tenant="b", priority=1) for _ in range(8)]
        await add(store, *urgent, now=at(1))
        taken = await claim(store, want(10), at(2))
        assert ids(taken)[:8] == [job.id for job in urgent]

    @keeps(24)
    async def test_tenants_in_several_queues_share_each_of_them(self, store: Store) -> None:
        for queue in "xy":
            await add(store, *[new(queue=queue, tenant="a") for _ in range(60)])
            await add(store, *[new(queue=queue, tenant="b") for _ in range(60)], now=at(1))
        served: Counter[tuple[str, str]] = Counter()
        for _ in range(5):
            taken = await claim(store, want(16), at(2))
            served.update((job.queue, job.tenant) for job in taken)
        assert served.total() == 80
        assert all(17 <= served[queue, tenant] <= 23 for queue in "xy" for tenant in "ab")


class HeldLaneRules:
    @keeps(25)
    async def test_behind_thousands_of_a_paused_tenant_the_next_job_is_found(self, store: Store) -> None:
        await add(store, *[new(tenant="x", priority=1) for _ in range(3000)])
        other = new(tenant="y")
        await add(store, other)
        taken: list[str] = []
        for turn in range(1, 10):
            taken += ids(await claim(store, want(1, exclude_tenants=("x",)), at(turn)))
        assert taken == [other.id]

    @keeps(25)
    async def test_behind_thousands_of_an_unknown_task_the_next_job_is_found(self, store: Store) -> None:
        await add(store, *[new(task="unknown", priority=1) for _ in range(3000)])
        other = new()
        await add(store, other)
        taken: list[str] = []
        for turn in range(1, 10):
            taken += ids(await claim(store, want(1, tasks=("work",)), at(turn)))
        assert taken == [other.id]
        assert len(await claim(store, want(40, tasks=("unknown",)), at(20))) == 40

    @keeps(25)
    async def test_held_jobs_begin_beside_a_trickle_that_never_fills_a_claim(self, store: Store) -> None:
        await put_limit(store, "key:slow", rate="1/s", burst=1)
        await add(store, *[new(concurrency_key="slow") for _ in range(5)])
        began: list[float] = []
        for n in range(80):
            await add(store, new(), now=at(n / 20))
            taken = await claim(store, want(50), at(n / 20))
            began += [n / 20 for job in taken if job.concurrency_key == "slow"]
            await finish(store, *taken, now=at(n / 20))
        assert len(began) == 4
        assert all(late < n + 0.2 for n, late in enumerate(began))

    @keeps(25)
    async def test_what_could_begin_is_found_behind_jobs_of_a_full_key_in_the_lane_of_its_tenant(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:full", running=1)
        await add(store, new(concurrency_key="full"))
        await claim(store, want(), at(0))
        blocked = [new(tenant="acme", concurrency_key="full") for _ in range(1000)]
        free = [new(tenant="acme") for _ in range(3)]
        await add(store, *blocked)
        await add(store, *free, now=at(1))
        for turn in range(30):  # while the tenant is paused
            await add(store, new(tenant="b"), now=at(1))
            await claim(store, want(10, exclude_tenants=("acme",)), at(2 + turn))
        taken: list[str] = []
        for _ in range(100):
            found = await store.turn([], want(10), at(40))
            taken += ids(found.jobs)
            if found.next_due_at is None or found.next_due_at > at(40):
                break
        assert taken == [job.id for job in free]

    @keeps(24)
    async def test_who_comes_alone_does_not_wait_for_all_that_was_held_of_a_resumed_tenant(
        self, store: Store
    ) -> None:
        await add(store, *[new(tenant="paused") for _ in range(1500)])
        for turn in range(12):
            await add(store, new(tenant="b"))
            await claim(store, want(10, exclude_tenants=("paused",)), at(turn))
        late = new(tenant="late")
        await add(store, late, now=at(20))
        taken: list[str] = []
        for turn in range(2):
            taken += ids(await claim(store, want(100), at(30 + turn / 100)))
        assert late.id in taken

    @keeps(24)
    async def test_later_jobs_of_the_default_tenant_do_not_wait_for_tenants_that_came_meanwhile(
        self, store: Store
    ) -> None:
        await add(store, *[new(run_at=at(1)) for _ in range(20)])
        await add(store, *[new(tenant="acme") for _ in range(1500)])
        taken: list[str] = []
        for _ in range(6):
            jobs = await claim(store, want(10), at(2))
            taken += [job.tenant for job in jobs]
            await finish(store, *jobs, now=at(2))
        assert taken.count("default") == 20

    @keeps(25)
    async def test_after_a_pause_jobs_come_in_their_exact_order(self, store: Store) -> None:
        jobs = [new(tenant="x", priority=n % 3, task=f"t{n % 4}") for n in range(90)]
        await add(store, *jobs[:60])
        for turn in range(3):
            assert list(await claim(store, want(7, exclude_tenants=("x",)), at(turn))) == []
        await add(store, *jobs[60:], now=at(5))
        expected = sorted(jobs[:60], key=lambda job: (-job.priority, job.id))
        expected += jobs[60:]
        expected.sort(key=lambda job: -job.priority)
        taken: list[str] = []
        while batch := await claim(store, want(8), at(6)):
            taken += ids(batch)
        assert taken == [job.id for job in expected]

    @keeps(25)
    async def test_a_paused_task_in_a_lane_holds_up_no_other_task_of_it(self, store: Store) -> None:
        await add(store, *[new(tenant="x", task="a") for _ in range(40)], new(tenant="x", task="b"))
        assert list(await claim(store, want(exclude_tenants=("x",)), at(1))) == []
        taken = await claim(store, want(tasks=("b",)), at(2))
        assert [job.task for job in taken] == ["b"]
        assert len(await claim(store, want(50), at(3))) == 40

    @keeps(25)
    async def test_a_limit_a_pause_and_an_unknown_task_at_once_hold_up_nothing_else(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:full", running=1)
        await put_limit(store, "tenant:small", running=1)
        blocked = [{"tenant": "x"}, {"task": "unknown"}, {"concurrency_key": "full"}, {"tenant": "small"}]
        await add(store, *[new(priority=2, **blocked[n % 4]) for n in range(400)])
        await add(store, *[new() for _ in range(30)])
        taken: list[Job] = []
        for turn in range(1, 30):
            taken += await claim(store, want(3, tasks=("work",), exclude_tenants=("x",)), at(turn))
        kinds = Counter((job.tenant, job.concurrency_key, job.task) for job in taken)
        assert kinds == {
            ("default", None, "work"): 30,
            ("default", "full", "work"): 1,
            ("small", None, "work"): 1,
        }

    @keeps(25)
    async def test_many_full_lanes_are_passed_a_part_at_a_time(self, store: Store) -> None:
        await put_limit(store, "key:*", running=1)
        keys = [f"k{n}" for n in range(300)]
        await add(store, *[new(concurrency_key=key) for key in keys for _ in range(2)])
        running = [job for _ in range(4) for job in await claim(store, want(100), at(1))]
        assert len(running) == 300
        await finish(store, running[170], now=at(2))
        taken: list[Job] = []
        for turn in range(3, 9):  # another worker finds the slot
            taken += await claim(store, want(20, worker="w2"), at(turn))
        assert [job.concurrency_key for job in taken] == [running[170].concurrency_key]


class BudgetRules:
    @keeps(26)
    async def test_nothing_begins_beyond_the_budget_until_the_period_ends(self, store: Store) -> None:
        await put_tenant(store, "acme", budget=100.0, period="hour")
        jobs = [new(tenant="acme") for _ in range(4)]
        await add(store, *jobs, new(tenant="other"))
        first = await claim(store, want(2), at(1))
        await finish(store, *[job for job in first if job.tenant == "acme"], now=at(2), cost_cents=120.0)
        rest = await claim(store, want(), at(3))
        assert {job.tenant for job in rest} <= {"other"}
        result = await store.turn([], want(), at(4))
        assert list(result.jobs) == []
        assert result.next_due_at == at(3600)  # T0 is on the hour
        assert {job.tenant for job in await claim(store, want(), at(3600))} == {"acme"}

    @keeps(26)
    async def test_a_raised_budget_lets_the_tenant_go_on_in_order(self, store: Store) -> None:
        await put_tenant(store, "acme", budget=10.0, period="month")
        jobs = [new(tenant="acme") for _ in range(5)]
        await add(store, *jobs)
        (first,) = await claim(store, want(1), T0)
        await finish(store, first, now=at(1), cost_cents=10.0)
        assert list(await claim(store, want(), at(2))) == []
        await put_tenant(store, "acme", at(3), budget=20.0, period="month")
        assert ids(await claim(store, want(), at(4))) == [job.id for job in jobs[1:]]

    @keeps(26)
    async def test_prices_of_what_runs_are_reserved(self, store: Store) -> None:
        await put_tenant(store, "acme", budget=100.0, period="day")
        await add(store, *[new(tenant="acme", price=40.0) for _ in range(4)])
        first = await claim(store, want(), T0)
        assert len(first) == 2
        assert list(await claim(store, want(), at(1))) == []
        await finish(store, first[0], now=at(2), cost_cents=10.0)
        assert len(await claim(store, want(), at(3))) == 1  # 10 spent, 40 reserved
        assert list(await claim(store, want(), at(4))) == []

    @keeps(26)
    async def test_a_budget_is_of_one_tenant_alone(self, store: Store) -> None:
        await put_tenant(store, "poor", budget=1.0, period="week")
        await add(store, *[new(tenant="poor", price=2.0) for _ in range(50)])
        others = [new(tenant="rich", price=99.0) for _ in range(5)]
        await add(store, *others, now=at(1))
        assert ids(await claim(store, want(), at(2))) == [job.id for job in others]
