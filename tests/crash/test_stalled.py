"""A store that stalls for a while, and a worker that dies after it: its jobs are rescued as soon as ever."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from cluster import LONG, SWEEP_S, TIMEOUT_S, Cluster, until

from servers import Postgres

STALL_S = 8.0 if LONG else 1.5
LEASE_S = 30.0 if LONG else 2.0
JOBS = 5


@asynccontextmanager
async def stalled(cluster: Cluster, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """Nothing is answered meanwhile: the server is stopped, or a stranger holds the lock of the file."""
    if cluster.url.startswith("sqlite"):
        holder = sqlite3.connect(cluster.url.removeprefix("sqlite:///"), isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.close()
        return
    server: Postgres = request.getfixturevalue("postgres_server")
    server.stall()
    try:
        yield
    finally:
        server.resume()


@pytest.mark.timeout(300)
async def test_jobs_of_a_killed_worker_are_rescued_soon_after_a_stall(
    cluster: Cluster, request: pytest.FixtureRequest
) -> None:
    sweep_s = 5.0 if LONG else SWEEP_S
    options = {"lease_s": LEASE_S, "sweep_s": sweep_s}
    rescuer, victim = cluster.start(queues=["none"], **options), cluster.start(**options)
    await cluster.ready(rescuer, victim)
    await cluster.wait_finished(await cluster.enqueue("work"))
    async with stalled(cluster, request):
        await asyncio.sleep(STALL_S)  # the fault itself
    jobs = [await cluster.enqueue("hold", latch="never", only_first=True) for _ in range(JOBS)]
    for job in jobs:
        await cluster.wait_started(job)
    cluster.kill(victim)
    killed = time.monotonic()
    await until(
        "its jobs are rescued",
        lambda: rescuer.log.count("rescued job") == JOBS,
        within=LEASE_S + 2 * sweep_s + TIMEOUT_S,
    )
    print(f"rescued {time.monotonic() - killed:.1f} s after the kill: lease {LEASE_S:g}, sweep {sweep_s:g}")
    assert not LONG or time.monotonic() - killed <= LEASE_S + 2 * sweep_s + 1
    cluster.start(**options)
    await cluster.wait_until_idle(within=LEASE_S + TIMEOUT_S)
    await cluster.check_invariants(crashes=1)
