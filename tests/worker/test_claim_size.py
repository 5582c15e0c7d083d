"""How many jobs a worker claims, in which order, and when it stops by itself."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from rota import Rota
from rota.testing import FakeClock, drain
from rota.worker.claim_size import (
    MOST_AT_ONCE,
    Throughput,
    begin_at_once,
    claim_size,
    seconds_until,
    wait_unfinished,
)
from service_fixtures import Until

STILL = {"heartbeat_thread": False, "upkeep": False}


@pytest.mark.parametrize(
    ("rate", "held", "requested", "size"),
    [
        (0.0, 0, 0, 32),  # the free slots
        (0.0, 30, 0, 2),
        (0.0, 20, 12, 0),  # another turn may bring them already
        (0.0, 40, 0, -8),
        (2000.0, 0, 0, 66),  # half of 32 slots and 100 ahead
        (2000.0, 100, 0, 32),
        (1e9, 0, 0, 516),  # half of the most ahead
    ],
)
def test_claim_size_is_the_free_slots_and_half_of_what_starts_at_once(
    rate: float, held: int, requested: int, size: int
) -> None:
    assert claim_size(32, rate, held, requested) == size


@pytest.mark.parametrize(
    ("rate", "held", "requested", "keyed", "size"),
    [
        (0.0, 0, 0, 0, 32),
        (0.0, 30, 4, 0, 0),  # never fewer than none
        (19.0, 32, 0, 0, 0),  # slow jobs: a slot counts when it is free
        (90.0, 36, 0, 0, 1),  # others are claimed ahead: no slot is ever free, and yet one may come
        (90.0, 36, 0, 1, 0),  # it has
        (20_000.0, 32, 0, 0, 200),  # jobs of a millisecond: these begin within a hundredth of a second
        (20_000.0, 150, 50, 0, 32),
        (20_000.0, 1000, 0, 0, 200),
        (20_000.0, 1000, 0, 200, 0),
        (1e9, 0, 0, 0, 1032),
    ],
)
def test_jobs_under_a_limit_are_claimed_for_slots_that_are_free_or_about_to_be(
    rate: float, held: int, requested: int, keyed: int, size: int
) -> None:
    assert begin_at_once(32, rate, held, requested, lambda n: keyed >= n) == size


def test_throughput_is_measured_over_the_last_moments() -> None:
    throughput = Throughput(now=0.0)
    assert throughput.per_second(5, now=0.01) == 0.0  # too soon to say
    assert throughput.per_second(10, now=0.1) == pytest.approx(100.0)
    assert throughput.per_second(10, now=0.2) == 0.0


@pytest.mark.parametrize(
    ("after_s", "wait_s"), [(None, 1.0), (0.5, 0.5), (5.0, 1.0), (0.0, 0.001), (-9.0, 0.001)]
)
def test_seconds_until_is_bounded_and_never_zero(after_s: float | None, wait_s: float) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    at = None if after_s is None else now + timedelta(seconds=after_s)
    assert seconds_until(at, now, longest=1.0) == pytest.approx(wait_s)


def test_a_store_that_wants_to_look_further_is_asked_at_once_but_never_for_ever() -> None:
    assert wait_unfinished(MOST_AT_ONCE, longest=1.0) == pytest.approx(0.001)
    waits = [wait_unfinished(n, longest=1.0) for n in range(MOST_AT_ONCE, MOST_AT_ONCE + 2000)]
    assert waits == sorted(waits) and waits[12:] == [1.0] * len(waits[12:])


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


async def test_a_burst_ends_when_nothing_is_due(app: Rota) -> None:
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


async def test_a_worker_claims_only_its_queues(app: Rota) -> None:
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


async def test_jobs_under_a_limit_are_not_kept_out_by_those_under_none(app: Rota, until: Until) -> None:
    ended = {"other": 0, "limited": 0}

    @app.task
    async def other() -> None:
        await asyncio.sleep(0.001)
        ended["other"] += 1

    @app.task(concurrency_key="one")
    async def limited() -> None:
        await asyncio.sleep(0.001)
        ended["limited"] += 1

    await app.limits.set("key:one", running=1)
    await limited.enqueue_many({} for _ in range(20))
    await other.enqueue_many({} for _ in range(5000))
    async with app.running(concurrency=4, **STILL):
        await until(lambda: ended["other"] > 4000 or ended["limited"] == 20, seconds=60)
    assert ended["limited"] == 20 and ended["other"] < 4000
