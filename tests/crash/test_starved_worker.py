"""The lease guard keeps the jobs of a worker that is at work, and of no other."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from cluster import SWEEP_S, Cluster, WorkerProcess, until

from rota.model import State

LEASE_S = 4.0
AWAY_S = 60.0  # longer than any test waits


def guards_of(worker: WorkerProcess) -> list[int]:
    """The process ids of the worker's lease guards: one, unless something is wrong."""
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if is_guard(stat, worker.pid)]


def is_guard(stat: Path, parent: int) -> bool:
    try:
        fields = stat.read_text().rpartition(")")[2].split()
        command = stat.with_name("cmdline").read_bytes()
    except OSError:
        return False
    return int(fields[1]) == parent and b"lease_guard_child.py" in command


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


async def guard_of(worker: WorkerProcess) -> int:
    await until("the guard starts", lambda: len(guards_of(worker)) == 1)
    return guards_of(worker)[0]


async def starve(cluster: Cluster, task: str, seconds: float, **options: bool) -> tuple[WorkerProcess, str]:
    """A worker whose job holds its interpreter, beside another that takes over what has expired."""
    busy = cluster.start(lease_s=LEASE_S, **options)
    await cluster.ready(busy)
    job = await cluster.enqueue(task, seconds=seconds)
    await cluster.wait_started(job)
    await cluster.ready(cluster.start(lease_s=LEASE_S, sweep_s=SWEEP_S))
    return busy, job


async def check_rescued(cluster: Cluster, job: str) -> None:
    ended = await cluster.wait_finished(job, within=AWAY_S)
    assert (ended.state, ended.attempt, ended.crashes, ended.output) == (State.SUCCEEDED, 1, 1, 2)
    assert [one.outcome for one in await cluster.attempts(job)] == ["rescued"]  # then a silent success


@pytest.mark.timeout(180)
async def test_job_that_holds_the_interpreter_keeps_its_lease(cluster: Cluster) -> None:
    busy, job = await starve(cluster, "hold_interpreter", 1.5 * LEASE_S)
    ended = await cluster.wait_finished(job, within=AWAY_S)
    assert (ended.state, ended.attempt, ended.output) == (State.SUCCEEDED, 1, 1), cluster.logs()
    assert len(cluster.executions(job)) == 1
    assert "rescued" not in cluster.logs() and "rejected" not in cluster.logs()
    assert "too busy to renew its leases" in busy.log
    await until("the guard steps back", lambda: "renews its leases itself again" in busy.log)


@pytest.mark.timeout(180)
async def test_jobs_held_beside_it_keep_their_leases_too(cluster: Cluster) -> None:
    """Neither does the worker give them up when it wakes, though it could not renew them."""
    busy = cluster.start(lease_s=LEASE_S)
    await cluster.ready(busy)
    beside = await cluster.enqueue("hold_thread", latch="end")
    await cluster.wait_started(beside)
    await cluster.enqueue("hold_interpreter", seconds=1.5 * LEASE_S)
    await cluster.ready(cluster.start(lease_s=LEASE_S, sweep_s=SWEEP_S))
    await until("the guard steps in", lambda: "2 renewed for it" in busy.log, within=AWAY_S)
    await until("it steps back", lambda: "itself again" in busy.log, within=AWAY_S)
    cluster.open_latch("end")
    await cluster.wait_until_idle(within=AWAY_S)
    await cluster.check_invariants(crashes=0)
    assert "rejected" not in cluster.logs()


@pytest.mark.timeout(180)
async def test_without_a_guard_the_job_is_taken_over(cluster: Cluster) -> None:
    busy, job = await starve(cluster, "hold_interpreter", 1.5 * LEASE_S, lease_guard=False)
    assert guards_of(busy) == []
    await check_rescued(cluster, job)


@pytest.mark.timeout(180)
async def test_jobs_of_a_killed_worker_are_rescued_from_its_guard(cluster: Cluster) -> None:
    busy, job = await starve(cluster, "hold_interpreter", AWAY_S)
    guard = await guard_of(busy)
    await until("the guard steps in", lambda: "renewed for it" in busy.log)
    cluster.kill(busy)
    await until("the guard ends", lambda: not is_alive(guard))
    await check_rescued(cluster, job)


@pytest.mark.timeout(180)
async def test_jobs_of_a_stopped_worker_are_rescued(cluster: Cluster) -> None:
    busy, job = await starve(cluster, "hold_interpreter", AWAY_S)
    await until("the guard steps in", lambda: "renewed for it" in busy.log)
    busy.send(signal.SIGSTOP)
    await check_rescued(cluster, job)
    assert "is stopped" in busy.log


@pytest.mark.timeout(180)
async def test_jobs_of_a_hung_worker_are_rescued(cluster: Cluster) -> None:
    busy, job = await starve(cluster, "hang", AWAY_S)
    await check_rescued(cluster, job)
    assert "does nothing" in busy.log


async def test_guard_ends_with_its_worker_and_not_before(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    worker = cluster.start(lease_s=LEASE_S)
    job = await cluster.enqueue("hold", latch="end")
    await cluster.wait_started(job)
    guard = await guard_of(worker)
    await until("the guard ignores signals", lambda: ignores_terminate(guard))
    os.kill(guard, signal.SIGTERM)  # as a service manager does, to every process of a service
    worker.send(signal.SIGTERM)
    await until("it drains", lambda: "no new jobs" in worker.log)
    assert is_alive(guard)
    cluster.open_latch("end")
    await worker.exit(within=30)
    assert (worker.code, is_alive(guard)) == (0, False), worker.log
    assert "lease guard" not in worker.log
    assert await (await cluster.store()).documents("worker") == []


def ignores_terminate(pid: int) -> bool:
    (line,) = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "SigIgn" in line]
    return bool(int(line.split()[1], 16) >> signal.SIGTERM - 1 & 1)


async def test_guard_that_dies_is_replaced(sqlite_cluster: Cluster) -> None:
    worker = sqlite_cluster.start(lease_s=LEASE_S)
    first = await guard_of(worker)
    os.kill(first, signal.SIGKILL)
    await until("another guard starts", lambda: guards_of(worker) not in ([], [first]))
    assert "its lease guard died (-9)" in worker.log


@pytest.mark.timeout(180)
async def test_guard_gives_up_after_ten_leases(postgres_cluster: Cluster) -> None:
    """A task that never ends must not keep the other jobs of its worker for ever."""
    cluster = postgres_cluster
    busy = cluster.start(lease_s=0.5)
    await cluster.ready(busy)
    job = await cluster.enqueue("hold_interpreter", seconds=AWAY_S)
    await until("the guard gives up", lambda: "has been silent for 10 leases" in busy.log)
    await cluster.ready(cluster.start(lease_s=LEASE_S, sweep_s=SWEEP_S))
    await check_rescued(cluster, job)
