"""The server goes away: restarted, crashed, connections cut, or silent."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable

import pytest
from attack import LEASE_S, LONG, POLL_S, Site, until
from proxy import Proxy

from rota.model import State
from servers import Postgres

ROUNDS = 20 if LONG else 2
BACK_S = 10.0
WORKERS = 2


@pytest.fixture
async def server(postgres_server: Postgres) -> AsyncIterator[Postgres]:
    """The server of this test process; running again afterwards, whatever happened."""
    yield postgres_server
    if postgres_server.pid is None:
        postgres_server.start()


async def survives(site: Site, blow: Callable[[], None]) -> None:
    """Under load: the blow falls, again and again; each time the workers are back by themselves."""
    workers = [site.start(lease_s=5.0) for _ in range(WORKERS)]
    await site.ready(*workers)
    stop = asyncio.Event()
    producer = asyncio.create_task(site.produce(stop, pause=0.01))
    for _ in range(ROUNDS):
        ended = len(site.ledger.lines("E"))
        await until("jobs flow", lambda before=ended: len(site.ledger.lines("E")) > before + 20)
        await asyncio.to_thread(blow)
        struck = len(site.ledger.lines("E"))
        await until(
            "jobs flow again", lambda before=struck: len(site.ledger.lines("E")) > before + 20, BACK_S
        )
    stop.set()
    await producer
    await site.quiet(within=20)
    assert [worker.code for worker in workers] == [None] * WORKERS, site.logs()
    await site.judge(crashes=ROUNDS)
    assert "Traceback" not in site.logs()


@pytest.mark.timeout(600)
async def test_workers_survive_a_restart_of_the_server(postgres_site: Site, server: Postgres) -> None:
    await survives(postgres_site, server.restart)


@pytest.mark.timeout(600)
async def test_workers_survive_a_crash_of_the_server(postgres_site: Site, server: Postgres) -> None:
    def crash() -> None:
        server.crash()
        server.start()

    await survives(postgres_site, crash)


@pytest.mark.timeout(600)
async def test_workers_survive_the_loss_of_every_connection(postgres_site: Site, server: Postgres) -> None:
    def cut() -> None:
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    await survives(postgres_site, cut)


async def test_term_while_the_server_is_down_takes_five_seconds_at_most(
    postgres_site: Site, server: Postgres
) -> None:
    site = postgres_site
    idle, busy = site.start(queues=["none"]), site.start(lease_s=30.0)
    job = await site.enqueue("hold", gate="never")
    await site.begun(job)
    await site.ready(idle, busy)
    await site.app.close()
    server.stop()
    await until("both notice", lambda: all("away" in worker.log for worker in (idle, busy)))
    for worker in (idle, busy):
        worker.send(signal.SIGTERM)
    for worker in (idle, busy):
        await worker.exit(within=5)
        assert worker.code == 0, worker.log


# --- silence -------------------------------------------------------------------------------------


@pytest.fixture
async def proxy(server: Postgres) -> AsyncIterator[Proxy]:
    async with Proxy(server.port) as made:
        yield made


def through(proxy: Proxy, site: Site, server: Postgres) -> str:
    return site.url.replace(f":{server.port}/", f":{proxy.port}/")


async def test_a_worker_that_cannot_reach_its_store_stops_before_its_leases_end(
    postgres_site: Site, server: Postgres, proxy: Proxy
) -> None:
    site = postgres_site
    cut_off = site.start(url=through(proxy, site, server), lease_s=2.0)
    jobs = [await site.enqueue(task, gate="never", only_first=True) for task in ("hold", "hold_thread")]
    for job in jobs:
        await site.begun(job)
    heir = site.start(queues=["none"], lease_s=2.0)  # rescues, but runs nothing
    await site.ready(cut_off, heir)
    proxy.stall()
    await until("it stops its runs", lambda: cut_off.log.count("rejected: job") == len(jobs), within=2.0)
    assert "rescued" not in heir.log, "it stopped too late"
    await until("its jobs are rescued", lambda: heir.log.count("rescued job") == len(jobs))
    proxy.heal()
    for job in jobs:
        ended = await site.ends(job, within=2.0 + 5)
        # A claim that was on its way may still have reached the server, its answer nobody: one attempt more.
        assert (ended.state, ended.output) in ((State.SUCCEEDED, 2), (State.SUCCEEDED, 3))
        assert site.executions(job)[1].worker == site.executions(job)[0].worker
    assert cut_off.code is None


async def test_term_while_the_server_is_silent_takes_five_seconds_at_most(
    postgres_site: Site, server: Postgres, proxy: Proxy
) -> None:
    site = postgres_site
    worker = site.start(url=through(proxy, site, server), lease_s=30.0)
    await site.begun(await site.enqueue("hold", gate="never"))
    proxy.stall()
    worker.send(signal.SIGTERM)
    await worker.exit(within=5)
    assert worker.code == 0, worker.log


async def test_jobs_are_found_by_polling_when_the_listener_is_silently_dead(
    postgres_site: Site, server: Postgres, proxy: Proxy
) -> None:
    site = postgres_site
    worker = site.start(url=through(proxy, site, server), lease_s=30.0)
    await site.ends(await site.enqueue("work"))
    await until("it listens", lambda: proxy.listeners > 0)
    proxy.stall_listeners()
    before = proxy.listeners
    for _ in range(5):
        began = time.monotonic()
        await site.ends(await site.enqueue("work"), within=POLL_S + 2)
        assert time.monotonic() - began < POLL_S + LEASE_S
    assert proxy.swallowed, "no notification was swallowed: the test proves nothing"
    if LONG:
        await until("it listens anew", lambda: proxy.listeners > before, within=20)
    assert worker.code is None
