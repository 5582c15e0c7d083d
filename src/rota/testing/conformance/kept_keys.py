"""Keys that stay taken after a success, for as long as asked: beyond retention, not beyond a failure."""

from __future__ import annotations

from typing import Any

from ...core.jobs import lifecycle
from ...model import NewJob, RetentionCutoffs, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import T0, add, at, change, found, new, read, running, want
from .rules import keeps


async def succeeded(store: Store, **fields: Any) -> str:
    """The id of a job that held the key ``k`` and succeeded at 1 s."""
    job = await running(store, key="k", **fields)
    assert not await settle(store, [change(job, State.SUCCEEDED)], at(1))
    return job.id


async def outcome(store: Store, seconds: float, job: NewJob | None = None) -> tuple[str, str, str]:
    """What becomes of another job with the key at this time: its id, outcome and state."""
    (answer,) = await add(store, job or new(key="k"), now=at(seconds))
    return answer.id, answer.outcome, answer.state.value


class KeptKeyRules:
    @keeps(2)
    async def test_a_kept_key_answers_with_the_job_that_succeeded(self, store: Store) -> None:
        done = await succeeded(store, key_for=60.0)
        assert await outcome(store, 60) == (done, "existing", "succeeded")
        for choice in ("raise", "replace"):
            refused = new(key="k", on_conflict=choice)
            assert await outcome(store, 60, refused) == (done, "refused", "succeeded")
        assert list(await claim(store, want(), at(60))) == []

    @keeps(2)
    async def test_a_kept_key_is_free_when_its_time_is_over(self, store: Store) -> None:
        await succeeded(store, key_for=60.0)
        job = new(key="k")
        assert await outcome(store, 61, job) == (job.id, "created", "queued")
        assert await outcome(store, 62) == (job.id, "existing", "queued")

    @keeps(2)
    async def test_a_failed_or_cancelled_job_keeps_no_key(self, store: Store) -> None:
        for state in (State.FAILED, State.CANCELLED):
            job = await running(store, key="k", key_for=60.0)
            await settle(store, [change(job, state)], at(1))
            assert (await outcome(store, 2))[1] == "created"
            (waiting,) = await claim(store, want(), at(3))
            await settle(store, [change(waiting, State.SUCCEEDED)], at(3))
        await add(store, queued := new(key="q", key_for=60.0))
        await store.edit((queued.id,), lifecycle.cancel("no", T0), T0)
        assert (await add(store, new(key="q")))[0].outcome == "created"

    @keeps(2)
    async def test_a_failed_job_that_is_retried_takes_its_key_while_it_is_live(self, store: Store) -> None:
        job = await running(store, key="k", key_for=60.0)
        await settle(store, [change(job, State.FAILED)], at(1))
        assert await store.edit((job.id,), lifecycle.retry(at(2)), at(2))
        assert (await outcome(store, 2))[1] == "existing"
        (again,) = await claim(store, want(), at(3))
        await settle(store, [change(again, State.SUCCEEDED)], at(3))
        assert (await outcome(store, 4))[1] == "created"

    @keeps(2)
    async def test_a_lost_answer_meets_the_key_of_its_own_job_and_is_not_refused(self, store: Store) -> None:
        job = new(key="k", key_for=60.0, auto_remove=True, on_conflict="raise")
        await add(store, job)
        (held,) = await claim(store, want(), T0)
        await settle(store, [change(held, State.SUCCEEDED, remove=True)], at(1))
        (answer,) = await store.insert([job], at(2), retrying=True)
        assert (answer.id, answer.outcome) == (job.id, "existing")

    @keeps(2)
    async def test_a_removed_job_keeps_its_key(self, store: Store) -> None:
        job = await running(store, key="k", key_for=60.0, auto_remove=True)
        await settle(store, [change(job, State.SUCCEEDED, remove=True)], at(1))
        assert await outcome(store, 2) == (job.id, "existing", "succeeded")
        assert await read(store, job.id) is None

    @keeps(2)
    async def test_a_kept_key_outlives_its_job(self, store: Store) -> None:
        done = await succeeded(store, key_for=1e9)
        cutoffs = RetentionCutoffs(jobs={State.SUCCEEDED: at(100)}, audit=None)
        for _ in range(2):  # the second leaves nothing to delete, and does what the store needs
            await store.maintain(cutoffs, 10, at(200))
        assert await read(store, done) is None
        assert await outcome(store, 300) == (done, "existing", "succeeded")

    @keeps(2)
    async def test_maintenance_deletes_kept_keys_whose_time_is_over_and_no_others(self, store: Store) -> None:
        await succeeded(store, key_for=60.0)
        await add(store, live := new(key="live", key_for=60.0))
        await store.maintain(RetentionCutoffs(jobs={}, audit=None), 10, at(100))
        assert (await outcome(store, 30))[1] == "created"
        (job,) = await claim(store, want(limit=1), at(101))
        assert job.id == live.id
        await settle(store, [change(job, State.SUCCEEDED)], at(101))
        assert (await add(store, new(key="live"), now=at(102)))[0].outcome == "existing"

    @keeps(2)
    async def test_deleting_a_job_frees_the_key_that_it_keeps(self, store: Store) -> None:
        done = await succeeded(store, key_for=60.0)
        await store.edit((done,), lifecycle.delete(), at(2))
        assert (await outcome(store, 3))[1] == "created"

    @keeps(2)
    async def test_a_job_that_keeps_its_key_can_be_retried(self, store: Store) -> None:
        done = await succeeded(store, key_for=60.0)
        assert list(await store.edit((done,), lifecycle.retry(at(5)), at(5))) == [done]
        assert await outcome(store, 6) == (done, "existing", "queued")
        (job,) = await claim(store, want(), at(7))
        await settle(store, [change(job, State.SUCCEEDED)], at(7))
        assert await outcome(store, 66) == (done, "existing", "succeeded")
        await store.edit((done,), lifecycle.retry(at(66)), at(66))
        (job,) = await claim(store, want(), at(66))
        await settle(store, [change(job, State.FAILED)], at(66))
        assert (await outcome(store, 67))[1] == "created"

    @keeps(2)
    async def test_a_retry_is_left_out_while_another_job_keeps_its_key(self, store: Store) -> None:
        old = await running(store, key="k")
        await settle(store, [change(old, State.FAILED)], at(0))
        await succeeded(store, key_for=60.0)
        assert list(await store.edit((old.id,), lifecycle.retry(at(5)), at(5))) == []
        assert list(await store.edit((old.id,), lifecycle.retry(at(61)), at(61))) == [old.id]
        assert (await found(store, old.id)).state is State.QUEUED

    @keeps(2)
    async def test_a_replacement_decides_how_long_the_key_is_kept(self, store: Store) -> None:
        for key, before, after in (("a", None, 60.0), ("b", 60.0, None)):
            await add(store, new(key=key, key_for=before))
            await add(store, new(key=key, key_for=after, on_conflict="replace"))
            (job,) = await claim(store, want(), T0)
            await settle(store, [change(job, State.SUCCEEDED)], at(1))
            (answer,) = await add(store, new(key=key, run_at=at(1000)), now=at(2))
            assert answer.outcome == ("existing" if after else "created")

    @keeps(2)
    async def test_asking_again_after_a_lost_answer_finds_the_job_that_keeps_its_key(
        self, store: Store
    ) -> None:
        job = new(key="k", key_for=60.0, on_conflict="raise")
        await add(store, job)
        (taken,) = await claim(store, want(), T0)
        await settle(store, [change(taken, State.SUCCEEDED)], at(1))
        (answer,) = await store.insert([job], at(2), retrying=True)
        assert (answer.id, answer.outcome, answer.state) == (job.id, "existing", State.SUCCEEDED)

    @keeps(2)
    async def test_many_keyed_jobs_meet_kept_keys_in_one_call(self, store: Store) -> None:
        done = await succeeded(store, key_for=60.0)
        jobs = [new(key=f"n{n}") for n in range(70)]
        answers = await add(store, *jobs, new(key="k"), new(key="n3"), now=at(2))
        assert [answer.outcome for answer in answers] == ["created"] * 70 + ["existing"] * 2
        assert [answer.id for answer in answers[70:]] == [done, jobs[3].id]
