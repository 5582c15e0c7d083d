"""Claiming: which jobs, in which order, and what a claim writes."""

from __future__ import annotations

from collections import Counter

from ...core.jobs import lifecycle
from ...model import CurrentOverview, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import FINAL_STATES, T0, add, at, change, found, ids, in_state, new, running, want
from .rules import keeps


class ClaimRules:
    @keeps(3)
    async def test_a_claim_makes_the_job_ours(self, store: Store) -> None:
        asked = new(payload_json='{"n":1}')
        await add(store, asked)
        (job,) = await claim(store, want(worker="w7"), at(3))
        assert (job.id, job.state, job.payload_json) == (asked.id, State.RUNNING, '{"n":1}')
        assert (job.attempt, job.lease_token, job.worker) == (1, 1, "w7")
        assert (job.started_at, job.lease_until) == (at(3), at(33))
        assert await found(store, job.id) == job

    @keeps(5)
    async def test_a_clock_a_moment_behind_does_not_hide_a_job_that_was_stored_as_due(
        self, store: Store
    ) -> None:
        asked = new()
        await add(store, asked, now=at(1))
        assert ids(await claim(store, want(), at(0.998))) == [asked.id]

    @keeps(3)
    async def test_a_running_job_is_not_claimed_again(self, store: Store) -> None:
        await running(store)
        assert list(await claim(store, want(), at(1000))) == []

    @keeps(5)
    async def test_a_job_that_has_ended_is_not_claimed(self, store: Store) -> None:
        for state in FINAL_STATES:
            await in_state(store, state)
        assert list(await claim(store, want(), at(1000))) == []

    @keeps(4)
    async def test_within_a_queue_jobs_come_by_priority_then_due_time_then_id(self, store: Store) -> None:
        low, first, second = new(priority=-1), new(run_at=at(2)), new(run_at=at(2))
        early, high = new(run_at=at(1)), new(priority=9, run_at=at(3))
        await add(store, low, second, first, early, high)
        order = ids(await claim(store, want(), at(10)))
        assert order == [high.id, early.id, first.id, second.id, low.id]

    @keeps(4)
    async def test_the_order_holds_across_claims(self, store: Store) -> None:
        jobs = [new(priority=n % 3, run_at=at(n % 5)) for n in range(30)]
        await add(store, *jobs)
        expected = [job.id for job in sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))]
        taken: list[str] = []
        while batch := await claim(store, want(4), at(10)):
            taken += ids(batch)
        assert taken == expected

    @keeps(4)
    async def test_a_higher_priority_comes_first_from_any_queue(self, store: Store) -> None:
        await add(store, *[new(queue="a", priority=1) for _ in range(5)])
        urgent = [new(queue="b", priority=2) for _ in range(3)]
        await add(store, *urgent, now=at(1))
        assert set(ids(await claim(store, want(3), at(2)))) == {job.id for job in urgent}

    @keeps(4)
    async def test_queues_of_equal_priority_share_a_claim_evenly(self, store: Store) -> None:
        await add(store, *[new(queue="a") for _ in range(100)])
        await add(store, *[new(queue=queue) for queue in "bc" for _ in range(20)], now=at(1))
        taken = await claim(store, want(30), at(2))
        assert Counter(job.queue for job in taken) == {"a": 10, "b": 10, "c": 10}

    @keeps(4)
    async def test_what_a_short_queue_leaves_goes_to_the_others(self, store: Store) -> None:
        await add(store, *[new(queue="a") for _ in range(50)], new(queue="b"))
        taken = await claim(store, want(10), T0)
        assert Counter(job.queue for job in taken) == {"a": 9, "b": 1}

    @keeps(3)
    async def test_a_claim_takes_no_more_than_its_limit(self, store: Store) -> None:
        await add(store, *[new() for _ in range(7)])
        assert [len(await claim(store, want(3), T0)) for _ in range(4)] == [3, 3, 1, 0]

    @keeps(5)
    async def test_a_job_is_claimed_when_it_is_due_and_not_before(self, store: Store) -> None:
        job = new(run_at=at(10))
        await add(store, job)
        assert list(await claim(store, want(), at(9.999999))) == []
        assert ids(await claim(store, want(), at(10))) == [job.id]

    @keeps(4)
    async def test_later_jobs_become_due_in_their_order(self, store: Store) -> None:
        jobs = [new(run_at=at(60 + n)) for n in (3, 1, 2)]
        await add(store, *jobs)
        await add(store, new(queue="other"))
        assert len(await claim(store, want(), at(1))) == 1
        assert ids(await claim(store, want(), at(100))) == [jobs[1].id, jobs[2].id, jobs[0].id]

    @keeps(5)
    async def test_only_known_tasks_are_claimed(self, store: Store) -> None:
        await add(store, new(task="a", priority=5), new(task="b"), new(task="c"))
        taken = await claim(store, want(tasks=("b", "c", "zzz")), T0)
        assert [job.task for job in taken] == ["b", "c"]

    @keeps(5)
    async def test_a_worker_without_tasks_claims_nothing(self, store: Store) -> None:
        await add(store, new())
        assert list(await claim(store, want(tasks=()), T0)) == []

    @keeps(5)
    async def test_unknown_tasks_in_front_do_not_hide_known_ones(self, store: Store) -> None:
        await add(store, *[new(task="strange", priority=1) for _ in range(200)])
        known = new(task="known")
        await add(store, known)
        assert ids(await claim(store, want(1, tasks=("known",)), at(1))) == [known.id]

    @keeps(5)
    async def test_only_the_named_queues_are_claimed(self, store: Store) -> None:
        await add(store, new(queue="a"), new(queue="b"), new(queue="c"))
        taken = await claim(store, want(queues=("a", "c", "missing")), T0)
        assert sorted(job.queue for job in taken) == ["a", "c"]

    @keeps(5)
    async def test_excluded_queues_are_left_alone(self, store: Store) -> None:
        await add(store, new(queue="a"), new(queue="b"), new(queue="c"))
        taken = await claim(store, want(exclude_queues=("a",)), T0)
        assert sorted(job.queue for job in taken) == ["b", "c"]
        assert list(await claim(store, want(queues=("a",), exclude_queues=("a",)), T0)) == []

    @keeps(5)
    async def test_jobs_of_excluded_tenants_are_left_alone(self, store: Store) -> None:
        await add(store, new(tenant="x"), new(tenant="y"), new(tenant="z"))
        taken = await claim(store, want(exclude_tenants=("x", "z", "missing")), T0)
        assert [job.tenant for job in taken] == ["y"]
        assert list(await claim(store, want(exclude_tenants=("x", "z")), T0)) == []
        assert [job.tenant for job in await claim(store, want(), T0)] == ["x", "z"]

    @keeps(5)
    async def test_excluded_tenants_in_front_do_not_hide_the_others(self, store: Store) -> None:
        await add(store, *[new(tenant="x", priority=1, task=f"t{n % 3}") for n in range(300)])
        others = [new(task=f"t{n % 3}", tenant="x" if n % 2 else "y") for n in range(40)]
        await add(store, *others)
        open_ = [job.id for job in others if job.tenant == "y"]
        taken: list[str] = []
        while batch := await claim(store, want(7, exclude_tenants=("x",)), at(1)):
            taken += ids(batch)
        assert taken == open_

    @keeps(4)
    async def test_jobs_of_a_tenant_come_in_their_old_order_when_it_is_no_longer_excluded(
        self, store: Store
    ) -> None:
        jobs = [new(tenant="xyz"[n % 3], priority=n % 4, task=f"t{n % 5}") for n in range(60)]
        await add(store, *jobs)
        waiting = sorted(jobs, key=lambda job: (-job.priority, job.id))
        for excluded in (("x",), ("x", "y"), ("y",), ("x",), ("z", "y"), (), ("x",), ()):
            taken = await claim(store, want(6, exclude_tenants=excluded), at(1))
            assert len(taken) == 6
            for tenant in "xyz":
                own = [job.id for job in taken if job.tenant == tenant]
                assert own == [job.id for job in waiting if job.tenant == tenant][: len(own)]
            best = [job.priority for job in waiting if job.tenant not in excluded][:6]
            assert [job.priority for job in taken] == best
            waiting = [job for job in waiting if job.id not in ids(taken)]

    @keeps(4)
    async def test_an_excluded_job_lends_its_queue_no_priority(self, store: Store) -> None:
        await add(store, new(queue="a", tenant="x", priority=9), new(queue="a"))
        better = new(queue="b", priority=5)
        await add(store, better)
        assert ids(await claim(store, want(1, exclude_tenants=("x",)), at(1))) == [better.id]

    @keeps(4)
    async def test_queues_share_a_claim_evenly_beside_an_excluded_tenant(self, store: Store) -> None:
        for queue in "abc":
            await add(store, *[new(queue=queue, tenant=tenant) for tenant in "xy" for _ in range(20)])
        taken = await claim(store, want(30, exclude_tenants=("x",)), at(1))
        assert Counter((job.queue, job.tenant) for job in taken) == {(queue, "y"): 10 for queue in "abc"}

    @keeps(5)
    async def test_jobs_of_an_excluded_tenant_are_still_counted_found_and_edited(self, store: Store) -> None:
        first, second, key = new(tenant="x"), new(tenant="x"), new(tenant="x", key="k")
        await add(store, first, second, key)
        assert list(await claim(store, want(exclude_tenants=("x",)), at(5))) == []
        overview = await store.survey(CurrentOverview(at(10)))
        assert overview.counts["queued"] == overview.queues["default"].due == 3
        assert overview.oldest_due_s == 10
        again = new(tenant="x", key="k", on_conflict="replace", priority=7)
        assert [answer.id for answer in await add(store, again, now=at(6))] == [key.id]
        await store.edit((first.id,), lifecycle.cancel("no", at(6)), at(6))
        await store.edit((second.id,), lifecycle.move(priority=9), at(6))
        assert list(await claim(store, want(exclude_tenants=("x",)), at(7))) == []
        assert ids(await claim(store, want(), at(8))) == [second.id, key.id]

    @keeps(3)
    async def test_each_claim_raises_the_token_and_counts_an_attempt(self, store: Store) -> None:
        job = await running(store)
        for round_ in range(2, 5):
            await settle(store, [change(job, State.QUEUED)], at(round_))
            (job,) = await claim(store, want(), at(round_))
            assert (job.lease_token, job.attempt) == (round_, round_)

    @keeps(3)
    async def test_a_refunded_attempt_does_not_lower_the_token(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.QUEUED, attempt=0)], at(1))
        (job,) = await claim(store, want(), at(2))
        assert (job.attempt, job.lease_token) == (1, 2)

    @keeps(3)
    async def test_a_turn_settles_and_claims_at_once(self, store: Store) -> None:
        job = await running(store)
        waiting = new()
        await add(store, waiting)
        turn = await store.turn([change(job, State.SUCCEEDED, output_json="1")], want(), at(1))
        assert (turn.refused, ids(turn.jobs)) == (frozenset(), [waiting.id])
        assert (await found(store, job.id)).state is State.SUCCEEDED

    @keeps(3)
    async def test_a_turn_names_what_it_refused_and_still_claims(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        waiting = new()
        await add(store, waiting)
        turn = await store.turn([change(job, State.FAILED)], want(), at(2))
        assert (turn.refused, ids(turn.jobs)) == (frozenset({job.id}), [waiting.id])

    @keeps(3)
    async def test_a_turn_without_a_claim_claims_nothing(self, store: Store) -> None:
        await add(store, new())
        turn = await store.turn([], None, at(1))
        assert (turn.refused, list(turn.jobs)) == (frozenset(), [])

    @keeps(5)
    async def test_a_turn_reports_when_the_next_job_is_due(self, store: Store) -> None:
        assert (await store.turn([], want(), T0)).next_due_at is None
        await add(store, new(), new(run_at=at(70)), new(run_at=at(50), queue="other"))
        assert (await store.turn([], want(), T0)).next_due_at == at(50)
