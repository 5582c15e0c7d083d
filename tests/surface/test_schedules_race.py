"""Many schedulers, many schedules, a wrong clock: no fire is lost or doubled, and idling costs one query."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota import Rota
from rota.core.schedules.firing import start
from rota.model import JobFilter, PageRequest, Schedule, State
from rota.runtime.clock import Clock
from rota.schedules.scheduler import BATCH, Scheduler
from rota.store.protocol import Store
from rota.testing import FakeClock

LONG = os.environ.get("ROTA_LONG") == "1"
CROWD = 100_000 if LONG else 5_000
SCHEDULERS = 5
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PAGE = 1000

Make = Callable[..., Rota]
Fires = Counter[tuple[str, datetime]]


async def scheduler_of(app: Rota) -> Scheduler:
    async with app.worker() as worker:
        assert worker.scheduler is not None
        return worker.scheduler


async def rest(scheduler: Scheduler) -> int:
    """Step until nothing is due; how many steps it took."""
    steps = 1
    while await scheduler.tick() == 0:
        steps += 1
    return steps


async def fires(app: Rota) -> Fires:
    """How many jobs each (schedule, fire time) has made."""
    store, found, cursor = await app.stores.get(), Fires(), None
    while True:
        page = await store.jobs(JobFilter(from_schedule=True), PageRequest(limit=PAGE, cursor=cursor))
        for job in page.items:
            assert job.schedule is not None
            assert job.scheduled_for is not None
            found[job.schedule, job.scheduled_for] += 1
        if (cursor := page.next) is None:
            return found


def crowd(count: int, now: datetime, **rule: Any) -> list[Schedule]:
    made = [
        Schedule(id=f"s{n}", name=f"s{n}", task="t", created_at=now, updated_at=now, **rule)
        for n in range(count)
    ]
    return [start(schedule, now) for schedule in made]


async def put(store: Store, schedules: Sequence[Schedule], now: datetime) -> None:
    for place in range(0, len(schedules), PAGE):
        assert None not in await store.put_schedules(schedules[place : place + PAGE], now)


# --- races -----------------------------------------------------------------------------------------


async def test_five_schedulers_race_and_every_fire_makes_one_job(
    make_app: Make, app_url: str, clock: FakeClock
) -> None:
    """S4: one run per scheduled time even with several schedulers; R5: who comes second skips silently."""
    chance = random.Random(app_url)
    apps = [make_app(app_url, clock=clock) for _ in range(SCHEDULERS)]
    for n in range(20):
        policy = ("allow", "queue", "allow", "allow")[n % 4]
        await apps[0].schedules.create(name=f"s{n}", task="t", every=60 + n % 3, missed="all", overlap=policy)
    schedulers = [await scheduler_of(app) for app in apps]
    for _ in range(20):
        clock.advance(chance.uniform(1, 90))
        await asyncio.gather(*[rest(scheduler) for scheduler in schedulers])
    found, expected = await fires(apps[0]), Fires()
    for n in range(20):
        at, held = NOON, n % 4 == 1  # a held fire waits for work that no worker does here
        while (at := at + timedelta(seconds=60 + n % 3)) <= clock.now():
            if not held or at == NOON + timedelta(seconds=60 + n % 3):
                expected[f"s{n}", at] += 1
    assert len(expected) > 100
    assert found == expected


async def test_schedulers_race_with_operators_who_pause_edit_and_delete(
    make_app: Make, app_url: str, clock: FakeClock
) -> None:
    apps = [make_app(app_url, clock=clock) for _ in range(3)]
    one = apps[0].schedules
    for n in range(10):
        await one.create(name=f"s{n}", task="t", every=60, missed="all")
    schedulers = [await scheduler_of(app) for app in apps]
    clock.advance(60)
    gone = clock.now()
    await asyncio.gather(
        *[rest(scheduler) for scheduler in schedulers],
        one.disable("s0"), one.update("s1", priority=4), one.delete("s2"), one.update("s3", every=90),
    )  # fmt: skip
    clock.advance(60)
    await asyncio.gather(*[rest(scheduler) for scheduler in schedulers])
    found = await fires(apps[0])
    assert set(found.values()) == {1}
    assert not [at for name, at in found if name in ("s0", "s2") and at > gone]
    for n in (1, *range(4, 10)):
        assert [found[f"s{n}", NOON + timedelta(minutes=m)] for m in (1, 2)] == [1, 1]
    assert (await one.get("s1")).priority == 4
    assert not (await one.get("s0")).enabled


async def test_two_cancelling_schedulers_leave_the_newest_run_alive(
    make_app: Make, app_url: str, clock: FakeClock
) -> None:
    apps = [make_app(app_url, clock=clock) for _ in range(SCHEDULERS)]
    await apps[0].schedules.create(name="s", task="t", every=60, overlap="cancel_previous")
    schedulers = [await scheduler_of(app) for app in apps]
    for _ in range(5):
        clock.advance(60)
        await asyncio.gather(*[rest(scheduler) for scheduler in schedulers])
        store = await apps[0].stores.get()
        live = (await store.jobs(JobFilter(schedule="s", states=(State.QUEUED,)), PageRequest())).items
        assert [job.scheduled_for for job in live] == [clock.now()]


# --- clocks ----------------------------------------------------------------------------------------


class WrongClock(Clock):
    """The clock of a machine that is ``seconds`` off, until it receives the store's."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._base += seconds


