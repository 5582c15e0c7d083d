"""Jobs that damage their process: other jobs finish, and the worker survives."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from cluster import LONG, Cluster

from rota.model import State


async def test_poison_jobs_do_not_affect_other_jobs(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    worker = cluster.start()
    exits = await cluster.enqueue("exits", max_attempts=2)
    segfaults = await cluster.enqueue("segfaults", max_attempts=2)
    spins = await cluster.enqueue("spins_process", max_attempts=1)
    neighbours = [await cluster.enqueue(task, ms=20) for task in ("work", "work_thread", "work_process") * 5]
    for job, kind, message in (
        (exits, "ProcessDied", "code 3"),
        (segfaults, "ProcessDied", "SIGSEGV"),
        (spins, "Timeout", "0.5 s"),
    ):
        ended = await cluster.wait_finished(job)
        assert (ended.state, ended.error["type"].rpartition(".")[2]) == (State.FAILED, kind)
        assert message in ended.error["message"]
    for job in neighbours:
        assert (await cluster.wait_finished(job)).state is State.SUCCEEDED
        assert len(cluster.executions(job)) == 1
    assert len(cluster.executions(exits)) == len(cluster.executions(segfaults)) == 2
    assert worker.code is None, worker.log


async def test_greedy_jobs_do_not_affect_other_jobs(sqlite_cluster: Cluster) -> None:
    """One eats its memory, one floods its output, one leaves a process behind, one ignores cancellation."""
    cluster = sqlite_cluster
    worker = cluster.start()
    eats = await cluster.enqueue("eats_memory", max_attempts=1)
    prints = await cluster.enqueue("prints", megabytes=1000 if LONG else 20, max_attempts=1)
    forks = await cluster.enqueue("forks", max_attempts=1)
    ignores = await cluster.enqueue("ignores_cancellation", max_attempts=1)
    neighbours = [await cluster.enqueue(task, ms=20) for task in ("work", "work_thread", "work_process") * 5]
    eaten = await cluster.wait_finished(eats)
    assert (eaten.state, eaten.error["type"]) == (State.FAILED, "MemoryError")
    assert (await cluster.wait_finished(prints, within=120)).state is State.SUCCEEDED
    left = (await cluster.wait_finished(forks)).output
    assert (await cluster.wait_finished(ignores)).state in (State.FAILED, State.SUCCEEDED)
    for job in neighbours:
        assert (await cluster.wait_finished(job)).state is State.SUCCEEDED
        assert len(cluster.executions(job)) == 1
    assert worker.code is None, worker.log
    with suppress(ProcessLookupError):
        os.kill(left, signal.SIGKILL)


async def test_timeout_ends_an_endless_loop_in_a_thread(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    worker = cluster.start(concurrency=2)
    spins = await cluster.enqueue("spins_thread", max_attempts=1)
    neighbours = [await cluster.enqueue("work", ms=20) for _ in range(5)]
    for job in neighbours:
        assert (await cluster.wait_finished(job)).state is State.SUCCEEDED
    ended = await cluster.wait_finished(spins, within=10)
    assert (ended.state, ended.error["type"]) == (State.FAILED, "Timeout")
    after = [await cluster.enqueue("work_thread", ms=20) for _ in range(4)]
    for job in after:
        assert (await cluster.wait_finished(job)).state is State.SUCCEEDED
    assert "ignored the stop request" not in worker.log  # its slot is free again
    assert worker.code is None, worker.log
