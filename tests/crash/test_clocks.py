"""Clocks that differ and workers that sleep: nothing runs twice at once, nothing fails for it."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter

import pytest
from cluster import LONG, Cluster, until

from rota.model import State

LEASE_S = 4.0  # a worker that only waits for a core must not lose it
LONG_LEASE_S = 8.0


@pytest.mark.timeout(600)
@pytest.mark.parametrize("off_s", [-60.0, 60.0, -3600.0, 3600.0])
async def test_a_worker_whose_clock_is_off_doubles_nothing(cluster: Cluster, off_s: float) -> None:
    """As after a suspension that its clock did not count, or a failover to a server with another clock.

    Every job runs longer than the other worker needs to take it over, if it saw its lease as expired: by a
    clock that is off by more than a lease, it would at once.
    """
    off = cluster.start(lease_s=LONG_LEASE_S, env={"CRASH_CLOCK_OFF_S": str(off_s)})
    right = cluster.start(lease_s=LONG_LEASE_S)
    await cluster.ready(off, right)
    jobs = [await cluster.enqueue("work", n, ms=1500, max_attempts=2) for n in range(240 if LONG else 48)]
    await cluster.wait_until_idle(within=120)
    logs = cluster.logs()
    assert "rescued job" not in logs, logs
    assert "rejected: job" not in logs, logs
    await cluster.check_invariants(crashes=0)
    ran = Counter(one.pid for one in cluster.run_log.executions())
    assert ran[off.pid] and ran[right.pid], f"one of them did nothing: {ran}"
    found = await cluster.jobs()
    assert {(found[job].attempt, found[job].crashes) for job in jobs} == {(1, 0)}


@pytest.mark.timeout(600)
async def test_a_suspended_worker_costs_no_attempt_and_doubles_no_result(cluster: Cluster) -> None:
    """Two workers are suspended in turn, each for longer than its lease while the other works.

    So every job loses two leases, with ``max_attempts=2``, and then ends well.
    """
    workers = [cluster.start(lease_s=LEASE_S)]
    await cluster.ready(*workers)
    tasks = ("hold", "hold_thread") * 3
    jobs = [await cluster.enqueue(task, latch="end", max_attempts=2) for task in tasks]
    for job in jobs:
        await cluster.wait_started(job)
    workers.append(cluster.start(lease_s=LEASE_S))
    await cluster.ready(*workers)
    for turn, sleeper in enumerate(workers, 2):
        sleeper.send(signal.SIGSTOP)
        for job in jobs:
            assert (await cluster.wait_started(job, turn)).pid != sleeper.pid
        sleeper.send(signal.SIGCONT)
        await until(
            "it gives up what it held",
            lambda sleeper=sleeper: sleeper.log.count("rejected: job") >= len(jobs),
            within=20,
        )
        assert sleeper.code is None, sleeper.log
    cluster.open_latch("end")
    done = {job: await cluster.wait_finished(job) for job in jobs}
    await asyncio.gather(*[cluster.wait_finished(await cluster.enqueue("work", n)) for n in range(20)])
    for job in jobs:
        assert await cluster.job(job) == done[job], "a late result was accepted"
        assert (done[job].state, done[job].attempt, done[job].crashes) == (State.SUCCEEDED, 1, 2)
        assert [one.outcome for one in await cluster.attempts(job)] == ["rescued", "rescued"]
    await cluster.check_invariants(crashes=2)
