"""Many processes on one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Event

import pytest
from cluster import LONG, Cluster, until

PROCESSES = 8
EACH = 1000 if LONG else 100


@contextmanager
def strangers(path: str) -> Iterator[None]:
    """Another program reads the file and empties its log all the time."""
    stop = Event()

    def disturb(statement: str) -> None:
        connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        while not stop.wait(0.01):
            with suppress(sqlite3.OperationalError):  # locked: it tries again
                connection.execute(statement).fetchall()
        connection.close()

    with ThreadPoolExecutor(2) as pool:
        for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "SELECT count(*) FROM sqlite_schema"):
            pool.submit(disturb, statement)
        try:
            yield
        finally:
            stop.set()


@pytest.mark.timeout(600)
async def test_eight_processes_share_one_file(sqlite_cluster: Cluster) -> None:
    with strangers(sqlite_cluster.url.removeprefix("sqlite:///")):
        await share(sqlite_cluster)


async def share(cluster: Cluster) -> None:
    for _ in range(PROCESSES):
        cluster.start(produce=EACH, lease_s=15.0, concurrency=4)
    await until("all have enqueued", lambda: len(cluster.run_log.lines("P")) == PROCESSES, within=300)
    await cluster.wait_until_idle(within=60)
    await cluster.check_invariants(crashes=0)
    assert len(cluster.run_log.acknowledged()) == PROCESSES * EACH
    assert len(cluster.alive) == PROCESSES
    assert "locked" not in cluster.logs()
    assert "Traceback" not in cluster.logs()
