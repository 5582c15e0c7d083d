"""kill -9 of workers: at random, and at each named place."""

from __future__ import annotations

import asyncio
import random
import signal

import pytest
from attack import LOADED_LEASE_S, LONG, RECOVERY_S, Site, until

from rota.model import State
from rota.runtime.failpoints import PLACES

KILLS = 60 if LONG else 10
WORKERS = 3
LOAD = ("work", "work", "work_thread", "work", "work_process", "work")
# Pruning and firing have nothing to do here; schedulers that die have tests of their own.
POINTS = [place for place in PLACES if not place.startswith(("prune", "fire"))]
VERBS = sorted({place.partition(".")[0] for place in POINTS})


@pytest.mark.timeout(600)
async def test_nothing_is_lost_or_doubled_when_workers_are_killed_at_random(site: Site) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    await site.ready(*[site.start(lease_s=LOADED_LEASE_S) for _ in range(WORKERS)])
    stop = asyncio.Event()
    producer = asyncio.create_task(site.produce(stop, pause=0.01, tasks=LOAD))
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0, 0.5))  # the moment of the blow, not a wait for anything
        await until("a worker is at work", lambda: bool(site.working))
        site.kill(chance.choice(site.working))
        site.start(lease_s=LOADED_LEASE_S)
    stop.set()
    await producer
    # What the last killed worker held comes back after its lease; then it is only work.
    await site.quiet(within=LOADED_LEASE_S + 20)
    await site.judge(crashes=site.kills)
    assert len(site.ledger.executions()) > len(site.ledger.acked()), "no kill hit a running job"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("verb", VERBS)
async def test_nothing_is_lost_when_workers_die_before_and_after_a_verb(sqlite_site: Site, verb: str) -> None:
    places = [place for place in POINTS if place.startswith(verb)]
    for _ in range(10 if LONG else 1):
        await die_at(sqlite_site, places * 2)


@pytest.mark.timeout(600)
async def test_nothing_is_lost_on_a_server_when_workers_die_at_every_named_place(postgres_site: Site) -> None:
    for _ in range(10 if LONG else 1):
        await die_at(postgres_site, POINTS)


async def die_at(site: Site, places: list[str]) -> None:
    """A worker for each place, all at once, each on its way to its death; then one to tidy up."""
    if any(place.startswith("rescue") for place in places):
        await leave_behind(site)
    for n in range(60):
        await site.enqueue("work", n, ms=n % 4 * 5)
    doomed = [
        site.start(env={"ROTA_FAILPOINTS": f"{place}=kill:{share(place)}"}, concurrency=4, lease_s=2.0)
        for place in places
    ]
    producing = asyncio.Event()
    producer = asyncio.create_task(site.produce(producing, pause=0.05))
    for worker, place in zip(doomed, places, strict=True):
        await until(f"a worker dies at {place}", lambda dies=worker: dies.code is not None, within=60)
        assert worker.code == -9, worker.log
        site.kills += 1
    producing.set()
    await producer
    tidy = site.start(lease_s=2.0)
    await site.quiet(within=20)
    await site.judge(crashes=site.kills)
    tidy.send(signal.SIGTERM)  # an idle worker that hears of every job first would starve the next doomed
    await until("the last worker stops", lambda: tidy.code is not None)


def share(place: str) -> float:
    """A worker does most things often and should survive some of them; it rescues and beats seldom."""
    return 1.0 if place.startswith(("rescue", "beat")) else 0.3


async def leave_behind(site: Site) -> None:
    """A job whose worker is dead, for another one to rescue."""
    job = await site.enqueue("work", ms=300)
    worker = site.start()
    await site.begun(job)
    site.kill(worker)


async def test_a_worker_that_dies_while_pruning_harms_nothing(sqlite_site: Site) -> None:
    site = sqlite_site
    await site.enqueue("work")
    doomed = site.start(env={"ROTA_FAILPOINTS": "prune.before=kill"})
    await until("a worker dies", lambda: doomed.code is not None)
    site.start()
    await site.quiet(within=RECOVERY_S + 10)
    await site.judge(crashes=1)


async def test_children_are_gone_after_their_worker_was_killed(sqlite_site: Site) -> None:
    site = sqlite_site
    job = await site.enqueue("hold_process", gate="never")
    worker = site.start()
    child = (await site.begun(job)).pid
    assert child != worker.pid
    worker.kill()
    await until("the child ends", lambda: not is_alive(child), within=5)


async def test_a_job_that_kills_its_workers_fails_after_its_attempts(sqlite_site: Site) -> None:
    site = sqlite_site
    job = await site.enqueue("kills_worker", max_attempts=2)
    for _ in range(2):
        await site.start().exit(within=30)
    last = site.start()
    ended = await site.ends(job, within=RECOVERY_S + 15)
    assert (ended.state, ended.error["type"]) == (State.FAILED, "LeaseExpired")
    assert len(site.executions(job)) == 2
    assert last.code is None


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that is dead and waits to be buried does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
