"""Schedulers in separate processes, killed while they fire: no fire time twice, none missed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cluster import LONG, LONG_LEASE_S, Cluster, poll, until

from rota.model import Job

SCHEDULERS = 5
KILLS = 40 if LONG else 5
SCHEDULES = 50 if LONG else 20
SECONDS = 60 if LONG else 5  # each schedule fires every second
SHARE = 0.1 if LONG else 0.5  # probability that a write kills a dying scheduler
TICK: dict[str, Any] = {"tick_s": 0.2, "lease_s": LONG_LEASE_S, "concurrency": 2}
HOUR_FAST = """
import pathlib
import time
pathlib.Path(__file__).with_suffix(".seen").touch()
true_time = time.time
time.time = lambda: true_time() + 3600
"""


async def fires(cluster: Cluster) -> Counter[tuple[str | None, datetime | None]]:
    jobs = (await cluster.jobs()).values()
    return Counter((job.schedule, job.scheduled_for) for job in jobs if job.schedule is not None)


async def declare(cluster: Cluster) -> set[tuple[str, datetime]]:
    """Create schedules that start soon and end, and return every (schedule, fire time) to expect.

    A schedule that is created after its start time starts later, as its next_run_at shows.
    """
    await cluster.store()
    start = cluster.app.clock.now().replace(microsecond=0) + timedelta(seconds=2)
    end = start + timedelta(seconds=SECONDS - 1)
    expected: set[tuple[str, datetime]] = set()
    for n in range(SCHEDULES):
        fresh = await cluster.app.schedules.create(
            name=f"s{n}", task="work", every=1, start_at=start, until=end, missed="all",
            missed_cap=10_000, max_attempts=100, overlap="allow",
        )  # fmt: skip
        assert fresh.next_run_at is not None
        left = int((end - fresh.next_run_at).total_seconds())
        expected |= {(fresh.name, fresh.next_run_at + timedelta(seconds=n)) for n in range(left + 1)}
    return expected


async def wait_for_jobs(cluster: Cluster, expected: set[tuple[str, datetime]]) -> None:
    """Wait until every fire has its job, and every job has finished."""
    await wait_for_fires(cluster, len(expected), within=120)
    await cluster.wait_until_idle(within=LONG_LEASE_S + 60)


async def wait_for_fires(cluster: Cluster, count: int, within: float) -> None:
    """Wait until ``count`` fires have their jobs."""
    await poll(
        lambda: fires(cluster),
        lambda found: len(found) >= count,
        within,
        lambda found: f"{count} fires, not {len(found)}\n{cluster.logs()}",
    )


@pytest.mark.timeout(600)
async def test_killed_schedulers_miss_and_repeat_no_fire(cluster: Cluster) -> None:
    """Some are killed at random, some just before or after the write."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    await cluster.ready(*[cluster.start(**TICK) for _ in range(SCHEDULERS)])
    expected = await declare(cluster)
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0, 2 * SECONDS / KILLS))  # a random time to kill
        await until("a scheduler has started", lambda: bool(cluster.started))
        cluster.kill(chance.choice(cluster.started))
        while len(cluster.alive) < SCHEDULERS:  # some died at a failpoint
            place = chance.choice(("fire.before", "fire.after", None))
            cluster.start(env={"ROTA_FAILPOINTS": f"{place}=kill:{SHARE}"} if place else {}, **TICK)
    cluster.start(**TICK)  # one that is never killed
    await wait_for_jobs(cluster, expected)
    found = await fires(cluster)
    assert set(found.values()) == {1}, f"repeated: {found.most_common(3)}"
    assert found.keys() == expected
    assert len(expected) > SCHEDULES * SECONDS / 2
    origins = {job.origin for job in (await cluster.jobs()).values()}
    assert origins <= {"scheduler", "catchup"}


@pytest.mark.parametrize("place", ["fire.before", "fire.after"])
async def test_scheduler_dying_at_the_write_leaves_a_complete_fire_or_none(
    cluster: Cluster, place: str
) -> None:
    await cluster.store()
    soon = cluster.app.clock.now() + timedelta(seconds=0.2)
    await cluster.app.schedules.create(name="once", task="work", at=soon)
    dying = cluster.start(env={"ROTA_FAILPOINTS": f"{place}=kill"}, **TICK)
    await until("a scheduler dies at its write", lambda: dying.code is not None)
    schedule = await cluster.app.schedules.get("once")
    is_stored = place == "fire.after"
    assert (len(await fires(cluster)), schedule.next_run_at is None) == (int(is_stored), is_stored)
    cluster.start(**TICK)
    await wait_for_jobs(cluster, {("once", soon)})
    assert await fires(cluster) == {("once", soon): 1}


async def test_clock_an_hour_fast_fires_neither_early_nor_twice(
    postgres_cluster: Cluster, tmp_path: Path
) -> None:
    """The store's clock decides: only the process's own wall clock is wrong."""
    cluster = postgres_cluster
    (tmp_path / "fast").mkdir()
    (tmp_path / "fast" / "sitecustomize.py").write_text(HOUR_FAST)
    await cluster.store()
    now = cluster.app.clock.now()
    await cluster.app.schedules.create(name="later", task="work", at=now + timedelta(minutes=30))
    await cluster.ready(
        cluster.start(env={"PYTHONPATH": str(tmp_path / "fast")}, **TICK), cluster.start(**TICK)
    )
    assert (tmp_path / "fast" / "sitecustomize.seen").exists()
    soon = cluster.app.clock.now() + timedelta(seconds=1)
    await cluster.app.schedules.create(name="soon", task="work", every=1, start_at=soon, missed="all")
    await wait_for_fires(cluster, 3, within=60)
    jobs = [job for job in (await cluster.jobs()).values() if job.schedule is not None]
    assert not [job for job in jobs if job.schedule == "later"]
    assert set((await fires(cluster)).values()) == {1}
    assert all(is_on_time(job) for job in jobs)


def is_on_time(job: Job) -> bool:
    assert job.scheduled_for is not None
    return timedelta(seconds=-0.1) < job.created_at - job.scheduled_for < timedelta(minutes=5)
