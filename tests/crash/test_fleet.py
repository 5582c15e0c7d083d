"""A fleet of idle workers: what it costs the server, and how many of them a single job wakes.

The workers share few processes; each has a store of its own and knows nothing of the others but what is in
the store. Counts, not times: the server counts commits, connections and calls of its functions.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from cluster import LONG, poll

from rota import Rota
from servers import Postgres

pytestmark = [pytest.mark.crash, pytest.mark.timeout(600)]

PROCESSES, PER_PROCESS = (6, 10) if LONG else (3, 4)
WORKERS = PROCESSES * PER_PROCESS
JOBS = 40 if LONG else 12
COUNTED_S = 30.0 if LONG else 8.0
WITHIN_S = 180.0
PROGRAM = """
import asyncio, contextlib, sys, time
from rota import Rota

async def main(url, count):
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(int(count)):
            app = Rota(url)

            @app.task(name="started")
            async def started() -> float:
                return time.time()

            await stack.enter_async_context(app.running())
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


class Counts:
    """What the server counts about one database."""

    def __init__(self, server: Postgres, url: str) -> None:
        self._server = server
        self.database = url.rpartition("/")[2]

    def _one(self, statement: str) -> int:
        ((count,),) = self._server.execute(statement, self.database)
        return int(count or 0)

    @property
    def commits(self) -> int:
        return self._one(f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{self.database}'")

    @property
    def connections(self) -> int:
        return self._one(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rota' "
            f"AND datname = '{self.database}'"
        )

    @property
    def claims(self) -> int:
        return self._one("SELECT calls FROM pg_stat_user_functions WHERE funcname = 'claim'")


@pytest.fixture
def counts(postgres_server: Postgres, migrated_postgres_url: str) -> Counts:
    counts = Counts(postgres_server, migrated_postgres_url)
    postgres_server.execute(f'ALTER DATABASE "{counts.database}" SET track_functions = "all"')
    return counts


@pytest.fixture
def processes(counts: Counts, migrated_postgres_url: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    url = f"{migrated_postgres_url}?connections=2"
    command = [sys.executable, "-c", PROGRAM, url, str(PER_PROCESS)]
    running = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(PROCESSES)]
    yield running
    for process in running:
        process.kill()
        process.wait()


async def settled(counts: Counts, app: Rota) -> None:
    """Until all workers are there, know of each other, and have given back what they opened at first."""
    store = await app.stores.get()

    async def started() -> int:
        return len(await store.documents("worker"))

    await poll(started, lambda found: found == WORKERS, WITHIN_S, lambda found: f"{found} workers started")

    async def polls() -> float:
        before = counts.claims
        await asyncio.sleep(4)
        return (counts.claims - before) / 4 / WORKERS

    def is_thrifty(rate: float) -> bool:
        return rate < 0.4 and counts.connections <= 2 * WORKERS + 2  # and those of this program

    await poll(
        polls, is_thrifty, WITHIN_S, lambda rate: f"{rate:.2f} polls a second, {counts.connections} open"
    )


async def test_an_idle_fleet_costs_little_and_a_job_wakes_a_few_workers(
    counts: Counts, processes: list[subprocess.Popen[bytes]], migrated_postgres_url: str
) -> None:
    app = Rota(migrated_postgres_url)
    await settled(counts, app)
    before, began = counts.commits, time.monotonic()
    await asyncio.sleep(COUNTED_S)
    took = time.monotonic() - began
    idle = (counts.commits - before) / took
    assert idle / WORKERS < 2, "each idle worker used to commit 3.4 times a second"

    before_claims, began = counts.claims, time.monotonic()
    waited_ms = []
    for _ in range(JOBS):
        enqueued_at = time.time()
        job = await app.enqueue("started")
        waited_ms.append(1000 * (await job.result(timeout=WITHIN_S) - enqueued_at))
        await asyncio.sleep(0.3)
    polled = 0.2 * WORKERS * (time.monotonic() - began)
    woken = (counts.claims - before_claims - polled) / JOBS
    print(
        f"\n{WORKERS} idle workers: {counts.connections} connections, {idle:.1f} commits a second, "
        f"{woken:.1f} claims for a job, waited {statistics.median(waited_ms):.0f} ms (median)"
    )
    assert woken < max(WORKERS / 2, 10), "a single job wakes the whole fleet"
    assert all(process.poll() is None for process in processes)

    await app.enqueue_many("started", [{}] * (20 * WORKERS))
    await poll(lambda: done(app), bool, WITHIN_S, lambda _: "the many jobs are done")
    await settled(counts, app)  # what the load opened is given back
    await app.close()


async def done(app: Rota) -> bool:
    return not (await app.jobs(state="queued", limit=1)).items
