"""Pruning: ended jobs are forgotten by state and age, live ones never."""

from __future__ import annotations

from typing import Any

from ...core.jobs import lifecycle
from ...model import JobFilter, JobId, PageRequest, RetentionCutoffs, State
from ...store.calls import settle
from ...store.protocol import Store
from .factories import EVERYTHING, FINAL_STATES, at, change, ids, in_state, read, record, running
from .rules import keeps

DAY = 86_400


async def ended(store: Store, state: State, seconds: float, **fields: Any) -> JobId:
    job = await running(store, **fields)
    failure = record(job, "failed", at(seconds))
    await settle(store, [change(job, state, record=failure)], at(seconds))
    return job.id


class PruneRules:
    @keeps(12)
    async def test_only_jobs_that_ended_before_the_instant_are_forgotten(self, store: Store) -> None:
        old, young = await ended(store, State.SUCCEEDED, 10), await ended(store, State.SUCCEEDED, 100)
        assert (await store.maintain(RetentionCutoffs(jobs={State.SUCCEEDED: at(50)}), 10, at(DAY))).jobs == 1
        assert await read(store, old) is None
        assert await read(store, young) is not None

    @keeps(12)
    async def test_each_state_has_its_own_instant(self, store: Store) -> None:
        jobs = {state: await ended(store, state, 10) for state in FINAL_STATES}
        assert (
            await store.maintain(
                RetentionCutoffs(jobs={State.SUCCEEDED: at(50), State.FAILED: at(5)}), 10, at(DAY)
            )
        ).jobs == 1
        left = ids((await store.jobs(EVERYTHING, PageRequest())).items)
        assert set(left) == {jobs[State.FAILED], jobs[State.CANCELLED]}

    @keeps(12)
    async def test_live_jobs_are_never_forgotten(self, store: Store) -> None:
        live = {await in_state(store, State.RUNNING), await in_state(store, State.QUEUED, run_at=at(1))}
        assert (
            await store.maintain(
                RetentionCutoffs(jobs=dict.fromkeys(FINAL_STATES, at(DAY * 365))), 10, at(DAY * 400)
            )
        ).jobs == 0
        assert set(ids((await store.jobs(EVERYTHING, PageRequest())).items)) == live

    @keeps(12)
    async def test_no_more_than_the_limit_is_forgotten_at_once(self, store: Store) -> None:
        for n in range(7):
            await ended(store, State.FAILED, n)
        counts = [
            (await store.maintain(RetentionCutoffs(jobs={State.FAILED: at(DAY)}), 3, at(DAY * 2))).jobs
            for _ in range(4)
        ]
        assert counts == [3, 3, 1, 0]

    @keeps(12)
    async def test_the_attempts_go_with_the_job(self, store: Store) -> None:
        job = await ended(store, State.FAILED, 10)
        assert len(await store.attempts(job)) == 1
        await store.maintain(RetentionCutoffs(jobs={State.FAILED: at(DAY)}), 10, at(DAY * 2))
        assert list(await store.attempts(job)) == []

    @keeps(12)
    async def test_asking_for_no_state_forgets_nothing(self, store: Store) -> None:
        await ended(store, State.FAILED, 10)
        assert (await store.maintain(RetentionCutoffs(jobs={}), 10, at(DAY))).jobs == 0
        assert len((await store.jobs(JobFilter(states=(State.FAILED,)), PageRequest())).items) == 1

    @keeps(12)
    async def test_a_retried_job_is_not_forgotten_for_its_former_end(self, store: Store) -> None:
        job = await ended(store, State.FAILED, 10)
        await store.edit((job,), lifecycle.retry(at(20)), at(20))
        assert (
            await store.maintain(RetentionCutoffs(jobs={State.FAILED: at(DAY)}), 10, at(DAY * 2))
        ).jobs == 0
        assert await read(store, job) is not None

    @keeps(12)
    async def test_a_job_with_a_retention_of_its_own_follows_that_alone(self, store: Store) -> None:
        brief = await ended(store, State.SUCCEEDED, 10, keep=60)
        other = await ended(store, State.FAILED, 20, keep=60)
        long = await ended(store, State.SUCCEEDED, 10, keep=DAY * 365)
        usual = await ended(store, State.SUCCEEDED, 10)
        none = RetentionCutoffs(jobs=dict.fromkeys(FINAL_STATES, at(0)))
        assert (await store.maintain(none, 10, at(69))).jobs == 0
        assert (await store.maintain(none, 10, at(75))).jobs == 1
        assert await read(store, brief) is None and await read(store, other) is not None
        assert (await store.maintain(none, 10, at(200))).jobs == 1
        assert list(await store.attempts(other)) == []
        later = RetentionCutoffs(jobs=dict.fromkeys(FINAL_STATES, at(DAY * 30)))
        assert (await store.maintain(later, 10, at(DAY * 31))).jobs == 1
        assert await read(store, usual) is None
        kept = await read(store, long)
        assert kept is not None and kept.keep == DAY * 365
        assert len(await store.attempts(long)) == 1
        assert (await store.maintain(later, 10, at(DAY * 366))).jobs == 1

    @keeps(12)
    async def test_retentions_of_jobs_are_over_in_batches(self, store: Store) -> None:
        for n in range(7):
            await ended(store, State.FAILED, n, keep=float(10 + n % 3))
        counts = [(await store.maintain(RetentionCutoffs(), 3, at(DAY))).jobs for _ in range(4)]
        assert counts == [3, 3, 1, 0]
