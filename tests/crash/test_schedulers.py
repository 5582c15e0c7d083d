"""Schedulers in processes of their own, killed while they fire: no fire time twice, none missed."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from attack import LOADED_LEASE_S, LONG, LOOK_S, Site, until

from rota.model import Job

SCHEDULERS = 5
KILLS = 40 if LONG else 5
SCHEDULES = 50 if LONG else 20
SECONDS = 60 if LONG else 5  # each schedule fires every second
SHARE = 0.1 if LONG else 0.5  # of its writes that a doomed scheduler does not survive
TICK: dict[str, Any] = {"tick_s": 0.2, "lease_s": LOADED_LEASE_S, "concurrency": 2}
HOUR_FAST = """
import pathlib
import time
pathlib.Path(__file__).with_suffix(".seen").touch()
true_time = time.time
time.time = lambda: true_time() + 3600
"""


async def fires(site: Site) -> Counter[tuple[str | None, datetime | None]]:
    jobs = (await site.jobs()).values()
    return Counter((job.schedule, job.scheduled_for) for job in jobs if job.schedule is not None)


async def declare(site: Site) -> set[tuple[str, datetime]]:
    """Schedules that begin soon and end in sight; every (schedule, fire time) that must come.

    One that is made only when its beginning has passed begins later, and says so.
    """
    await site.store()
    start = site.app.clock.now().replace(microsecond=0) + timedelta(seconds=2)
    end = start + timedelta(seconds=SECONDS - 1)
    expected: set[tuple[str, datetime]] = set()
    for n in range(SCHEDULES):
        made = await site.app.schedules.create(
            name=f"s{n}", task="work", every=1, start_at=start, until=end, missed="all",
            missed_cap=10_000, max_attempts=100, overlap="allow",
        )  # fmt: skip
        assert made.next_run_at is not None
        left = int((end - made.next_run_at).total_seconds())
        expected |= {(made.name, made.next_run_at + timedelta(seconds=n)) for n in range(left + 1)}
    return expected


async def settled(site: Site, expected: set[tuple[str, datetime]]) -> None:
    """Until every fire has its job, and every job has ended."""
    await fired(site, len(expected), within=120)
    await site.quiet(within=LOADED_LEASE_S + 60)


async def fired(site: Site, count: int, within: float) -> None:
    """Until so many fires have their jobs."""
    deadline = time.monotonic() + within
    while (seen := len(await fires(site))) < count:
        assert time.monotonic() < deadline, f"{seen} of {count} fires within {within:g} s\n{site.logs()}"
        await asyncio.sleep(LOOK_S)


@pytest.mark.timeout(600)
async def test_killed_schedulers_neither_miss_nor_double_a_fire(site: Site) -> None:
    """S4, R5. Some are killed at random, some on either side of the write."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    await site.ready(*[site.start(**TICK) for _ in range(SCHEDULERS)])
    expected = await declare(site)
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0, 2 * SECONDS / KILLS))  # the moment of the blow
        await until("a scheduler is at work", lambda: bool(site.working))
        site.kill(chance.choice(site.working))
        while len(site.living) < SCHEDULERS:  # some have died by themselves
            place = chance.choice(("fire.before", "fire.after", None))
            site.start(env={"ROTA_FAILPOINTS": f"{place}=kill:{SHARE}"} if place else {}, **TICK)
    site.start(**TICK)  # one that is left alone
    await settled(site, expected)
    found = await fires(site)
    assert set(found.values()) == {1}, f"doubled: {found.most_common(3)}"
    assert found.keys() == expected
    assert len(expected) > SCHEDULES * SECONDS / 2
    origins = {job.origin for job in (await site.jobs()).values()}
    assert origins <= {"scheduler", "catchup"}


@pytest.mark.parametrize("place", ["fire.before", "fire.after"])
async def test_a_scheduler_that_dies_at_the_write_leaves_a_whole_fire_or_none(site: Site, place: str) -> None:
    await site.store()
    soon = site.app.clock.now() + timedelta(seconds=0.2)
    await site.app.schedules.create(name="once", task="work", at=soon)
    doomed = site.start(env={"ROTA_FAILPOINTS": f"{place}=kill"}, **TICK)
    await until("a scheduler dies at its write", lambda: doomed.code is not None)
    schedule = await site.app.schedules.get("once")
    fired = place == "fire.after"
    assert (len(await fires(site)), schedule.next_run_at is None) == (int(fired), fired)
    site.start(**TICK)
    await settled(site, {("once", soon)})
    assert await fires(site) == {("once", soon): 1}


async def test_a_machine_that_is_an_hour_fast_fires_neither_early_nor_twice(
    postgres_site: Site, tmp_path: Path
) -> None:
    """The store's clock rules: only the process's own wall clock is wrong."""
    site = postgres_site
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "sitecustomize.py").write_text(HOUR_FAST)
    await site.store()
    now = site.app.clock.now()
    await site.app.schedules.create(name="later", task="work", at=now + timedelta(minutes=30))
    await site.ready(site.start(env={"PYTHONPATH": str(tmp_path / "fast")}, **TICK), site.start(**TICK))
    assert (tmp_path / "fast" / "sitecustomize.seen").exists()
    soon = site.app.clock.now() + timedelta(seconds=1)
    await site.app.schedules.create(name="soon", task="work", every=1, start_at=soon, missed="all")
    await fired(site, 3, within=60)
    jobs = [job for job in (await site.jobs()).values() if job.schedule is not None]
    assert not [job for job in jobs if job.schedule == "later"]
    assert set((await fires(site)).values()) == {1}
    assert all(is_on_time(job) for job in jobs)


def is_on_time(job: Job) -> bool:
    assert job.scheduled_for is not None
    return timedelta(seconds=-0.1) < job.created_at - job.scheduled_for < timedelta(minutes=5)
