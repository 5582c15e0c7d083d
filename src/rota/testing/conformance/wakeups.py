"""Wake-ups: a store that promises them sends one soon after the write, within a process and between two.

The limit is far above what any store needs and far below the timeout that the waiter asked for: it separates
a wake-up from a timeout, and measures no speed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from ...model import Limit, LimitRule, State
from ...store.calls import claim, settle
from ...store.protocol import Store, Waker
from .factories import add, at, change, new, running, want
from .firing import firing, run_of
from .host import StoreHost, child
from .rules import keeps
from .schedules import changed, rule, stored

WAIT_S = 300.0  # what the waiter asks for
SOON_S = 60.0  # a wake-up comes before this; a timeout does not


async def woken(waiting: Callable[[Waker], Awaitable[object]], store: Store, act: Callable[[], Any]) -> None:
    """The waiter returns after the act, well before its own timeout, if the store promises wake-ups."""
    waker = store.waker()
    try:
        waiter = asyncio.ensure_future(waiting(waker))
        for _ in range(20):  # let it begin to wait
            await asyncio.sleep(0)
        await act()
        if not store.capabilities.push:
            waiter.cancel()
            return
        async with asyncio.timeout(SOON_S):
            await waiter
    finally:
        await waker.close()


def for_mail(waker: Waker) -> Awaitable[object]:
    return waker.wait(["mail"], WAIT_S)


def for_schedules(waker: Waker) -> Awaitable[object]:
    return waker.wait_schedules(WAIT_S)


class WakeUpRules:
    @keeps(15)
    async def test_an_insert_wakes_a_waiting_worker(self, store: Store) -> None:
        await woken(for_mail, store, lambda: add(store, new(queue="mail")))

    @keeps(15)
    async def test_a_changed_limit_wakes_a_waiting_worker(self, store: Store) -> None:
        rule = LimitRule(name="queue:mail", chosen=Limit(running=1))
        await woken(for_mail, store, lambda: store.put_rules([rule], at(1)))

    @keeps(15)
    async def test_a_raised_limit_wakes_a_worker_that_waits_for_its_held_jobs(self, store: Store) -> None:
        rule = LimitRule(name="key:a", chosen=Limit(running=1))
        await store.put_rules([rule], at(0))
        await running(store, queue="mail", concurrency_key="a")
        await add(store, new(queue="mail", concurrency_key="a"))
        assert not await claim(store, want(), at(0))
        raised = LimitRule(name="key:a", chosen=Limit(running=2), version=1)
        await woken(for_mail, store, lambda: store.put_rules([raised], at(1)))

    @keeps(15)
    async def test_a_fire_wakes_a_waiting_worker(self, store: Store) -> None:
        (schedule,) = await stored(store, rule())
        act = firing(schedule, run_of(schedule, queue="mail"))
        await woken(for_mail, store, lambda: store.fire([act], at(1)))

    @keeps(15)
    async def test_a_follow_up_job_wakes_a_waiting_worker(self, store: Store) -> None:
        job = await running(store)
        settlement = change(job, State.SUCCEEDED, then=(new(queue="mail"),))
        await woken(for_mail, store, lambda: settle(store, [settlement], at(1)))

    @keeps(15)
    async def test_the_end_of_a_job_wakes_its_waiters(self, store: Store) -> None:
        job = await running(store)
        await woken(
            lambda waker: waker.wait_finished(job.id, WAIT_S),
            store,
            lambda: settle(store, [change(job, State.SUCCEEDED)], at(1)),
        )

    @keeps(15)
    async def test_a_new_schedule_and_an_edited_one_wake_a_waiting_scheduler(self, store: Store) -> None:
        fresh = rule()
        edited = changed(fresh, version=1, cron="0 4 * * *")
        await woken(for_schedules, store, lambda: store.put_schedules([fresh], at(1)))
        await woken(for_schedules, store, lambda: store.put_schedules([edited], at(2)))

    @keeps(15)
    async def test_a_waiter_returns_when_its_time_is_over(self, store: Store) -> None:
        waker = store.waker()
        try:
            async with asyncio.timeout(SOON_S):
                await waker.wait(["mail"], 0.01)
                await waker.wait_finished(new().id, 0.01)
                await waker.wait_schedules(0.01)
        finally:
            await waker.close()


class WakeUpsBetweenProcessesRules:
    @keeps(15)
    async def test_an_insert_in_another_process_wakes_a_waiting_worker(
        self, store: Store, host: StoreHost
    ) -> None:
        async def insert() -> None:
            async with child(host, "insert_all", jobs=[new(queue="mail")]) as process:
                assert await process.done() == ["inserted"]

        await woken(for_mail, store, insert)

    @keeps(15)
    async def test_a_job_that_ends_in_another_process_wakes_its_waiters(
        self, store: Store, host: StoreHost
    ) -> None:
        job = await running(store)

        async def settle() -> None:
            async with child(host, "settle_all", settlements=[change(job, State.SUCCEEDED)]) as process:
                assert await process.done() == ["settled"]

        await woken(lambda waker: waker.wait_finished(job.id, WAIT_S), store, settle)
