"""Several processes and event loops on the same data: each job runs once, none is lost with its holder."""

from __future__ import annotations

import asyncio
import threading

from ...model import CurrentOverview, State
from ...store.calls import settle
from ...store.protocol import Store
from .factories import T0, add, at, change, found, ids, new
from .host import StoreHost, child
from .rules import keeps

MANY = 300
HELD = 7


class ProcessRules:
    @keeps(3)
    async def test_two_processes_share_the_jobs_and_each_ends_once(
        self, store: Store, host: StoreHost
    ) -> None:
        jobs = [new() for _ in range(MANY)]
        await add(store, *jobs)
        async with child(host, "work", worker="one") as one, child(host, "work", worker="two") as two:
            done = await one.done() + await two.done()
        assert sorted(done) == sorted(job.id for job in jobs)
        assert (await store.survey(CurrentOverview(at(3)))).counts[State.SUCCEEDED] == MANY

    @keeps(3)
    async def test_what_a_killed_process_held_is_reclaimed_when_its_lease_has_expired(
        self, store: Store, host: StoreHost
    ) -> None:
        await add(store, *[new() for _ in range(HELD)])
        async with child(host, "hold", worker="lost", count=HELD) as process:
            held = [await process.line() for _ in range(HELD)]
            await process.kill()
        assert list(await store.reclaim("w2", 30, 50, at(2))) == []
        taken = await store.reclaim("w2", 30, 50, at(100))
        assert sorted(ids(taken)) == sorted(held)
        assert {(job.worker, job.lease_token) for job in taken} == {("lost", 2)}
        assert not await settle(store, [change(job, State.SUCCEEDED, worker="w2") for job in taken], at(101))


class LoopRules:
    @keeps(19)
    async def test_another_event_loop_uses_the_same_data(self, store: Store) -> None:
        there, here = new(), new()
        await add(store, here)
        beside = store.for_another_loop()
        seen: list[State] = []

        async def elsewhere() -> None:
            await beside.open()
            try:
                await beside.insert([there], T0)
                seen.append((await found(beside, here.id)).state)
            finally:
                await beside.close()

        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        await asyncio.to_thread(thread.join, 60)
        assert seen == [State.QUEUED]
        assert (await found(store, there.id)).state is State.QUEUED

    @keeps(19)
    async def test_an_object_whose_event_loop_has_ended_is_given_back_from_another_thread(
        self, store: Store
    ) -> None:
        kept = new()
        beside = store.for_another_loop()

        async def elsewhere() -> None:
            await beside.open()
            waker = beside.waker()
            await beside.insert([kept], T0)
            await asyncio.wait([asyncio.create_task(waker.wait(["default"], 60))], timeout=0.1)

        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        await asyncio.to_thread(thread.join, 60)
        beside.abandon()
        beside.abandon()
        assert (await found(store, kept.id)).state is State.QUEUED
        await beside.close()