@pytest.mark.parametrize("wrong", [3600.0, -3600.0], ids=["fast", "slow"])
async def test_a_machine_whose_clock_is_an_hour_off_fires_neither_early_nor_twice(
    make_app: Make, emptied_postgres_url: str, wrong: float, until: Any
) -> None:
    """The store's clock rules."""
    right, off = make_app(emptied_postgres_url), make_app(emptied_postgres_url, clock=WrongClock(wrong))
    store = await right.stores.get()
    truth = right.clock.now()
    assert abs(off.clock.now() - truth) > timedelta(minutes=59)
    soon, later = truth + timedelta(seconds=0.3), truth + timedelta(minutes=30)
    await off.schedules.create(name="later", task="t", at=later)
    await off.schedules.create(name="soon", task="t", at=soon)
    schedulers = [await scheduler_of(app) for app in (off, right)]
    await asyncio.gather(*[rest(scheduler) for scheduler in schedulers])
    if right.clock.now() < soon - timedelta(seconds=0.05):
        assert await fires(right) == {}

    async def fired() -> bool:
        await asyncio.gather(*[rest(scheduler) for scheduler in schedulers])
        return bool(await fires(right))

    await until(fired)
    assert await fires(right) == {("soon", soon): 1}
    (job,) = (await store.jobs(JobFilter(schedule="soon"), PageRequest())).items
    assert timedelta(seconds=-0.1) < job.created_at - soon < timedelta(seconds=20)


# --- crowds ----------------------------------------------------------------------------------------


@pytest.mark.timeout(900)
async def test_a_crowd_that_is_due_at_once_fires_exactly_once(
    make_app: Make, app_url: str, clock: FakeClock
) -> None:
    """ROTA_LONG=1: a hundred thousand, and two schedulers at once."""
    apps = [make_app(app_url, clock=clock) for _ in range(2 if LONG else 1)]
    await put(await apps[0].stores.get(), crowd(CROWD, NOON, cron="0 * * * *"), NOON)
    schedulers = [await scheduler_of(app) for app in apps]
    now, began = clock.advance(3600), time.monotonic()
    await asyncio.gather(*[rest(scheduler) for scheduler in schedulers])
    print(f"{CROWD} schedules fired in {time.monotonic() - began:.1f} s")
    found = await fires(apps[0])
    assert len(found) == CROWD
    assert set(found.values()) == {1}
    assert {at for _, at in found} == {now}


async def test_a_crowd_is_fired_in_batches_so_that_workers_come_in_between(
    make_app: Make, app_url: str, clock: FakeClock
) -> None:
    app = make_app(app_url, clock=clock)
    await put(await app.stores.get(), crowd(BATCH * 2 + 1, NOON, cron="0 * * * *"), NOON)
    scheduler = await scheduler_of(app)
    clock.advance(3600)
    for so_far in (BATCH, BATCH * 2, BATCH * 2 + 1):
        assert await scheduler.tick() == 0.0
        assert len(await fires(app)) == so_far
    assert await scheduler.tick() > 0


class Counted:
    """The store, and how often it was asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.asked: Counter[str] = Counter()

    def __getattr__(self, verb: str) -> Any:
        self.asked[verb] += 1
        return getattr(self._store, verb)


async def test_an_idle_step_is_one_cheap_question_however_many_schedules_there_are(
    make_app: Make, app_url: str, clock: FakeClock
) -> None:
    """R7. The plan of the question is pinned in tests/stores."""
    app = make_app(app_url, clock=clock)
    store = await app.stores.get()
    await put(store, crowd(100_000 if LONG else 2_000, NOON, cron="0 3 * * *"), NOON)
    scheduler = await scheduler_of(app)
    await scheduler.tick()
    counted = Counted(store)
    scheduler._store = counted  # type: ignore[assignment]
    for _ in range(10):
        assert await scheduler.tick() == 1.0
    assert counted.asked == {"due_schedules": 10}
