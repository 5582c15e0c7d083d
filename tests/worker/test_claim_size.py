"""How many jobs a worker takes, in which order, and when it stops by itself."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from rota import ConfigError, Rota
from rota.model import TurnResult
from rota.testing import FakeClock, drain

STILL = {"heartbeat_thread": False, "upkeep": False}


async def test_exactly_as_many_coroutines_run_at_once_as_the_concurrency_allows(app: Rota) -> None:
    running = most = 0
    four = asyncio.Barrier(4)

    @app.task
    async def busy() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        async with asyncio.timeout(10):
            await four.wait()
        running -= 1

    await busy.enqueue_many({} for _ in range(40))
    assert await drain(app, concurrency=4) == 40
    assert most == 4


async def test_exactly_as_many_threads_run_at_once_as_the_concurrency_allows(app: Rota) -> None:
    lock = threading.Lock()
    running = most = 0
    three = threading.Barrier(3, timeout=10)

    @app.task
    def busy() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        three.wait()
        with lock:
            running -= 1

    await busy.enqueue_many({} for _ in range(21))
    assert await drain(app, concurrency=3) == 21
    assert most == 3


async def test_coroutines_and_threads_share_one_limit(app: Rota) -> None:
    running = most = 0
    lock = threading.Lock()

    def enter() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)

    def leave() -> None:
        nonlocal running
        with lock:
            running -= 1

    @app.task
    async def light() -> None:
        enter()
        await asyncio.sleep(0.001)
        leave()

    @app.task
    def heavy() -> None:
        enter()
        leave()

    for _ in range(20):
        await light.enqueue()
        await heavy.enqueue()
    assert await drain(app, concurrency=5) == 40
    assert most <= 5


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_max_jobs_is_exact(app: Rota, executor: str) -> None:
    if executor == "async":

        @app.task(name="count")
        async def count() -> None: ...
    else:

        @app.task(name="count")
        def count() -> None: ...

    await app.enqueue_many("count", ({} for _ in range(30)))
    async with app.worker(max_jobs=7, concurrency=5, **STILL) as worker:
        await worker.run()
    stats = await app.stats()
    assert (worker.finished, stats["succeeded"], stats["queued"]) == (7, 7, 23)


async def test_a_burst_ends_when_nothing_is_due_and_leaves_the_future_alone(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    await work.enqueue()
    await work.options(delay=60).enqueue()
    assert await drain(app) == 1
    assert (await app.stats())["queued"] == 1


async def test_a_burst_of_an_app_without_tasks_ends(app: Rota) -> None:
    await app.enqueue("strange")
    async with asyncio.timeout(5):
        assert await drain(app) == 0


async def test_a_burst_runs_what_its_own_jobs_enqueue(app: Rota) -> None:
    @app.task
    async def countdown(n: int) -> None:
        if n:
            await countdown.enqueue(n=n - 1)

    await countdown.enqueue(n=5)
    assert await drain(app) == 6


async def test_larger_priorities_come_first_then_due_time_then_age(app: Rota, clock: FakeClock) -> None:
    order: list[str] = []

    @app.task
    async def note(name: str) -> None:
        order.append(name)

    await note.options(delay=2).enqueue("due later")
    await note.enqueue("plain, first")
    await note.enqueue("plain, second")
    await note.options(priority=-5).enqueue("low")
    await note.options(priority=9).enqueue("high")
    clock.advance(3)
    await drain(app, concurrency=1)
    assert order == ["high", "plain, first", "plain, second", "due later", "low"]


async def test_a_worker_takes_only_the_queues_it_was_given(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    mail = await work.options(queue="mail").enqueue()
    other = await work.options(queue="other").enqueue()
    async with app.worker(queues=["mail"], burst=True, **STILL) as worker:
        await worker.run()
    assert (await mail.refresh()).state == "succeeded"
    assert (await other.refresh()).state == "queued"
    async with app.worker(exclude_queues=["other"], burst=True, **STILL) as worker:
        await worker.run()
    assert (await other.refresh()).state == "queued"


async def test_a_slow_job_does_not_keep_the_free_slots_empty(app: Rota) -> None:
    free = asyncio.Event()

    @app.task
    async def slow() -> None:
        await free.wait()

    @app.task
    async def quick() -> None: ...

    await slow.enqueue()
    await quick.enqueue_many({} for _ in range(20))
    async with app.running(concurrency=2, **STILL):
        for job in (await app.jobs(task="quick", limit=50)).items:
            await job.result(timeout=10)
        free.set()


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("concurrency", 0, "concurrency=0"),
        ("concurrency", 5000, "1 to 4096"),
        ("queues", "mail", "list of names"),
        ("queues", [], "queues"),
        ("max_jobs", 0, "max_jobs=0"),
        ("lease_s", 0, "lease_s=0"),
        ("poll_s", -1, "poll_s=-1"),
        ("shutdown_timeout", -1, "shutdown_timeout=-1"),
        ("concurency", 3, "did you mean concurrency?"),
    ],
)
async def test_a_worker_option_that_cannot_be_used_is_named(
    app: Rota, option: str, value: object, words: str
) -> None:
    with pytest.raises(ConfigError, match=words.replace("?", r"\?")):
        async with app.worker(**{option: value}):
            pass
    assert not app.is_running


async def test_under_load_two_turns_are_under_way_at_once_and_each_job_runs_once(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    under_way = 0
    two_at_once = asyncio.Event()
    store = await app.stores.get()
    turn = store.turn

    async def slow_turn(*asked: Any) -> TurnResult:
        nonlocal under_way
        under_way += 1
        try:
            if under_way == 2:
                two_at_once.set()
            elif ran:  # the store takes its time until another turn is there
                await asyncio.wait_for(two_at_once.wait(), 60)
            return await turn(*asked)
        finally:
            under_way -= 1

    monkeypatch.setattr(store, "turn", slow_turn)

    @app.task
    async def quick(n: int) -> None:
        ran.append(n)

    await quick.enqueue_many({"n": n} for n in range(5000))
    assert await drain(app, concurrency=1000) == 5000
    assert sorted(ran) == list(range(5000))
    assert two_at_once.is_set()
