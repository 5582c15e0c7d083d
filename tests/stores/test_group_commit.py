"""Group commit: who is written together, and what each caller gets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rota.errors import StoreError, StoreUnavailable
from rota.model import InsertResult, NewJob
from rota.store.group_commit import GroupCommit, InsertCall, Results
from rota.testing.conformance.factories import T0, at, new


class SlowStore:
    """Remembers what was written together; a write ends when the test lets it."""

    def __init__(self, most_writes: int = 1) -> None:
        self.written: list[list[str]] = []
        self.go_on = asyncio.Event()
        self.error: Exception | None = None
        self.bad: set[str] = set()
        self.group = GroupCommit(self._write, most_writes)

    async def _write(self, calls: Sequence[InsertCall]) -> Sequence[Results]:
        ids = [job.id for call in calls for job in call.jobs]
        self.written.append(ids)
        await self.go_on.wait()
        if self.error is not None:
            raise self.error
        if self.bad.intersection(ids):
            raise StoreError("one of them cannot be stored")
        return [[InsertResult(id=job.id, outcome="created") for job in call.jobs] for call in calls]

    def start(self, *jobs: NewJob) -> asyncio.Task[Results]:
        return asyncio.create_task(self.group.insert(jobs, T0))


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_callers_that_come_during_a_write_share_the_next() -> None:
    store = SlowStore()
    jobs = [new() for _ in range(5)]
    tasks = [store.start(job) for job in jobs]
    await settled()
    assert store.written == [[jobs[0].id]]
    store.go_on.set()
    results = await asyncio.gather(*tasks)
    assert store.written == [[jobs[0].id], [job.id for job in jobs[1:]]]
    assert [[one.id for one in own] for own in results] == [[job.id] for job in jobs]


async def test_each_caller_gets_the_results_of_its_own_jobs_in_order() -> None:
    store = SlowStore()
    groups = [[new()], [new(), new()], [], [new(), new(), new()]]
    tasks = [store.start(*jobs) for jobs in groups]
    await settled()
    store.go_on.set()
    results = await asyncio.gather(*tasks)
    assert [[one.id for one in own] for own in results] == [[job.id for job in jobs] for jobs in groups]


async def test_several_writes_may_be_under_way_and_each_takes_its_share() -> None:
    store = SlowStore(most_writes=2)
    tasks = [store.start(new()) for _ in range(8)]
    await settled()
    assert [len(ids) for ids in store.written] == [1, 1]
    store.go_on.set()
    await asyncio.gather(*tasks)
    assert sum(len(ids) for ids in store.written) == 8


async def test_a_job_that_cannot_be_stored_harms_no_other_caller() -> None:
    store = SlowStore()
    jobs = [new() for _ in range(6)]
    store.bad = {jobs[3].id}
    tasks = [store.start(job) for job in jobs]
    await settled()
    store.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, StoreError) for one in results] == [n == 3 for n in range(6)]


async def test_an_unavailable_store_is_not_asked_again() -> None:
    store = SlowStore()
    tasks = [store.start(new()) for _ in range(6)]
    await settled()
    store.error = StoreUnavailable("gone")
    store.go_on.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(one) for one in results} == {StoreUnavailable}
    assert len(store.written) == 2


async def test_a_caller_that_gave_up_before_its_write_is_left_out() -> None:
    store = SlowStore()
    jobs = [new() for _ in range(3)]
    tasks = [store.start(job) for job in jobs]
    await settled()
    tasks[1].cancel()
    store.go_on.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert store.written == [[jobs[0].id], [jobs[2].id]]


async def test_a_write_continues_when_one_of_its_callers_gives_up() -> None:
    store = SlowStore()
    first, second, third = store.start(new()), store.start(new()), store.start(new())
    await settled()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await settled()
    second.cancel()
    store.go_on.set()
    assert [one.outcome for one in await third] == ["created"]


def test_a_new_event_loop_does_not_wait_for_writes_of_the_former() -> None:
    store = SlowStore()

    async def stuck() -> None:
        store.start(new())
        await settled()

    asyncio.run(stuck())

    async def fresh() -> Results:
        store.go_on = asyncio.Event()
        store.go_on.set()
        return await asyncio.wait_for(store.group.insert([new()], at(1)), 10)

    assert len(asyncio.run(fresh())) == 1
