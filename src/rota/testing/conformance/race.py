"""Many callers at once: every job goes to one, every key to one, every end is written once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ...core.jobs import lifecycle
from ...model import CurrentOverview, Job, JobFilter, PageRequest, Settlement, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import T0, add, at, change, found, ids, lease, new, pulse, running, want
from .rules import keeps


class RaceRules:
    @keeps(3)
    async def test_concurrent_claimers_get_each_job_exactly_once(self, store: Store) -> None:
        jobs = [new(queue=f"q{n % 3}") for n in range(500)]
        await add(store, *jobs)

        async def claimer(name: str) -> list[str]:
            taken: list[str] = []
            while batch := await claim(store, want(7, worker=name), at(1)):
                taken += ids(batch)
            return taken

        shares = await asyncio.gather(*[claimer(f"w{n}") for n in range(8)])
        # a claim may come back empty-handed while others hold what is left: the rest is not lost
        rest = await claimer("last")
        taken = sum(shares, rest)
        assert len(taken) == 500
        assert set(taken) == {job.id for job in jobs}

    @keeps(2)
    async def test_concurrent_inserts_with_one_key_make_one_job(self, store: Store) -> None:
        answers = await asyncio.gather(*[add(store, new(key="k")) for _ in range(20)])
        outcomes = [answer.outcome for (answer,) in answers]
        assert sorted(outcomes) == ["created", *["existing"] * 19]
        assert len({answer.id for (answer,) in answers}) == 1

    @keeps(1)
    async def test_concurrent_inserts_of_one_id_make_one_job(self, store: Store) -> None:
        job = new()
        answers = await asyncio.gather(*[store.insert([job], T0, retrying=n % 2 == 0) for n in range(20)])
        assert sorted(answer.outcome for (answer,) in answers) == ["created", *["existing"] * 19]

    @keeps(2)
    async def test_concurrent_batches_with_the_same_keys_do_not_block_each_other(self, store: Store) -> None:
        keys = [f"k{n}" for n in range(20)]
        orders = [keys, keys[::-1], keys[10:] + keys[:10], keys]
        await asyncio.gather(*[add(store, *[new(key=key) for key in order]) for order in orders])
        assert (await store.survey(CurrentOverview(T0))).counts["queued"] == 20

    @keeps(2)
    async def test_a_key_that_a_success_keeps_is_never_free_in_between(self, store: Store) -> None:
        for n in range(30):
            job = await running(store, key=f"k{n}", key_for=60.0, queue=f"q{n}")
            one = [change(job, State.SUCCEEDED)]
            inserts = asyncio.gather(*[store.insert([new(key=f"k{n}")], at(1)) for _ in range(8)])
            assert await settle(store, one, at(1)) == frozenset()
            assert {answer.id for (answer,) in await inserts} == {job.id}

    @keeps(6)
    async def test_of_a_thousand_equal_settles_one_is_accepted(self, store: Store) -> None:
        job = await running(store)
        refusals: list[frozenset[str]] = []
        for _ in range(40):
            refusals += await asyncio.gather(
                *[
                    settle(store, [change(job, State.SUCCEEDED, then=(new(run_at=at(99)),))], at(1))
                    for _ in range(25)
                ]
            )
        assert len(refusals) == 1000
        assert refusals.count(frozenset()) == 1
        assert set(refusals) == {frozenset(), frozenset({job.id})}
        assert (await store.survey(CurrentOverview(at(1)))).counts["queued"] == 1

    @keeps(6)
    async def test_of_different_ends_one_is_accepted(self, store: Store) -> None:
        job = await running(store)
        ends = (State.SUCCEEDED, State.FAILED, State.CANCELLED, State.QUEUED)
        refusals = await asyncio.gather(*[settle(store, [change(job, state)], at(1)) for state in ends])
        assert refusals.count(frozenset()) == 1
        assert (await found(store, job.id)).state is ends[refusals.index(frozenset())]

    @keeps(3)
    async def test_concurrent_rescuers_get_each_job_exactly_once(self, store: Store) -> None:
        jobs = {(await running(store)).id for _ in range(40)}
        shares = await asyncio.gather(*[store.reclaim(f"r{n}", 600, 9, at(100)) for n in range(8)])
        taken = [job.id for share in shares for job in share]
        while batch := await store.reclaim("last", 600, 40, at(100)):
            taken += ids(batch)
        assert (len(taken), set(taken)) == (40, jobs)

    @keeps(6)
    async def test_a_settle_and_a_reclaim_at_once_agree_on_who_was_first(self, store: Store) -> None:
        for _ in range(20):
            job = await running(store)
            refused, taken = await asyncio.gather(
                settle(store, [change(job, State.SUCCEEDED)], at(100)), store.reclaim("w2", 600, 10, at(100))
            )
            kept = await found(store, job.id)
            settled = refused == frozenset()
            assert settled is (kept.state is State.SUCCEEDED)
            assert settled is (not taken)

    @keeps(6)
    async def test_a_settle_and_a_beat_at_once_never_bring_a_job_back(self, store: Store) -> None:
        for _ in range(20):
            job = await running(store)
            refused, _ = await asyncio.gather(
                settle(store, [change(job, State.SUCCEEDED)], at(5)),
                store.heartbeat(pulse([lease(job)]), at(5)),
            )
            assert refused == frozenset()
            assert (await found(store, job.id)).state is State.SUCCEEDED

    @keeps(9)
    async def test_a_cancel_and_a_claim_at_once_agree(self, store: Store) -> None:
        for n in range(20):
            job = new(queue=f"q{n}")
            await add(store, job)
            touched, taken = await asyncio.gather(
                store.edit((job.id,), lifecycle.cancel("no", T0), T0),
                claim(store, want(queues=(job.queue,)), T0),
            )
            kept = await found(store, job.id)
            if taken:
                assert kept.state is State.RUNNING
                assert kept.cancel_requested is bool(touched)
            else:
                assert (kept.state, list(touched)) == (State.CANCELLED, [job.id])

    @keeps(3)
    async def test_workers_turning_at_once_finish_everything_once(self, store: Store) -> None:
        await add(store, *[new(queue=f"q{n % 2}") for n in range(300)])

        async def worker(name: str) -> int:
            done = 0
            held: Sequence[Job] = ()
            while True:
                ends: list[Settlement] = [change(job, State.SUCCEEDED) for job in held]
                turn = await store.turn(ends, want(9, worker=name), at(1))
                assert turn.refused == frozenset()
                done, held = done + len(ends), turn.jobs
                if not held:
                    return done

        finished = sum(await asyncio.gather(*[worker(f"w{n}") for n in range(6)]))
        finished += await worker("last")
        assert finished == 300
        left = await store.jobs(JobFilter(states=(State.QUEUED, State.RUNNING)), PageRequest())
        assert list(left.items) == []
