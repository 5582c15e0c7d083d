"""kill -9 of workers, at random times and at each failpoint."""

from __future__ import annotations

import asyncio
import random
import signal

import pytest
from cluster import LONG, LONG_LEASE_S, RESCUE_S, Cluster, WorkerProcess, poll, until

from rota.model import State
from rota.runtime.failpoints import PLACES

KILLS = 60 if LONG else 10
WORKERS = 3
LOAD = ("work", "work", "work_thread", "work", "work_process", "work")
# Pruning and firing do nothing here; dying schedulers have their own tests.
POINTS = [place for place in PLACES if not place.startswith(("prune", "fire"))]
METHODS = sorted({place.partition(".")[0] for place in POINTS})


@pytest.mark.timeout(600)
async def test_workers_killed_at_random_lose_and_repeat_no_job(cluster: Cluster) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)

    def start() -> WorkerProcess:
        """A job that chance hits with three kills in a row is not to be taken for their cause."""
        return cluster.start(lease_s=LONG_LEASE_S, env={"ROTA_QUARANTINE_AFTER": "20"})

    await cluster.ready(*[start() for _ in range(WORKERS)])
    stop = asyncio.Event()
    producer = asyncio.create_task(cluster.produce(stop, pause=0.01, tasks=LOAD))
    for _ in range(KILLS):
        await asyncio.sleep(chance.uniform(0, 0.5))  # a random time to kill, not a wait for anything
        await until("a worker has started", lambda: bool(cluster.started))
        cluster.kill(chance.choice(cluster.started))
        start()
    stop.set()
    await producer
    # The jobs of the last killed worker return after its lease.
    await cluster.wait_until_idle(within=LONG_LEASE_S + 20)
    await cluster.check_invariants(crashes=cluster.kills)
    assert len(cluster.run_log.executions()) > len(cluster.run_log.acknowledged()), (
        "no kill hit a running job"
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize("method", METHODS)
async def test_workers_dying_around_a_store_method_lose_no_job(sqlite_cluster: Cluster, method: str) -> None:
    places = [place for place in POINTS if place.startswith(method)]
    for _ in range(10 if LONG else 1):
        await kill_at(sqlite_cluster, places * 2)


@pytest.mark.timeout(600)
async def test_workers_dying_at_every_failpoint_lose_no_job_on_postgres(postgres_cluster: Cluster) -> None:
    for _ in range(10 if LONG else 1):
        await kill_at(postgres_cluster, POINTS)


async def kill_at(cluster: Cluster, places: list[str]) -> None:
    """Run a worker for each place until it is killed there; then one more to finish the jobs."""
    if any(place.startswith("rescue") for place in places):
        await leave_expired_lease(cluster)
    for n in range(60):
        await cluster.enqueue("work", n, ms=n % 4 * 5)
    dying = [
        cluster.start(
            env={"ROTA_FAILPOINTS": f"{place}=kill:{kill_chance(place)}"}, concurrency=4, lease_s=2.0
        )
        for place in places
    ]
    producing = asyncio.Event()
    producer = asyncio.create_task(cluster.produce(producing, pause=0.05))
    for worker, place in zip(dying, places, strict=True):
        await until(f"a worker dies at {place}", lambda dies=worker: dies.code is not None, within=60)
        assert worker.code == -9, worker.log
        cluster.kills += 1
    producing.set()
    await producer
    last = cluster.start(lease_s=2.0)
    await cluster.wait_until_idle(within=20)
    await cluster.check_invariants(crashes=cluster.kills)
    last.send(signal.SIGTERM)  # an idle worker would take the jobs from the next round
    await until("the last worker stops", lambda: last.code is not None)


def kill_chance(place: str) -> float:
    """A worker should survive some of its frequent calls; rescues and heartbeats are rare."""
    return 1.0 if place.startswith(("rescue", "beat")) else 0.3


async def leave_expired_lease(cluster: Cluster) -> None:
    """Leave a job whose worker is dead, for another one to rescue."""
    job = await cluster.enqueue("work", ms=300)
    worker = cluster.start()
    await cluster.wait_started(job)
    cluster.kill(worker)


async def test_workers_dying_around_a_settlement_leave_one_set_of_follow_ups(cluster: Cluster) -> None:
    jobs = [await cluster.enqueue("fan_out", n) for n in range(4)]
    for place in ("settle.before", "settle.after"):
        dying = cluster.start(env={"ROTA_FAILPOINTS": f"{place}=kill"}, concurrency=2, lease_s=1.0)
        await dying.exit(within=30)
        assert dying.code == -9, dying.log
    cluster.start(lease_s=1.0)
    await cluster.wait_until_idle(within=RESCUE_S + 15)
    for job in jobs:
        assert (await cluster.job(job)).state is State.SUCCEEDED
        children = (await cluster.app.jobs(parent=job)).items
        assert [child.state for child in children] == [State.SUCCEEDED] * 3


async def test_worker_dying_while_pruning_loses_no_job(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    await cluster.enqueue("work")
    dying = cluster.start(env={"ROTA_FAILPOINTS": "prune.before=kill"})
    await until("a worker dies", lambda: dying.code is not None)
    cluster.start()
    await cluster.wait_until_idle(within=RESCUE_S + 10)
    await cluster.check_invariants(crashes=1)


async def test_child_processes_exit_after_their_worker_is_killed(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    job = await cluster.enqueue("hold_process", latch="never")
    worker = cluster.start()
    child = (await cluster.wait_started(job)).pid
    assert child != worker.pid
    worker.kill()
    await until("the child exits", lambda: not is_alive(child), within=5)


async def test_job_that_kills_its_workers_is_quarantined_at_the_third(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    job = await cluster.enqueue("kills_worker")
    for _ in range(3):
        await cluster.start().exit(within=30)
    last = cluster.start()
    ended = await cluster.wait_finished(job, within=RESCUE_S + 15)
    assert (ended.state, ended.error["type"], ended.crashes) == (State.FAILED, "Quarantined", 3)
    workers = {one.worker for one in cluster.executions(job)}
    assert len(cluster.executions(job)) == 3 == len(workers)
    assert all(f"worker {worker} stopped responding" in ended.error["message"] for worker in workers)
    assert last.code is None


@pytest.mark.skipif(not LONG, reason="takes minutes: make crash")
@pytest.mark.timeout(900)
async def test_neighbours_of_a_job_that_kills_its_workers_are_not_quarantined(cluster: Cluster) -> None:
    """They are lost with it again and again, until it stands out."""
    neighbours = [await cluster.enqueue("work", n, ms=3000) for n in range(8)]
    poison = await cluster.enqueue("kills_worker")
    while not (await cluster.job(poison)).is_final:
        worker = cluster.start(concurrency=16)
        await poll(lambda: is_over(cluster, worker, poison), bool, 120, lambda _: "it exits, or the job ends")  # noqa: B023
        cluster.kills += worker.code is not None
    await cluster.wait_until_idle(within=120)
    found = await cluster.jobs()
    assert found[poison].error["type"] == "Quarantined"
    assert {found[job].state for job in neighbours} == {State.SUCCEEDED}
    print(f"{cluster.kills} workers died; crashes {sorted(found[job].crashes for job in found)}")


async def is_over(cluster: Cluster, worker: WorkerProcess, job: str) -> bool:
    return worker.code is not None or (await cluster.job(job)).is_final


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie process does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
