"""Hints within one store object: no waiter misses one, and no waiter is woken for another queue."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any

from rota.model import JobId
from rota.store.hints import ANY_QUEUE, HintHub, HubWaker, Wait

LONG = 100.0


class PlainWaker(HubWaker):
    async def _until_finished(self, job: JobId, wait: Wait, timeout: float) -> None:
        await wait.until_woken(timeout)


async def begun(*waits: asyncio.Task[None]) -> None:
    for _ in range(3):
        await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)


async def test_a_ready_queue_wakes_those_who_asked_for_it() -> None:
    hub = HintHub()
    mail, any_, rest = (
        asyncio.create_task(PlainWaker(hub).wait(queues, LONG)) for queues in (["mail"], None, ["rest"])
    )
    await begun(mail, any_, rest)
    hub.publish({"mail"})
    await asyncio.wait_for(asyncio.gather(mail, any_), 10)
    await begun(rest)
    hub.publish({ANY_QUEUE})
    await asyncio.wait_for(rest, 10)


async def test_a_hint_between_two_waits_is_kept_for_one_of_them() -> None:
    hub = HintHub()
    waker = PlainWaker(hub)
    hub.publish({"mail"})
    await asyncio.wait_for(waker.wait(["mail"], LONG), 10)
    again = asyncio.create_task(waker.wait(["mail"], LONG))
    await begun(again)
    again.cancel()


async def test_a_finished_job_wakes_those_who_wait_for_it() -> None:
    hub = HintHub()
    waker = PlainWaker(hub)
    mine, other = (asyncio.create_task(waker.wait_finished(job, LONG)) for job in ("a", "b"))
    await begun(mine, other)
    assert hub.awaited_jobs() == {"a", "b"}
    hub.publish((), {"a"})
    await asyncio.wait_for(mine, 10)
    await begun(other)
    other.cancel()


async def test_a_wait_ends_after_its_timeout_and_leaves_no_sleeper() -> None:
    hub = HintHub()
    waker = PlainWaker(hub)
    await waker.wait(None, 0.001)
    await waker.wait_finished("a", 0.001)
    assert not hub.is_awaited


async def test_another_thread_may_publish() -> None:
    hub = HintHub()
    waiting = asyncio.create_task(PlainWaker(hub).wait(["mail"], LONG))
    await begun(waiting)
    thread = Thread(target=hub.publish, args=({"mail"},))
    thread.start()
    await asyncio.wait_for(waiting, 10)
    thread.join()


async def test_a_cancelled_wait_is_cancelled_even_if_it_is_woken_too() -> None:
    hub = HintHub()
    waiting = asyncio.create_task(PlainWaker(hub).wait(["mail"], LONG))
    await begun(waiting)
    hub.publish({"mail"})
    waiting.cancel()
    assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)


async def test_a_closed_waker_receives_nothing() -> None:
    hub = HintHub()
    waker = PlainWaker(hub)
    await waker.close()
    hub.publish({"mail"})
    assert not waker.heard


async def test_a_hint_from_elsewhere_says_how_many_jobs_there_are() -> None:
    hub = HintHub()
    waker = PlainWaker(hub)
    hub.publish({"mail"}, announced=2)
    hub.publish({"mail"}, announced=3)
    assert await waker.wait(["mail"], LONG) == 5
    asleep = asyncio.create_task(waker.wait(None, LONG))
    await begun(asleep)
    hub.publish({"mail"}, announced=1)
    hub.publish({"rest"}, announced=1)
    assert await asyncio.wait_for(asleep, 10) == 2


async def test_a_hint_from_this_process_is_to_be_followed_at_once() -> None:
    hub = HintHub()
    waker = PlainWaker(hub)
    hub.publish({"mail"}, announced=2)
    hub.publish({"mail"})
    assert await waker.wait(["mail"], LONG) is None
    assert await waker.wait(["mail"], 0.01) is None


async def test_a_hint_that_meets_the_end_of_a_wait_is_not_lost() -> None:
    """Of a job of this process, while one of another process has just ended the wait."""

    class LateHub(HintHub):
        def end(self, *args: Any) -> None:
            self.publish({"mail"})
            super().end(*args)

    hub = LateHub()
    waker = PlainWaker(hub)
    waiting = asyncio.create_task(waker.wait(["mail"], LONG))
    await begun(waiting)
    hub.publish({"mail"}, announced=1)
    assert await asyncio.wait_for(waiting, 10) is None
