"""Workers whose wall clock is wrong, or steps back by hours while they work: the store's clock decides."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from cluster import LONG, TIMEOUT_S, Cluster, until
from programs import SOURCE

from rota.model import State

SKEWED = """
import pathlib
import time
step = pathlib.Path(__file__).with_suffix(".step")
pathlib.Path(__file__).with_suffix(".seen").touch()
true_time = time.time
time.time = lambda: true_time() + (-7200 if step.exists() else {offset})
"""
DELAY_S = 2.0
LEASE_S = 4.0  # a worker that only waits for a core must not lose it
OFFSETS = [3600, -3600] if LONG else [3600]


@pytest.mark.parametrize("offset", OFFSETS)
async def test_wrong_clock_neither_loses_leases_nor_starts_early(
    cluster: Cluster, tmp_path: Path, offset: int
) -> None:
    folder = tmp_path / "skewed"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(SKEWED.format(offset=offset))
    path = os.pathsep.join([str(folder), SOURCE])
    wrong = cluster.start(env={"PYTHONPATH": path}, lease_s=LEASE_S, concurrency=4)
    right = cluster.start(lease_s=LEASE_S, concurrency=4)
    await cluster.ready(wrong, right)
    assert (folder / "sitecustomize.seen").exists()
    held = [await cluster.enqueue("hold", latch="go") for _ in range(6)]  # more than one of them can hold
    for job in held:
        await cluster.wait_started(job)
    assert {one.pid for one in cluster.run_log.executions()} == {wrong.pid, right.pid}
    await asyncio.sleep(1.2 * LEASE_S)  # beats must have renewed them
    (folder / "sitecustomize.step").touch()
    await asyncio.sleep(1.2 * LEASE_S)
    cluster.open_latch("go")
    began = time.monotonic()
    later = [(await cluster.app.enqueue("work", {}, delay=DELAY_S)).id for _ in range(8)]
    for job in later:
        cluster.run_log.write("A", job, 0)
    await until("one starts", lambda: any(cluster.executions(job) for job in later))
    assert time.monotonic() - began >= DELAY_S - 0.1, "it started early"
    await cluster.wait_until_idle(within=TIMEOUT_S)
    assert "rescued" not in cluster.logs()
    assert all([(await cluster.job(job)).state is State.SUCCEEDED for job in held])
    await until("all outcomes are accepted", lambda: len(cluster.run_log.accepted()) == len(held + later))
    await cluster.check_invariants(crashes=0)
