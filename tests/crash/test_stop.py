"""SIGTERM: nothing is left running, nothing is charged for being stopped, and it never takes long."""

from __future__ import annotations

import signal

from attack import Site, until

from rota.model import State

ALL = ("hold", "hold_thread", "hold_process")


async def nothing_runs(site: Site) -> None:
    assert [job.id for job in (await site.jobs()).values() if job.state is State.RUNNING] == []


async def test_term_lets_running_jobs_finish(site: Site) -> None:
    worker = site.start(lease_s=30.0)
    jobs = [await site.enqueue(task, gate="go") for task in ALL]
    for job in jobs:
        await site.begun(job)
    worker.send(signal.SIGTERM)
    await until("it drains", lambda: "no new jobs" in worker.log)
    late = await site.enqueue("work")
    site.open_gate("go")
    await worker.exit(within=10)
    assert worker.code == 0, worker.log
    for job in jobs:
        assert ((await site.job(job)).state, len(site.executions(job))) == (State.SUCCEEDED, 1)
    assert ((await site.job(late)).state, site.executions(late)) == (State.QUEUED, [])
    await nothing_runs(site)


async def test_term_hands_back_what_does_not_finish_in_time(site: Site) -> None:
    worker = site.start(lease_s=30.0, shutdown_timeout=0.5)
    jobs = [await site.enqueue(task, gate="never") for task in ALL]
    for job in jobs:
        await site.begun(job)
    worker.send(signal.SIGTERM)
    await worker.exit(within=5)
    assert worker.code == 0, worker.log
    await released(site, jobs)


async def test_a_second_term_hands_back_at_once(site: Site) -> None:
    worker = site.start(lease_s=30.0, concurrency=3)
    jobs = [await site.enqueue(task, gate="never") for task in ALL]
    for job in jobs:
        await site.begun(job)
    worker.send(signal.SIGTERM)
    await until("it drains", lambda: "no new jobs" in worker.log)
    worker.send(signal.SIGTERM)
    await worker.exit(within=5)
    assert worker.code is not None and worker.code >= 0, worker.log
    await released(site, jobs)


async def released(site: Site, jobs: list[str]) -> None:
    await nothing_runs(site)
    for job in jobs:
        found = await site.job(job)
        assert (found.state, found.attempt) == (State.QUEUED, 0)
        assert found.run_at <= site.app.clock.now(), "it must be free to run at once"


async def test_an_idle_worker_leaves_at_once(site: Site) -> None:
    worker = site.start()
    await site.ready(worker)
    worker.send(signal.SIGTERM)
    await worker.exit(within=3)
    assert worker.code == 0, worker.log
