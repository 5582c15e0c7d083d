"""The rate of a whole installation after its connections froze, with the patience that users have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from cluster import LONG, Cluster, until
from pooler import BINARY, Pooler
from programs import Program

from proxy import Proxy
from rota import Rota
from rota.errors import RotaError
from servers import Postgres

pytestmark = [
    pytest.mark.skipif(not LONG, reason="minutes: make crash"),
    pytest.mark.timeout(600),
]

CALLERS = 8  # half of them sync
PAUSE_S = 0.08  # of each caller: 100 jobs a second together
BEFORE_S, AFTER_S = 10.0, 30.0
SILENT_S = (1.0, 15.0)  # shorter and longer than the patience
BACK_S = 15.0
WINDOW_S = 5.0
LAYOUTS = ("direct", "proxy before pooler", "pooler before proxy")


@contextmanager
def pooled(port: int, folder: Path) -> Iterator[int]:
    if BINARY is None:
        pytest.skip("pgbouncer is not installed")
    with Pooler(port, folder) as pooler:
        yield pooler.port


@pytest.fixture(params=LAYOUTS)
async def layout(
    request: pytest.FixtureRequest, postgres_server: Postgres, tmp_path: Path
) -> AsyncIterator[tuple[Proxy, int]]:
    """The proxy to freeze, and the port that programs connect to."""
    port = postgres_server.port
    if request.param == "proxy before pooler":
        with pooled(port, tmp_path) as behind:
            async with Proxy(behind) as proxy:
                yield proxy, proxy.port
        return
    async with Proxy(port) as proxy:
        if request.param == "direct":
            yield proxy, proxy.port
        else:
            with pooled(proxy.port, tmp_path) as front:
                yield proxy, front


class Load:
    """Callers that enqueue at a steady pace, each answer recorded with its time."""

    def __init__(self, cluster: Cluster, app: Rota, up: Program) -> None:
        self._cluster, self._app, self._up = cluster, app, up
        self.acknowledged: list[float] = []
        self.told: list[float] = []
        self.answered: list[float] = []  # by HTTP
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Load:
        self._tasks = [asyncio.create_task(self._produce(n)) for n in range(CALLERS)]
        self._tasks.append(asyncio.create_task(self._ask()))
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._stop.set()
        await asyncio.gather(*self._tasks)

    async def _produce(self, caller: int) -> None:
        while not self._stop.is_set():
            try:
                if caller % 2:
                    job = await asyncio.to_thread(self._app.enqueue_sync, "work", {}, max_attempts=100)
                else:
                    job = await self._app.enqueue("work", {}, max_attempts=100)
            except RotaError:
                self._cluster.run_log.write("U", caller)
                self.told.append(time.time())
            else:
                self._cluster.run_log.write("A", job.id, caller)
                self.acknowledged.append(time.time())
            await asyncio.sleep(PAUSE_S)

    async def _ask(self) -> None:
        while not self._stop.is_set():
            if await self._up.ask("GET", "/api/admin/jobs?limit=1") == 200:
                self.answered.append(time.time())
            await asyncio.sleep(0.2)


def rate(times: list[float], since: float, seconds: float) -> float:
    return sum(since <= one < since + seconds for one in times) / seconds


def back_after(times: list[float], healed: float, wanted: float) -> float:
    """The seconds after healing from which on a whole window has the wanted rate."""
    starts = (healed + tenth / 10 for tenth in range(int(AFTER_S - WINDOW_S) * 10))
    found = next((start for start in starts if rate(times, start, WINDOW_S) >= wanted), None)
    return float("inf") if found is None else found - healed


@pytest.mark.parametrize("silent_s", SILENT_S)
async def test_back_to_nine_tenths_of_the_rate_within_fifteen_seconds(
    postgres_cluster: Cluster, postgres_server: Postgres, layout: tuple[Proxy, int], silent_s: float
) -> None:
    cluster, (proxy, port) = postgres_cluster, layout
    url = cluster.url.replace(f":{postgres_server.port}/", f":{port}/")
    await cluster.store()
    soon = cluster.app.clock.now() + timedelta(seconds=1)
    await cluster.app.schedules.create(
        name="tick", task="work", every=1, start_at=soon, overlap="allow", max_attempts=100, missed="all"
    )
    worker = cluster.start(url=url, lease_s=30.0, sweep_s=5.0, poll_s=1.0, concurrency=32)
    app = Rota(url)
    async with Program(
        cluster, "up", url=url, ROTA_LEASE_DURATION_S="30", ROTA_POLL_INTERVAL_MS="1000"
    ) as up:
        await cluster.ready(worker)
        async with Load(cluster, app, up) as load:
            await until("jobs flow", lambda: len(cluster.run_log.lines("E")) > 50)
            began = time.time()
            await asyncio.sleep(BEFORE_S)  # what is measured
            proxy.stall()
            await asyncio.sleep(silent_s)
            proxy.freeze()
            proxy.resume()
            healed = time.time()
            await asyncio.sleep(AFTER_S)
        ends = [float(fields[5]) for fields in cluster.run_log.lines("E")]
        figures = {
            name: (
                rate(times, began, BEFORE_S),
                back_after(times, healed, 0.9 * rate(times, began, BEFORE_S)),
            )
            for name, times in (("acks", load.acknowledged), ("ends", ends), ("answers", load.answered))
        }
        jobs = (await cluster.jobs()).values()
        made = [job.created_at.timestamp() for job in jobs if job.schedule == "tick"]
        fires_after = min((one for one in made if one > healed), default=float("inf")) - healed
        print(
            f"rate before and seconds until back: {figures}; told {len(load.told)}; fires {fires_after:.1f}"
        )
        await cluster.app.pause(schedule="tick")
        await cluster.wait_until_idle(within=60)
        assert up.is_alive and worker.code is None
    await app.close()
    for job in await cluster.scheduled():
        cluster.run_log.write("A", job, 0)
    await cluster.check_invariants(crashes=2, concurrency=64)
    assert fires_after <= BACK_S
    assert all(seconds <= BACK_S for _, seconds in figures.values()), figures
