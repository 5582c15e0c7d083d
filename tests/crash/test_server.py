"""The server is restarted, crashes, drops its connections or stalls."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable

import pytest
from cluster import LEASE_S, LONG, POLL_S, Cluster, until

from proxy import Proxy
from rota.model import State
from servers import Postgres

ROUNDS = 20 if LONG else 2
RECOVERY_S = 10.0
WORKERS = 2
SAFE_LEASE_S = 8.0  # longer than a worker waits before it connects again


@pytest.fixture
async def server(postgres_server: Postgres) -> AsyncIterator[Postgres]:
    """The server of this test process, started again afterwards if it was stopped."""
    yield postgres_server
    if postgres_server.pid is None:
        postgres_server.start()


async def check_recovery(cluster: Cluster, disrupt: Callable[[], None]) -> None:
    """Disrupt the server repeatedly under load; each time the workers recover by themselves."""
    workers = [cluster.start(lease_s=5.0) for _ in range(WORKERS)]
    await cluster.ready(*workers)
    stop = asyncio.Event()
    producer = asyncio.create_task(cluster.produce(stop, pause=0.01))
    for _ in range(ROUNDS):
        ended = len(cluster.run_log.lines("E"))
        await until("jobs flow", lambda before=ended: len(cluster.run_log.lines("E")) > before + 20)
        await asyncio.to_thread(disrupt)
        before = len(cluster.run_log.lines("E"))
        await until(
            "jobs flow again", lambda before=before: len(cluster.run_log.lines("E")) > before + 20, RECOVERY_S
        )
    stop.set()
    await producer
    await cluster.wait_until_idle(within=20)
    assert [worker.code for worker in workers] == [None] * WORKERS, cluster.logs()
    await cluster.check_invariants(crashes=ROUNDS)
    assert "Traceback" not in cluster.logs()


@pytest.mark.timeout(600)
async def test_workers_survive_a_restart_of_the_server(postgres_cluster: Cluster, server: Postgres) -> None:
    await check_recovery(postgres_cluster, server.restart)


@pytest.mark.timeout(600)
async def test_workers_survive_a_crash_of_the_server(postgres_cluster: Cluster, server: Postgres) -> None:
    def crash() -> None:
        server.crash()
        server.start()

    await check_recovery(postgres_cluster, crash)


@pytest.mark.timeout(600)
async def test_workers_survive_loss_of_every_connection(postgres_cluster: Cluster, server: Postgres) -> None:
    def cut() -> None:
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    await check_recovery(postgres_cluster, cut)


async def test_sigterm_while_server_is_down_takes_at_most_five_seconds(
    postgres_cluster: Cluster, server: Postgres
) -> None:
    cluster = postgres_cluster
    idle, busy = cluster.start(queues=["none"]), cluster.start(lease_s=30.0)
    job = await cluster.enqueue("hold", latch="never")
    await cluster.wait_started(job)
    await cluster.ready(idle, busy)
    await cluster.app.close()
    server.stop()
    await until("both notice", lambda: all("unavailable" in worker.log for worker in (idle, busy)))
    for worker in (idle, busy):
        worker.send(signal.SIGTERM)
    for worker in (idle, busy):
        await worker.exit(within=5)
        assert worker.code == 0, worker.log


# --- a stalled server -------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(server: Postgres) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as fresh:
        yield fresh


def through(proxy: Proxy, cluster: Cluster, server: Postgres) -> str:
    return cluster.url.replace(f":{server.port}/", f":{proxy.port}/")


async def test_worker_without_store_stops_jobs_before_their_leases_expire(
    postgres_cluster: Cluster, server: Postgres, proxy: Proxy
) -> None:
    cluster = postgres_cluster
    cut_off = cluster.start(url=through(proxy, cluster, server), lease_s=SAFE_LEASE_S)
    jobs = [await cluster.enqueue(task, latch="never", only_first=True) for task in ("hold", "hold_thread")]
    for job in jobs:
        await cluster.wait_started(job)
    successor = cluster.start(queues=["none"], lease_s=SAFE_LEASE_S)  # rescues, but runs nothing
    await cluster.ready(cut_off, successor)
    proxy.stall()
    await until(
        "it stops its executions",
        lambda: cut_off.log.count("rejected: job") == len(jobs),
        within=SAFE_LEASE_S,
    )
    assert "rescued" not in successor.log, "it stopped too late"
    await until("its jobs are rescued", lambda: successor.log.count("rescued job") == len(jobs))
    proxy.resume()
    for job in jobs:
        ended = await cluster.wait_finished(job, within=2 * SAFE_LEASE_S + 5)
        # A claim in flight may have reached the server while its reply was lost: it costs nothing.
        assert (ended.state, ended.output) == (State.SUCCEEDED, 2), cluster.logs()
        assert cluster.executions(job)[1].worker == cluster.executions(job)[0].worker
    assert cut_off.code is None


async def test_sigterm_while_server_is_stalled_takes_at_most_five_seconds(
    postgres_cluster: Cluster, server: Postgres, proxy: Proxy
) -> None:
    cluster = postgres_cluster
    worker = cluster.start(url=through(proxy, cluster, server), lease_s=30.0)
    await cluster.wait_started(await cluster.enqueue("hold", latch="never"))
    proxy.stall()
    worker.send(signal.SIGTERM)
    await worker.exit(within=5)
    assert worker.code == 0, worker.log


async def test_polling_finds_jobs_when_the_listener_is_stalled(
    postgres_cluster: Cluster, server: Postgres, proxy: Proxy
) -> None:
    cluster = postgres_cluster
    worker = cluster.start(url=through(proxy, cluster, server), lease_s=30.0)
    await cluster.wait_finished(await cluster.enqueue("work"))
    await until("it listens", lambda: proxy.listeners > 0)
    proxy.freeze_listeners()
    before = proxy.listeners
    for _ in range(5):
        began = time.monotonic()
        await cluster.wait_finished(await cluster.enqueue("work"), within=POLL_S + 2)
        assert time.monotonic() - began < POLL_S + LEASE_S
    assert proxy.dropped_chunks, "no notification was lost: the test proves nothing"
    if LONG:
        await until("it listens again", lambda: proxy.listeners > before, within=45)  # tested every 20 s
    assert worker.code is None
