"""Limits hold while workers are killed and stopped, and while the limits themselves change.

The tasks write when they ran into a ledger outside the system; ``limit_check.py`` judges it.
"""

from __future__ import annotations

import asyncio
import random
import signal
import time
from collections import Counter

import pytest
from cluster import LONG, LONG_LEASE_S, Cluster, WorkerProcess, until
from limit_check import NS, above_rate, above_running, out_of_order
from limit_load import LimitedLoad

from rota.model import Limits, State
from rota.runtime.failpoints import PLACES

WORKERS = 8
POINTS = [place for place in PLACES if not place.startswith(("prune", "fire"))]
# A worker should survive some of its frequent calls.
CHANCES = {"claim": 0.03, "settle": 0.03, "handler": 0.01, "beat": 0.5, "rescue": 1.0}
SECONDS = 60.0 if LONG else 3.0
JOBS = 400  # to begin with
MORE = 40  # whenever a limit changes


class Fleet:
    """Eight workers that die and are replaced; knows when each process died."""

    def __init__(self, cluster: Cluster, places: list[str]) -> None:
        self.cluster = cluster
        self.places = places
        self.died_at: dict[int, int] = {}
        self.started = 0

    def fill(self) -> None:
        """Replace the dead, each with one that dies at the next place; sometimes with one that does not."""
        self.bury()
        for _ in range(WORKERS - len(self.cluster.alive)):
            place = self.places[self.started % len(self.places)]
            chance = CHANCES[place.partition(".")[0]]
            self.started += 1
            points = {} if self.started % 3 == 0 else {"ROTA_FAILPOINTS": f"{place}=kill:{chance}"}
            self.start(points)

    def start(self, env: dict[str, str]) -> WorkerProcess:
        return self.cluster.start(env=env, lease_s=LONG_LEASE_S, concurrency=6)

    def bury(self) -> None:
        for worker in self.cluster.workers:
            if worker.code is not None:
                self.died_at.setdefault(worker.pid, time.time_ns())

    @property
    def killed(self) -> int:
        return sum(worker.code == -9 for worker in self.cluster.workers)


@pytest.mark.timeout(600)
async def test_limits_hold_while_workers_die_and_limits_change(cluster: Cluster) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    load, fleet = LimitedLoad(cluster, chance), Fleet(cluster, chance.sample(POINTS, len(POINTS)))
    await load.set_all()
    await load.enqueue(JOBS)
    fleet.fill()
    await until("a worker starts", lambda: bool(cluster.started))
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        await load.change_one()
        await load.enqueue(MORE)
        await load.cancel_some(2)
        if cluster.started and chance.random() < 0.15:
            chance.choice(cluster.started).send(signal.SIGTERM)
        await asyncio.sleep(chance.uniform(0, 0.3))  # a random time between changes, not a wait for anything
        fleet.fill()
    await finish(cluster, load, fleet)
    await check(cluster, load, fleet)


async def finish(cluster: Cluster, load: LimitedLoad, fleet: Fleet) -> None:
    """Let workers that do not die finish the jobs."""
    for worker in cluster.alive:
        worker.send(signal.SIGTERM)
    await load.set_all()
    for _ in range(WORKERS // 2):
        fleet.start({})
    waiting = asyncio.create_task(cluster.wait_until_idle(within=60 + SECONDS))
    while not waiting.done():
        fleet.bury()
        await asyncio.wait([waiting], timeout=0.02)
    await waiting


async def check(cluster: Cluster, load: LimitedLoad, fleet: Fleet) -> None:
    ledger = load.ledger(fleet.died_at, int(LONG_LEASE_S * NS))
    late = max(entry.began - entry.claimed for entry in ledger)
    print(
        f"{len(ledger)} executions of {len(load.jobs)} jobs, {fleet.killed} workers killed, {len(load.rules)}"
        f" changes of limits; from claim to start at most {late / 1e6:.0f} ms"
    )
    assert not (found := above_running(ledger, load.rules)), found[:3]
    assert not (found := above_rate(ledger, load.rules)), found[:3]
    assert not (found := above_rate(ledger, load.rules, by_start=True, late=late)), found[:3]
    await check_ends(cluster, load, fleet)
    for held in await (await cluster.store()).survey(Limits(None)):
        assert held.running == 0, held
    assert not (found := out_of_order(ledger, load.serial())), found[:3]


async def check_ends(cluster: Cluster, load: LimitedLoad, fleet: Fleet) -> None:
    jobs = await cluster.jobs()
    assert jobs.keys() == load.jobs.keys()
    for job in jobs.values():
        if job.state is State.CANCELLED:
            assert job.id in load.cancelled, job
        elif job.state is State.FAILED:  # each time it ran, its worker was killed
            assert job.error is not None and job.error["type"] == "Quarantined", job
        else:
            assert job.state is State.SUCCEEDED, job
    ends = Counter(job for job, _ in cluster.run_log.accepted())
    assert max(ends.values()) == 1, ends.most_common(3)
    runs = Counter(one.job for one in cluster.run_log.executions())
    failing = {id for id, job in load.jobs.items() if '"fails": true' in job.payload_json}
    often = {id: times for id, times in runs.items() if times > 1 + (id in failing) + jobs[id].crashes}
    assert len(often) <= fleet.killed * 6, "more jobs ran again than were held by workers that died"
