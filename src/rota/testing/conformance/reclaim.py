"""Reclaiming: an expired lease passes to the worker that rescues the job; the lost worker is fenced off."""

from __future__ import annotations

from ...core.jobs import lifecycle
from ...model import State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import add, at, change, found, ids, in_state, new, running, want
from .rules import keeps


class ReclaimRules:
    @keeps(3)
    async def test_only_expired_leases_are_reclaimed(self, store: Store) -> None:
        job = await running(store)
        await add(store, new(run_at=at(9000)))
        for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED):
            await in_state(store, state)
        assert list(await store.reclaim("w2", 30, 10, at(29))) == []
        assert ids(await store.reclaim("w2", 30, 10, at(31))) == [job.id]

    @keeps(3)
    async def test_a_reclaim_raises_the_token_and_not_the_attempt(self, store: Store) -> None:
        job = await running(store)
        (taken,) = await store.reclaim("w2", 40, 10, at(100))
        assert (taken.lease_token, taken.attempt, taken.state) == (
            job.lease_token + 1,
            job.attempt,
            State.RUNNING,
        )
        kept = await found(store, job.id)
        assert (kept.lease_token, kept.worker, kept.lease_until) == (job.lease_token + 1, "w2", at(140))

    @keeps(3)
    async def test_a_reclaimed_job_names_its_former_worker(self, store: Store) -> None:
        await running(store)
        (taken,) = await store.reclaim("w2", 30, 10, at(100))
        assert taken.worker == "w1"
        (taken,) = await store.reclaim("w3", 30, 10, at(200))
        assert taken.worker == "w2"

    @keeps(3)
    async def test_a_fresh_lease_is_not_reclaimed(self, store: Store) -> None:
        await running(store)
        assert len(await store.reclaim("w2", 30, 10, at(100))) == 1
        assert list(await store.reclaim("w3", 30, 10, at(101))) == []

    @keeps(3)
    async def test_no_more_than_the_limit_is_reclaimed(self, store: Store) -> None:
        jobs = {(await running(store)).id for _ in range(5)}
        first = ids(await store.reclaim("w2", 30, 3, at(100)))
        second = ids(await store.reclaim("w2", 30, 3, at(100)))
        assert (len(first), len(second), {*first, *second}) == (3, 2, jobs)

    @keeps(3)
    async def test_the_one_who_reclaimed_may_settle(self, store: Store) -> None:
        await running(store)
        (taken,) = await store.reclaim("w2", 30, 10, at(100))
        assert await settle(store, [change(taken, State.QUEUED, worker="w2")], at(101)) == frozenset()
        (again,) = await claim(store, want(), at(102))
        assert (again.lease_token, again.attempt) == (3, 2)

    @keeps(3)
    async def test_an_asked_cancel_survives_the_reclaim(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(1)), at(1))
        (taken,) = await store.reclaim("w2", 30, 10, at(100))
        assert taken.cancel_requested is True

    @keeps(3)
    async def test_the_whole_job_comes_with_the_reclaim(self, store: Store) -> None:
        job = await running(store, payload_json='{"n":1}', tags=("t",), max_attempts=7, key="k", timeout=2.0)
        (taken,) = await store.reclaim("w2", 30, 10, at(100))
        for name in ("payload_json", "tags", "max_attempts", "key", "timeout", "started_at", "created_at"):
            assert getattr(taken, name) == getattr(job, name), name
