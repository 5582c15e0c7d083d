"""Many processes on one SQLite file."""

from __future__ import annotations

import pytest
from cluster import LONG, Cluster, until

PROCESSES = 8
EACH = 1000 if LONG else 100


@pytest.mark.timeout(600)
async def test_eight_processes_share_one_file(sqlite_cluster: Cluster) -> None:
    cluster = sqlite_cluster
    for _ in range(PROCESSES):
        cluster.start(produce=EACH, lease_s=15.0, concurrency=4)
    await until("all have enqueued", lambda: len(cluster.run_log.lines("P")) == PROCESSES, within=300)
    await cluster.wait_until_idle(within=60)
    await cluster.check_invariants(crashes=0)
    assert len(cluster.run_log.acknowledged()) == PROCESSES * EACH
    assert len(cluster.alive) == PROCESSES
    assert "locked" not in cluster.logs()
    assert "Traceback" not in cluster.logs()
