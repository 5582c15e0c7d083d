"""Leases: one execution at a time, late results are rejected, a busy worker keeps its jobs."""

from __future__ import annotations

import asyncio
import signal

import pytest
from cluster import LEASE_S, LONG, RESCUE_S, Cluster, WorkerProcess, until

from rota.model import State
from rota.store.calls import settle
from rota.testing.conformance.factories import change

EXECUTORS = ("hold", "hold_thread", "hold_process")


@pytest.mark.timeout(600)
async def test_each_job_runs_on_exactly_one_of_two_workers(cluster: Cluster) -> None:
    await cluster.ready(*[cluster.start(lease_s=5.0) for _ in range(2)])
    for n in range(1000 if LONG else 100):
        await cluster.enqueue("work", n)
        if n % 20 == 0:  # from idle, where one job wakes both workers
            await cluster.wait_until_idle(within=10)
    await cluster.wait_until_idle(within=20)
    await cluster.check_invariants(crashes=0)


@pytest.mark.timeout(600)
async def test_results_of_a_stalled_worker_are_rejected(cluster: Cluster) -> None:
    """Another worker ran its jobs, one in each executor, and that result is final."""
    for turn in range(10 if LONG else 1):
        await stop_and_wake(cluster, latch=f"late{turn}")


async def stop_and_wake(cluster: Cluster, latch: str) -> None:
    zombie = cluster.start(lease_s=2.0)
    jobs = [await cluster.enqueue(task, latch=latch, only_first=True) for task in EXECUTORS]
    for job in jobs:
        await cluster.wait_started(job)
    zombie.send(signal.SIGSTOP)
    successor = cluster.start(lease_s=2.0)
    done = {job: await cluster.wait_finished(job, within=RESCUE_S + 20) for job in jobs}
    cluster.open_latch(latch)
    zombie.send(signal.SIGCONT)
    await until("the zombie is refused", lambda: zombie.log.count("rejected: job") >= len(jobs), within=10)
    await check_usable(cluster, zombie, successor)
    for job in jobs:
        after = await cluster.job(job)
        assert after == done[job], "a late write was accepted"
        assert (after.state, after.output, after.attempt, after.crashes) == (State.SUCCEEDED, 2, 1, 1)
        assert after.progress == {"percent": 2.0, "message": "holding"}
        first, second = cluster.executions(job)
        assert second.token == first.token + 2  # the rescue, then the claim
        assert [one.outcome for one in await cluster.attempts(job)] == ["rescued"]  # then a silent success
        assert [state for id, state in cluster.run_log.accepted() if id == job] == ["succeeded"]
    zombie.kill()


async def check_usable(cluster: Cluster, zombie: WorkerProcess, successor: WorkerProcess) -> None:
    """The worker that was stalled runs jobs again."""
    successor.kill()
    await cluster.wait_finished(await cluster.enqueue("work"), within=10)
    assert zombie.code is None, zombie.log


async def test_job_that_blocks_the_loop_keeps_its_lease(cluster: Cluster) -> None:
    busy, idle = cluster.start(), cluster.start()
    await cluster.ready(busy, idle)
    job = await cluster.enqueue("block_loop", seconds=2 * LEASE_S)
    ended = await cluster.wait_finished(job, within=2 * LEASE_S + 10)
    assert (ended.state, ended.attempt) == (State.SUCCEEDED, 1)
    assert len(cluster.executions(job)) == 1
    assert "rescued" not in cluster.logs()


async def test_store_accepts_one_of_many_concurrent_settlements(cluster: Cluster) -> None:
    """The worker's settlement and a thousand from this process, with its lease token, all at once."""
    worker = cluster.start(lease_s=10.0)
    job = await cluster.enqueue("hold", latch="now")
    await cluster.wait_started(job)
    store = await cluster.store()
    settlement = change(await cluster.job(job), State.CANCELLED)
    cluster.open_latch("now")
    refusals = await asyncio.gather(
        *[settle(store, [settlement], cluster.app.clock.now()) for _ in range(1000)]
    )
    accepted = sum(not refused for refused in refusals)
    if accepted:
        await until("the worker is refused", lambda: "rejected" in worker.log, within=10)
    else:
        await until("the worker settles it", lambda: bool(cluster.run_log.accepted()), within=10)
    assert accepted + len(cluster.run_log.accepted()) == 1
    assert (await cluster.job(job)).state is (State.CANCELLED if accepted else State.SUCCEEDED)
