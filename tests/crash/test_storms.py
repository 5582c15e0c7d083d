"""Many failures at once, and migrations beside running workers."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from cluster import LONG, TIMEOUT_S, Cluster, until
from programs import command

from rota.model import State
from servers import Postgres

MIGRATIONS = 5 if LONG else 2
JOBS = 2000 if LONG else 150
LARGEST_ERROR = 32 * 1024  # characters of one stored error


@pytest.mark.timeout(300)
async def test_service_that_is_down_costs_one_attempt_per_backoff_step(cluster: Cluster) -> None:
    cluster.start(lease_s=10.0, concurrency=16)
    handles = await cluster.app.enqueue_many("fails_until", [{"latch": "up"}] * JOBS, max_attempts=20)
    for handle in handles:
        cluster.run_log.write("A", handle.id, 0)
    await until(
        "each has failed at least twice",
        lambda: all(n >= 2 for n in tries(cluster).values()) and len(tries(cluster)) == JOBS,
        within=120,
    )
    cluster.open_latch("up")
    await cluster.wait_until_idle(within=120)
    jobs = await cluster.jobs()
    assert {job.state for job in jobs.values()} == {State.SUCCEEDED}
    counted = tries(cluster)
    for id, job in jobs.items():
        assert counted[id] == job.attempt, "an attempt was made without being counted"
    one = max(jobs.values(), key=lambda job: job.attempt)
    attempts = await cluster.attempts(one.id)
    assert all(len(attempt.error_json or "") < LARGEST_ERROR for attempt in attempts)


def tries(cluster: Cluster) -> Counter[str]:
    return Counter(one.job for one in cluster.run_log.executions())


@pytest.mark.timeout(300)
async def test_migrations_at_once_and_killed_beside_running_workers(cluster: Cluster) -> None:
    workers = [cluster.start(lease_s=5.0) for _ in range(2)]
    await cluster.ready(*workers)
    stop = asyncio.Event()
    producer = asyncio.create_task(cluster.produce(stop, pause=0.01))
    migrations = [
        asyncio.create_task(command(cluster, "migrate", url=cluster.url)) for _ in range(MIGRATIONS)
    ]
    killed = asyncio.create_task(command(cluster, "migrate", url=cluster.url))
    await asyncio.sleep(0.3)  # into its work, or nearly
    killed.cancel()
    for code, said in await asyncio.gather(*migrations):
        assert code == 0, said
    before = len(cluster.run_log.lines("E"))
    await until("jobs flow", lambda: len(cluster.run_log.lines("E")) > before + 20)
    stop.set()
    await producer
    await cluster.wait_until_idle(within=TIMEOUT_S)
    assert not cluster.run_log.lines("U"), "an enqueue failed beside a migration"
    await cluster.check_invariants(crashes=0)


@pytest.mark.timeout(300)
async def test_worker_beside_the_functions_of_another_version_loses_nothing(
    postgres_cluster: Cluster, postgres_server: Postgres
) -> None:
    """As one that still runs when `rota migrate` of a newer version has replaced what it calls."""
    cluster, database = postgres_cluster, postgres_cluster.url.rpartition("/")[2]
    worker = cluster.start(lease_s=5.0)
    held = await cluster.enqueue("hold", latch="end", max_attempts=1)
    await cluster.wait_started(held)
    postgres_server.execute("ALTER FUNCTION rota.claim RENAME TO claim_of_another_version", database)
    waiting = [await cluster.enqueue("work", n) for n in range(5)]
    cluster.open_latch("end")
    assert (await cluster.wait_finished(held)).state is State.SUCCEEDED
    await until("it says what is wrong", lambda: "run `rota migrate`" in worker.log)
    before = worker.log.count("\n")
    await asyncio.sleep(2)  # what is measured
    assert worker.log.count("\n") - before < 20, worker.log
    assert not any(cluster.executions(job) for job in waiting)
    postgres_server.execute("ALTER FUNCTION rota.claim_of_another_version RENAME TO claim", database)
    await cluster.wait_until_idle(within=TIMEOUT_S)
    assert worker.code is None, worker.log
    await cluster.check_invariants(crashes=0)
