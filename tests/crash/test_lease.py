"""Leases: one runner at a time, a zombie is fenced off, a busy worker keeps what it holds."""

from __future__ import annotations

import asyncio
import signal

import pytest
from attack import LEASE_S, LONG, RECOVERY_S, Site, WorkerProcess, until

from rota.model import State
from rota.store.calls import settle
from rota.testing.conformance.factories import change

EXECUTORS = ("hold", "hold_thread", "hold_process")


@pytest.mark.timeout(600)
async def test_of_two_workers_exactly_one_runs_each_job(site: Site) -> None:
    await site.ready(*[site.start(lease_s=5.0) for _ in range(2)])
    for n in range(1000 if LONG else 100):
        await site.enqueue("work", n)
        if n % 20 == 0:  # from rest, where both are woken for the one job
            await site.quiet(within=10)
    await site.quiet(within=20)
    await site.judge(crashes=0)


@pytest.mark.timeout(600)
async def test_a_stopped_worker_is_refused_when_it_wakes(site: Site) -> None:
    """Its jobs, one in each executor, were run elsewhere meanwhile: that result stands."""
    for turn in range(10 if LONG else 1):
        await stop_and_wake(site, gate=f"late{turn}")


async def stop_and_wake(site: Site, gate: str) -> None:
    zombie = site.start(lease_s=2.0)
    jobs = [await site.enqueue(task, gate=gate, only_first=True) for task in EXECUTORS]
    for job in jobs:
        await site.begun(job)
    zombie.send(signal.SIGSTOP)
    heir = site.start(lease_s=2.0)
    done = {job: await site.ends(job, within=RECOVERY_S + 20) for job in jobs}
    site.open_gate(gate)
    zombie.send(signal.SIGCONT)
    await until("the zombie is refused", lambda: zombie.log.count("rejected: job") >= len(jobs), within=10)
    await works_on(site, zombie, heir)
    for job in jobs:
        after = await site.job(job)
        assert after == done[job], "a late write was accepted"
        assert (after.state, after.output, after.attempt) == (State.SUCCEEDED, 2, 2)
        assert after.progress == {"percent": 2.0, "message": "holding"}
        first, second = site.executions(job)
        assert second.token == first.token + 2  # the rescue, then the claim
        assert [one.outcome for one in await site.attempts(job)] == ["rescued", "succeeded"]
        assert [state for id, state in site.ledger.accepted() if id == job] == ["succeeded"]
    zombie.kill()


async def works_on(site: Site, zombie: WorkerProcess, heir: WorkerProcess) -> None:
    """The one that was stopped is a worker like any other again."""
    heir.kill()
    await site.ends(await site.enqueue("work"), within=10)
    assert zombie.code is None, zombie.log


async def test_a_job_that_blocks_the_loop_keeps_its_lease(site: Site) -> None:
    busy, idle = site.start(), site.start()
    await site.ready(busy, idle)
    job = await site.enqueue("block_loop", seconds=2 * LEASE_S)
    ended = await site.ends(job, within=2 * LEASE_S + 10)
    assert (ended.state, ended.attempt) == (State.SUCCEEDED, 1)
    assert len(site.executions(job)) == 1
    assert "rescued" not in site.logs()


async def test_of_many_settles_by_two_processes_one_is_accepted(site: Site) -> None:
    """The worker's own settle and a thousand from here, with its token, all at once."""
    worker = site.start(lease_s=10.0)
    job = await site.enqueue("hold", gate="now")
    await site.begun(job)
    store = await site.store()
    settlement = change(await site.job(job), State.CANCELLED)
    site.open_gate("now")
    refusals = await asyncio.gather(*[settle(store, [settlement], site.app.clock.now()) for _ in range(1000)])
    accepted = sum(not refused for refused in refusals)
    if accepted:
        await until("the worker is refused", lambda: "refused" in worker.log, within=10)
    else:
        await until("the worker is told", lambda: bool(site.ledger.accepted()), within=10)
    assert accepted + len(site.ledger.accepted()) == 1
    assert (await site.job(job)).state is (State.CANCELLED if accepted else State.SUCCEEDED)
