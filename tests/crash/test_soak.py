"""Load for a long time with a random fault every now and then. ``ROTA_SOAK_S`` says how long, in seconds."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import LONG, Cluster, WorkerProcess, until

from proxy import Proxy
from servers import Postgres

SECONDS = float(os.environ.get("ROTA_SOAK_S", "120"))
EVERY_S = 15.0
WORKERS = 3
LEASE_S = 10.0

pytestmark = [
    pytest.mark.skipif(not LONG, reason="minutes or hours: make crash"),
    pytest.mark.timeout(SECONDS + 600),
]


async def test_random_faults_for_a_long_time_lose_and_repeat_nothing(
    postgres_cluster: Cluster, postgres_server: Postgres
) -> None:
    cluster, server = postgres_cluster, postgres_server
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    async with Proxy(server.port) as proxy:
        url = cluster.url.replace(f":{server.port}/", f":{proxy.port}/")

        def start() -> WorkerProcess:
            return cluster.start(url=url, lease_s=LEASE_S, sweep_s=1.0, concurrency=8)

        def kill() -> None:
            cluster.kill(chance.choice(cluster.started))
            start()

        def stall() -> None:
            server.stall()
            time.sleep(3.0)
            server.resume()

        def crash() -> None:
            server.crash()
            server.start()

        faults: list[Callable[[], None]] = [kill, stall, crash, server.restart, proxy.freeze]
        await cluster.ready(*[start() for _ in range(WORKERS)])
        stop = asyncio.Event()
        producers = [asyncio.create_task(cluster.produce(stop, pause=0.05)) for _ in range(2)]
        deadline, happened = time.monotonic() + SECONDS, 0
        while time.monotonic() < deadline:
            fault = chance.choice(faults)
            happened += 1
            await asyncio.to_thread(fault)
            before = len(cluster.run_log.lines("E"))
            await until(
                f"jobs flow after {fault.__name__}",
                lambda before=before: len(cluster.run_log.lines("E")) > before + 50,  # type: ignore[misc]
                within=60,
            )
            await asyncio.sleep(EVERY_S)  # between two faults
        stop.set()
        await asyncio.gather(*producers)
        await cluster.wait_until_idle(within=LEASE_S + 60)
        sizes = [resident_mb(worker) for worker in cluster.alive]
        files = [len(os.listdir(f"/proc/{worker.pid}/fd")) for worker in cluster.alive]
        jobs = len(cluster.run_log.acknowledged())
        print(f"{happened} faults, {jobs} jobs, workers with {sizes} MB and {files} open files")
        await cluster.check_invariants(crashes=happened, concurrency=8 * WORKERS)


def resident_mb(worker: WorkerProcess) -> int:
    pages = int(Path(f"/proc/{worker.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 2**20
