"""Limits on what runs at once: never one too many, whatever the limit is for, and no other job is delayed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from ...core.jobs import lifecycle
from ...model import Job, Limits, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import (
    ERROR,
    T0,
    add,
    at,
    change,
    finish,
    found,
    ids,
    new,
    put_limit,
    put_tenant,
    record,
    release,
    want,
)
from .rules import keeps


class RunningLimitRules:
    @pytest.mark.parametrize("name", ["queue:q", "task:work", "tenant:acme", "key:k", "key:*"])
    @keeps(22)
    async def test_no_more_than_the_limit_run_at_once(self, store: Store, name: str) -> None:
        await put_limit(store, name, running=2)
        jobs = [new(queue="q", tenant="acme", concurrency_key="k") for _ in range(5)]
        await add(store, *jobs)
        first = await claim(store, want(), at(1))
        assert ids(first) == [job.id for job in jobs[:2]]
        assert list(await claim(store, want(worker="w2"), at(2))) == []
        await finish(store, first[0], now=at(3))
        third = await claim(store, want(), at(3))
        assert ids(third) == [jobs[2].id]
        await finish(store, first[1], *third, now=at(4))
        assert ids(await claim(store, want(), at(4))) == [job.id for job in jobs[3:]]

    @keeps(22)
    async def test_a_full_limit_delays_only_the_jobs_under_it(self, store: Store) -> None:
        await put_limit(store, "task:slow", running=1)
        await add(store, *[new(task="slow", priority=5) for _ in range(50)])
        others = [new() for _ in range(3)]
        await add(store, *others, now=at(1))
        taken = await claim(store, want(4), at(2))
        assert [job.task for job in taken] == ["slow", "work", "work", "work"]
        assert ids(taken)[1:] == [job.id for job in others]

    @keeps(22)
    async def test_each_key_of_a_family_has_the_limit_on_its_own(self, store: Store) -> None:
        await put_limit(store, "key:account:*", running=1)
        keys = ["account:1", "account:1", "account:2", "other", "other", None, None]
        await add(store, *[new(concurrency_key=key) for key in keys])
        taken = await claim(store, want(), at(1))
        expected = {"account:1": 1, "account:2": 1, "other": 2, None: 2}
        assert Counter(job.concurrency_key for job in taken) == expected

    @keeps(22)
    async def test_of_several_families_the_longest_holds_and_a_keys_own_rule_before_all(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:*", running=1)
        await put_limit(store, "key:a:*", running=2)
        await put_limit(store, "key:a:b:*", running=3)
        await put_limit(store, "key:a:b:own", running=4)
        most = {"x": 1, "a:1": 2, "a:b:1": 3, "a:b:own": 4}
        await add(store, *[new(concurrency_key=key) for key in most for _ in range(6)])
        taken = await claim(store, want(50), at(1))
        assert Counter(job.concurrency_key for job in taken) == most

    @keeps(22)
    async def test_a_key_is_counted_over_all_queues_tasks_and_tenants(self, store: Store) -> None:
        await put_limit(store, "key:k", running=2)
        kinds = [{"queue": "a"}, {"queue": "b"}, {"tenant": "x"}, {"task": "other"}]
        await add(store, *[new(concurrency_key="k", **kind) for kind in kinds])
        assert len(await claim(store, want(), at(1))) == 2
        assert list(await claim(store, want(), at(2))) == []

    @keeps(22)
    async def test_a_job_begins_only_if_all_its_limits_admit_it(self, store: Store) -> None:
        for name, most in (("queue:q", 6), ("task:work", 5), ("tenant:acme", 4), ("key:*", 2)):
            await put_limit(store, name, running=most)
        fields = [(queue, tenant, key) for queue in "qr" for tenant in ("acme", "b") for key in "12345"]
        jobs = [new(queue=q, tenant=t, concurrency_key=k) for q, t, k in fields for _ in range(2)]
        await add(store, *jobs)
        running: list[Job] = []
        done = 0
        for turn in range(1, 60):
            running += await claim(store, want(3), at(turn))
            assert sum(job.queue == "q" for job in running) <= 6
            assert len(running) <= 5
            assert sum(job.tenant == "acme" for job in running) <= 4
            assert max(Counter(job.concurrency_key for job in running).values(), default=0) <= 2
            if turn % 2:
                await finish(store, *running[:2], now=at(turn))
                done += len(running[:2])
                del running[:2]
        assert done + len(running) == len(jobs)

    @keeps(22)
    async def test_jobs_that_run_before_the_limit_is_set_count(self, store: Store) -> None:
        await add(store, *[new(queue="q", tenant="acme", concurrency_key="k") for _ in range(6)])
        running = list(await claim(store, want(3), T0))
        for name in ("queue:q", "task:work", "tenant:acme", "key:k"):
            await put_limit(store, name, at(1), running=4)
        running += await claim(store, want(), at(2))
        assert len(running) == 4
        assert list(await claim(store, want(), at(3))) == []

    @pytest.mark.parametrize("name", ["queue:q", "tenant:acme", "key:k"])
    @keeps(22)
    async def test_under_a_lowered_limit_nothing_begins_until_the_count_is_below(
        self, store: Store, name: str
    ) -> None:
        await put_limit(store, name, running=4)
        await add(store, *[new(queue="q", tenant="acme", concurrency_key="k") for _ in range(9)])
        running = list(await claim(store, want(), T0))
        assert len(running) == 4
        await put_limit(store, name, at(1), running=2)
        for turn in range(2, 5):
            await finish(store, running.pop(0), now=at(turn))
            running += await claim(store, want(), at(turn))
            assert len(running) == max(2, 5 - turn)

    @pytest.mark.parametrize("name", ["queue:q", "task:work", "tenant:acme", "key:k", "key:*"])
    @keeps(22)
    async def test_what_a_dropped_limit_held_up_begins_in_its_old_order(
        self, store: Store, name: str
    ) -> None:
        await put_limit(store, name, running=1)
        jobs = [new(queue="q", tenant="acme", concurrency_key="k", priority=n % 3) for n in range(40)]
        await add(store, *jobs)
        waiting = sorted(jobs, key=lambda job: (-job.priority, job.id))
        for turn in range(3):  # met, and held up
            taken = await claim(store, want(), at(turn))
            assert ids(taken) == ([waiting[0].id] if turn == 0 else [])
        await put_limit(store, name, at(3))
        rest: list[str] = []
        while batch := await claim(store, want(7), at(4)):
            rest += ids(batch)
        assert rest == [job.id for job in waiting[1:]]

    @keeps(22)
    async def test_the_end_of_a_job_in_any_way_frees_its_slot(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        jobs = [new(concurrency_key="k") for _ in range(6)]
        await add(store, *jobs)
        ways = [State.SUCCEEDED, State.FAILED, State.CANCELLED]
        for turn, state in enumerate(ways):
            (job,) = await claim(store, want(), at(turn))
            error = None if state is State.SUCCEEDED else ERROR
            await settle(store, [change(job, state, error_json=error)], at(turn))
        (job,) = await claim(store, want(lease_s=5.0), at(10))
        (lost,) = await store.reclaim("rescuer", 30.0, 10, at(20))
        assert list(await claim(store, want(), at(20))) == []  # still running, in other hands
        await settle(store, [change(lost, State.FAILED, worker="rescuer", error_json=ERROR)], at(21))
        (job,) = await claim(store, want(), at(22))
        await settle(store, [change(job, State.SUCCEEDED, remove=True)], at(23))
        assert ids(await claim(store, want(), at(24))) == [jobs[5].id]
        (held,) = await store.survey(Limits(at(24), ("key:k",)))
        assert held.running == 1

    @keeps(22)
    async def test_settling_and_claiming_in_one_turn_fills_the_slot(self, store: Store) -> None:
        await put_limit(store, "key:*", running=1)
        await add(store, *[new(concurrency_key=f"k{n % 30}") for n in range(90)])
        running = list(await claim(store, want(50), at(1)))
        assert len(running) == 30
        for turn in range(2, 32):
            job = running.pop(0)
            result = await store.turn([change(job, State.SUCCEEDED)], want(50), at(turn))
            assert [one.concurrency_key for one in result.jobs] == [job.concurrency_key]
            running += result.jobs

    @keeps(22)
    async def test_jobs_under_a_limit_are_claimed_for_free_slots_only(self, store: Store) -> None:
        await put_limit(store, "task:slow", running=9)
        await put_limit(store, "key:k", rate="100/s", burst=40)  # less than it gives in half a second
        await add(store, *[new(task="slow") for _ in range(5)], *[new(concurrency_key="k") for _ in range(5)])
        plain = [new(task="plain") for _ in range(5)]
        await add(store, *plain)
        taken = await claim(store, want(12, free=3), at(1))
        assert sum(job.task != "plain" for job in taken) == 3
        assert list(await claim(store, want(12, free=0, tasks=("slow", "work")), at(2))) == []
        assert len(await claim(store, want(12, tasks=("slow", "work")), at(3))) == 7

    @keeps(22)
    @pytest.mark.parametrize(
        ("name", "limit"),
        [
            ("queue:default", {"running": 40}),
            ("tenant:default", {"running": 40}),
            ("key:*", {"running": 2}),
            ("key:*", {"rate": "1/s", "burst": 9}),
        ],
    )
    async def test_jobs_under_limits_that_are_far_from_full_are_claimed_ahead(
        self, store: Store, name: str, limit: dict[str, Any]
    ) -> None:
        await put_limit(store, name, **limit)
        await add(store, *[new(concurrency_key=f"k{n}") for n in range(24)])
        assert len(await claim(store, want(12, free=0), at(1))) == 12
        assert len(await claim(store, want(12, free=3), at(2))) == 12

    @keeps(22)
    async def test_what_claims_ahead_leave_of_a_limit_is_for_free_slots(self, store: Store) -> None:
        await put_limit(store, "queue:default", running=20)
        await add(store, *[new() for _ in range(40)])
        ahead = len(await claim(store, want(12, free=0), at(1)))
        assert ahead <= 8
        assert list(await claim(store, want(12, free=0), at(2))) == []
        assert len(await claim(store, want(12, free=3), at(3))) == 3

    @keeps(22)
    async def test_a_row_without_a_limit_in_force_holds_nothing_up(self, store: Store) -> None:
        await put_limit(store, "queue:elsewhere", running=1)
        await put_limit(store, "key:other:*", running=1)
        await add(store, *[new(concurrency_key="k") for _ in range(5)])
        assert len(await claim(store, want(), at(1))) == 5


class LimitOrderRules:
    @keeps(22)
    async def test_jobs_of_a_serial_key_run_in_order(self, store: Store) -> None:
        await put_limit(store, "key:*", running=1)
        jobs = [
            new(concurrency_key=f"k{n % 3}", priority=n % 2, run_at=at(n % 5), tenant=f"t{n % 3}")
            for n in range(36)
        ]
        await add(store, *jobs[:20])
        expected = sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))
        seen: list[str] = []
        for turn in range(40):
            if turn == 5:
                await add(store, *jobs[20:], now=at(5))
                seen_before = set(seen)
            taken = await claim(store, want(5), at(6))
            assert len({job.concurrency_key for job in taken}) == len(taken)
            await finish(store, *taken, now=at(6))
            seen += ids(taken)
        assert len(seen) == 36
        for key in ("k0", "k1", "k2"):
            late = [job.id for job in expected if job.concurrency_key == key and job.id not in seen_before]
            of_key = {job.id for job in jobs if job.concurrency_key == key}
            assert [one for one in seen if one in of_key and one not in seen_before] == late

    @keeps(22)
    async def test_a_job_with_a_better_place_goes_before_those_that_are_held(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        jobs = [new(concurrency_key="k") for _ in range(4)]
        await add(store, *jobs)
        (first,) = await claim(store, want(), at(1))
        assert list(await claim(store, want(), at(1))) == []
        urgent = new(concurrency_key="k", priority=9)
        await add(store, urgent, now=at(2))
        order = [first.id]
        for turn in range(3, 7):
            await finish(store, first, now=at(turn))
            (first,) = await claim(store, want(), at(turn))
            order.append(first.id)
        assert order == [jobs[0].id, urgent.id, *[job.id for job in jobs[1:]]]

    @keeps(22)
    async def test_a_job_that_another_limit_holds_up_is_not_overtaken_by_its_key(self, store: Store) -> None:
        await put_limit(store, "key:*", running=1)
        await put_limit(store, "task:narrow", running=1)
        await add(store, new(task="narrow"))
        (holder,) = await claim(store, want(), at(1))
        first, second = new(task="narrow", concurrency_key="k"), new(concurrency_key="k")
        await add(store, first, second, now=at(2))
        for turn in range(3, 6):
            assert list(await claim(store, want(), at(turn))) == []
        await finish(store, holder, now=at(6))
        (taken,) = await claim(store, want(), at(7))
        assert taken.id == first.id
        await finish(store, taken, now=at(8))
        assert ids(await claim(store, want(), at(9))) == [second.id]

    @keeps(22)
    async def test_a_key_keeps_its_order_across_tasks_and_priorities_where_its_jobs_are_held(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:*", running=1)
        keys = [*[f"a{n:02}" for n in range(15)], "k"]
        await add(store, *[new(concurrency_key=key) for key in keys])
        held = await claim(store, want(50), at(1))
        await add(store, *[new(task="a", concurrency_key=key) for key in keys[:-1]], now=at(2))
        first, second = new(task="b", concurrency_key="k", priority=1), new(task="a", concurrency_key="k")
        await add(store, first, second, now=at(3))
        assert list(await claim(store, want(50), at(4))) == []
        await add(store, *[new(task="c") for _ in range(50)], now=at(5))
        await finish(store, *[job for job in held if job.concurrency_key == "k"], now=at(6))
        begun: list[str] = []
        for turn in range(7, 12):
            begun += [job.id for job in await claim(store, want(5), at(turn)) if job.concurrency_key == "k"]
        assert begun == [first.id]

    @keeps(22)
    async def test_a_job_whose_tenant_is_held_up_does_not_keep_the_key_from_another_tenant(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:*", running=1)
        await put_tenant(store, "acme", budget=100.0, period="month")
        dear, other = (
            new(tenant="acme", concurrency_key="k", price=150.0),
            new(tenant="b", concurrency_key="k"),
        )
        await add(store, dear, other)
        taken = list(await claim(store, want(), at(1)))
        taken += await claim(store, want(), at(2))
        assert ids(taken) == [other.id]

    @keeps(22)
    async def test_a_strict_key_with_more_places_goes_on_as_soon_as_its_retry_has_begun(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:k", running=2, strict=True)
        jobs = [new(concurrency_key="k") for _ in range(3)]
        await add(store, *jobs)
        first, second = await claim(store, want(), at(1))
        failed = change(first, State.QUEUED, record=record(first, "failed", at(2)))
        await settle(store, [failed, change(second, State.SUCCEEDED)], at(2))
        begun: list[str] = []
        for _ in range(3):
            found = await store.turn([], want(), at(3))
            begun += ids(found.jobs)
            if found.next_due_at is None or found.next_due_at > at(3):
                break
        assert set(begun) == {first.id, jobs[2].id}

    @keeps(22)
    async def test_jobs_that_a_full_limit_holds_up_take_no_place_of_another_limit(self, store: Store) -> None:
        await put_limit(store, "task:work", running=4)
        await put_limit(store, "tenant:x", running=1)
        await add(store, new(tenant="x"))
        assert len(await claim(store, want(), at(1))) == 1
        await add(store, *[new(tenant="x") for _ in range(20)], now=at(2))
        others = [new(tenant="y") for _ in range(5)]
        await add(store, *others, now=at(3))
        assert ids(await claim(store, want(6), at(4))) == [job.id for job in others[:3]]

    @keeps(22)
    async def test_a_claim_ends_where_the_retry_that_a_strict_key_waits_for_is_held_up(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:k", running=1, strict=True)
        await put_limit(store, "task:narrow", running=1)
        retried, holder = new(task="narrow", concurrency_key="k"), new(task="narrow", priority=1)
        await add(store, retried)
        (job,) = await claim(store, want(), at(1))
        await settle(store, [change(job, State.QUEUED, record=record(job, "failed", at(2)))], at(2))
        await add(store, holder, *[new(concurrency_key="k") for _ in range(3)], now=at(2))
        (running,) = await claim(store, want(1), at(2))
        assert running.id == holder.id
        for turn in range(3, 6):
            assert list(await claim(store, want(), at(turn))) == []
        await finish(store, running, now=at(6))
        assert ids(await claim(store, want(), at(7))) == [retried.id]

    @keeps(22)
    async def test_a_failed_job_lets_the_next_of_its_key_pass_while_it_waits(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        jobs = [new(concurrency_key="k") for _ in range(2)]
        await add(store, *jobs)
        (first,) = await claim(store, want(), at(1))
        failed = change(first, State.QUEUED, run_at=at(60), record=record(first, "failed", at(2)))
        await settle(store, [failed], at(2))
        assert ids(await claim(store, want(), at(3))) == [jobs[1].id]

    @keeps(22)
    async def test_a_strict_key_waits_with_the_job_that_waits_for_its_retry(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1, strict=True)
        jobs = [new(concurrency_key="k") for _ in range(3)]
        await add(store, *jobs, new(concurrency_key="free"))
        taken = await claim(store, want(), at(1))
        assert ids(taken)[0] == jobs[0].id
        failed = change(taken[0], State.QUEUED, run_at=at(60), record=record(taken[0], "failed", at(2)))
        await settle(store, [failed], at(2))
        assert list(await claim(store, want(), at(3))) == []
        assert (await store.turn([], want(), at(4))).next_due_at == at(60)
        (again,) = await claim(store, want(), at(61))
        assert (again.id, again.attempt) == (jobs[0].id, 2)
        for turn, job in enumerate(jobs[1:], 62):
            await finish(store, again, now=at(turn))
            (again,) = await claim(store, want(), at(turn))
            assert again.id == job.id

    @keeps(22)
    async def test_a_strict_key_waits_with_the_job_that_lost_its_worker(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1, strict=True)
        jobs = [new(concurrency_key="k") for _ in range(2)]
        await add(store, *jobs)
        (first,) = await claim(store, want(), at(1))
        rescued = change(
            first, State.QUEUED, attempt=0, crashes=1, run_at=at(60), record=record(first, "rescued", at(2))
        )
        await settle(store, [rescued], at(2))
        assert list(await claim(store, want(), at(3))) == []
        assert ids(await claim(store, want(), at(61))) == [first.id]

    @keeps(22)
    async def test_what_is_held_is_not_changed_by_it(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        jobs = [new(concurrency_key="k") for _ in range(3)]
        await add(store, *jobs)
        await claim(store, want(), at(1))
        before = [await found(store, job.id) for job in jobs[1:]]
        for turn in range(2, 6):
            assert list(await claim(store, want(), at(turn))) == []
        after = [await found(store, job.id) for job in jobs[1:]]
        assert before == after
        assert [(job.state, job.attempt, job.lease_token, job.run_at) for job in after] == [
            (State.QUEUED, 0, 0, T0)
        ] * 2
        assert [list(await store.attempts(job.id)) for job in jobs[1:]] == [[], []]

    @keeps(22)
    async def test_held_jobs_can_be_cancelled_and_moved(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        jobs = [new(concurrency_key="k") for _ in range(5)]
        await add(store, *jobs)
        (first,) = await claim(store, want(), at(1))
        assert list(await claim(store, want(), at(1))) == []
        await store.edit((jobs[1].id,), lifecycle.cancel("no", at(2)), at(2))
        await store.edit((jobs[4].id,), lifecycle.move(priority=3), at(2))
        await store.edit((jobs[2].id,), lifecycle.move(run_at=at(90)), at(2))
        order = []
        for turn in range(3, 6):
            await finish(store, first, now=at(turn))
            for first in await claim(store, want(), at(turn)):
                order.append(first.id)
        assert order == [jobs[4].id, jobs[3].id]
        assert ids(await claim(store, want(), at(91))) == [jobs[2].id]

    @keeps(22)
    async def test_behind_thousands_of_a_full_key_the_next_job_is_found(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        await add(store, *[new(concurrency_key="k", priority=1) for _ in range(3000)])
        other = new()
        await add(store, other)
        taken: list[str] = []
        for turn in range(1, 30):
            result = await store.turn([], want(1), at(turn))
            taken += ids(result.jobs)
            if not result.jobs:
                break
            # a claim that found nothing yet but is not through says so
        assert other.id in taken
        assert len(taken) == 2

    @keeps(22)
    async def test_a_released_job_frees_its_slot_and_keeps_its_place(self, store: Store) -> None:
        await put_limit(store, "key:k", running=1)
        jobs = [new(concurrency_key="k") for _ in range(3)]
        await add(store, *jobs)
        (first,) = await claim(store, want(), at(1))
        assert list(await claim(store, want(), at(1))) == []
        await release(store, first, now=at(2))
        assert ids(await claim(store, want(), at(3))) == [jobs[0].id]
