"""SIGTERM: no job is left running, a stop costs no attempt, and it never takes long."""

from __future__ import annotations

import signal

from cluster import Cluster, until

from rota.model import State

ALL = ("hold", "hold_thread", "hold_process")


async def check_none_running(cluster: Cluster) -> None:
    assert [job.id for job in (await cluster.jobs()).values() if job.state is State.RUNNING] == []


async def test_sigterm_lets_running_jobs_finish(cluster: Cluster) -> None:
    worker = cluster.start(lease_s=30.0)
    jobs = [await cluster.enqueue(task, latch="go") for task in ALL]
    for job in jobs:
        await cluster.wait_started(job)
    worker.send(signal.SIGTERM)
    await until("it drains", lambda: "no new jobs" in worker.log)
    late = await cluster.enqueue("work")
    cluster.open_latch("go")
    await worker.exit(within=10)
    assert worker.code == 0, worker.log
    for job in jobs:
        assert ((await cluster.job(job)).state, len(cluster.executions(job))) == (State.SUCCEEDED, 1)
    assert ((await cluster.job(late)).state, cluster.executions(late)) == (State.QUEUED, [])
    await check_none_running(cluster)


async def test_sigterm_releases_jobs_that_do_not_finish_in_time(cluster: Cluster) -> None:
    worker = cluster.start(lease_s=30.0, shutdown_timeout=0.5)
    jobs = [await cluster.enqueue(task, latch="never") for task in ALL]
    for job in jobs:
        await cluster.wait_started(job)
    worker.send(signal.SIGTERM)
    await worker.exit(within=5)
    assert worker.code == 0, worker.log
    await check_released(cluster, jobs)


async def test_second_sigterm_releases_jobs_at_once(cluster: Cluster) -> None:
    worker = cluster.start(lease_s=30.0, concurrency=3)
    jobs = [await cluster.enqueue(task, latch="never") for task in ALL]
    for job in jobs:
        await cluster.wait_started(job)
    worker.send(signal.SIGTERM)
    await until("it drains", lambda: "no new jobs" in worker.log)
    worker.send(signal.SIGTERM)
    await worker.exit(within=5)
    assert worker.code is not None and worker.code >= 0, worker.log
    await check_released(cluster, jobs)


async def check_released(cluster: Cluster, jobs: list[str]) -> None:
    await check_none_running(cluster)
    for job in jobs:
        found = await cluster.job(job)
        assert (found.state, found.attempt) == (State.QUEUED, 0)
        assert found.run_at <= cluster.app.clock.now(), "it must be due at once"


async def test_idle_worker_exits_at_once(cluster: Cluster) -> None:
    worker = cluster.start()
    await cluster.ready(worker)
    worker.send(signal.SIGTERM)
    await worker.exit(within=3)
    assert worker.code == 0, worker.log
