"""Expiry: jobs that have not begun in time are found and cancelled; those that have begun never are."""

from __future__ import annotations

from ...core.jobs import lifecycle
from ...model import DueLane, DueLanes, ExpiredJobs, JobId, State
from ...store.calls import settle
from ...store.protocol import Store
from .factories import FINAL_STATES, T0, add, at, change, claimed, found, ids, new, running
from .rules import keeps


async def expired(store: Store, seconds: float, most: int = 10) -> list[JobId]:
    return ids(await store.survey(ExpiredJobs(at(seconds), most)))


class ExpiryRules:
    @keeps(9)
    async def test_queued_jobs_past_their_expiry_are_found_in_order(self, store: Store) -> None:
        never, late, soon = new(), new(expires_at=at(20), run_at=at(15)), new(expires_at=at(10))
        await add(store, never, late, soon)
        assert (await found(store, soon.id)).expires_at == at(10)
        assert await expired(store, 9) == []
        assert await expired(store, 10) == [soon.id]
        assert await expired(store, 30) == [soon.id, late.id]
        assert await expired(store, 30, most=1) == [soon.id]

    @keeps(9)
    async def test_only_expired_jobs_are_cancelled_as_expired(self, store: Store) -> None:
        begun, never, later, soon = (
            await running(store, expires_at=at(10)),
            new(key="k"),
            new(expires_at=at(20)),
            new(expires_at=at(10), key="free"),
        )
        await add(store, never, later, soon)
        edit = lifecycle.expire(at(15))
        assert list(await store.edit((begun.id, never.id, later.id, soon.id), edit, at(15))) == [soon.id]
        gone = await found(store, soon.id)
        assert (gone.state, gone.error["type"], gone.attempt) == (State.CANCELLED, "Expired", 0)
        assert gone.expires_at == at(10)
        assert [one.outcome for one in await add(store, new(key="free"), now=at(16))] == ["created"]

    @keeps(7)
    async def test_a_job_that_returns_after_it_has_begun_expires_no_more(self, store: Store) -> None:
        for given, left in (({}, at(10)), ({"started_at": T0}, None), ({"crashes": 1}, None)):
            job = await running(store, expires_at=at(10))
            await settle(store, [change(job, State.QUEUED, run_at=at(900), **given)], at(1))
            assert (await found(store, job.id)).expires_at == left
        assert len(await expired(store, 11)) == 1

    @keeps(9)
    async def test_a_retry_of_an_expired_job_expires_no_more(self, store: Store) -> None:
        job = new(expires_at=at(10))
        await add(store, job)
        await store.edit((job.id,), lifecycle.expire(at(15)), at(15))
        assert list(await store.edit((job.id,), lifecycle.retry(at(20)), at(20))) == [job.id]
        again = await found(store, job.id)
        assert (again.state, again.expires_at) == (State.QUEUED, None)
        assert await expired(store, 99) == []

    @keeps(7)
    async def test_the_count_of_snoozes_is_kept_unless_another_is_given(self, store: Store) -> None:
        for end in FINAL_STATES:
            job = await running(store)
            assert job.snoozes == 0
            for round_, (given, stored) in enumerate([(1, 1), (None, 1), (2, 2)], 1):
                await settle(store, [change(job, State.QUEUED, snoozes=given)], at(round_))
                job = await claimed(store, job.id, at(round_))
                assert job.snoozes == stored
            await settle(store, [change(job, end)], at(9))
            assert (await found(store, job.id)).snoozes == 2
            await store.edit((job.id,), lifecycle.retry(at(1000)), at(10))
            assert (await found(store, job.id)).snoozes == 0

    @keeps(11)
    async def test_the_tasks_of_due_jobs_are_counted_by_queue(self, store: Store) -> None:
        await add(
            store,
            *[new(task="mail", queue="a") for _ in range(3)],
            new(task="mail", queue="b"),
            new(task="pdf", queue="a"),
            new(task="later", run_at=at(50)),
        )
        lanes = [("a", "mail", 3), ("a", "pdf", 1), ("b", "mail", 1)]
        expected = [DueLane(queue=queue, task=task, due=due) for queue, task, due in lanes]
        assert list(await store.survey(DueLanes(at(1), 100))) == expected
        assert 2 <= sum(one.due for one in await store.survey(DueLanes(at(1), 2))) <= 4
