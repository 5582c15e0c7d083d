"""Connections that stay open but silent, as behind a hung proxy: every program continues with new ones.

Patience is short here; ``test_frozen_rate.py`` measures the rate with the patience that users have.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from cluster import TIMEOUT_S, Cluster, poll, until
from patience import ENV, shorten
from programs import Program, command

from proxy import Proxy
from rota import Rota
from rota.errors import RotaError
from servers import Postgres

PATIENCE_S = 2.0
SHORT = {ENV: str(PATIENCE_S)}
LEASE_S = 3.0
CALLERS = 8
BULK = 20_000


@pytest.fixture
async def proxy(postgres_server: Postgres) -> AsyncIterator[Proxy]:
    async with Proxy(postgres_server.port) as fresh:
        yield fresh


@pytest.fixture
def frozen_url(postgres_cluster: Cluster, postgres_server: Postgres, proxy: Proxy) -> str:
    """The address through the proxy; the cluster itself speaks to the server directly."""
    return postgres_cluster.url.replace(f":{postgres_server.port}/", f":{proxy.port}/")


@pytest.fixture
async def producer(frozen_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rota]:
    """A program of ours that enqueues through the proxy, with little patience."""
    shorten(PATIENCE_S, monkeypatch.setattr)
    app = Rota(frozen_url)
    yield app
    await app.close()


async def fires(cluster: Cluster) -> int:
    return sum(job.schedule == "tick" for job in (await cluster.jobs()).values())


async def declare_tick(cluster: Cluster) -> None:
    await cluster.store()
    soon = cluster.app.clock.now() + timedelta(seconds=0.2)
    await cluster.app.schedules.create(
        name="tick", task="work", every=1, start_at=soon, overlap="allow", max_attempts=100
    )


async def check_jobs_and_fires(cluster: Cluster) -> None:
    """Jobs run and the schedule fires."""
    for job in [await cluster.enqueue("work", n) for n in range(10)]:
        await cluster.wait_finished(job)
    before = await fires(cluster)
    await poll(
        lambda: fires(cluster), lambda now: now >= before + 2, TIMEOUT_S, lambda n: f"2 fires more than {n}"
    )


async def check_pause(cluster: Cluster) -> None:
    """A pause is followed, and its end too."""
    await cluster.app.pause(queue="paused")
    held = await wait_for_pause(cluster)
    await cluster.app.resume(queue="paused")
    await cluster.wait_finished(held)


async def wait_for_pause(cluster: Cluster) -> str:
    """Enqueue until a job is left alone for two seconds, and return that one."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        job = (await cluster.app.enqueue("work", {}, queue="paused", max_attempts=100)).id
        cluster.run_log.write("A", job, 0)
        try:
            await cluster.wait_started(job, within=2.0)
        except AssertionError:
            return job
        assert time.monotonic() < deadline, "no worker follows the pause"


async def test_a_worker_runs_fires_and_pauses_again(
    postgres_cluster: Cluster, proxy: Proxy, frozen_url: str
) -> None:
    cluster = postgres_cluster
    await declare_tick(cluster)
    worker = cluster.start(url=frozen_url, lease_s=LEASE_S, tick_s=0.2, env=SHORT)
    await check_jobs_and_fires(cluster)
    listeners = proxy.listeners
    proxy.freeze()
    await check_jobs_and_fires(cluster)
    await check_pause(cluster)
    await until("it listens again", lambda: proxy.listeners > listeners)
    await cluster.app.pause(schedule="tick")
    await cluster.wait_until_idle(within=TIMEOUT_S)
    assert worker.code is None, worker.log
    await check_executions(cluster)


async def check_executions(cluster: Cluster) -> None:
    """Nothing lost, nothing settled twice; one attempt may have been claimed by a turn that was given up."""
    for job in await cluster.scheduled():
        cluster.run_log.write("A", job, 0)
    await cluster.check_invariants(crashes=1)


async def test_up_answers_runs_and_fires_again(
    postgres_cluster: Cluster, proxy: Proxy, frozen_url: str
) -> None:
    cluster = postgres_cluster
    await declare_tick(cluster)
    async with Program(cluster, "up", url=frozen_url, **SHORT) as up:
        await check_jobs_and_fires(cluster)
        assert await up.ask("GET", "/api/admin/jobs") == 200
        proxy.freeze()
        asked = await asyncio.gather(*(up.ask("GET", "/api/admin/jobs") for _ in range(CALLERS)))
        assert set(asked) <= {200, 503}
        await check_jobs_and_fires(cluster)
        await check_pause(cluster)
        await check_answers(up)
        assert up.is_alive, up.log
    await check_settled_once(cluster)


async def check_answers(program: Program) -> None:
    for path in ("/api/admin/jobs", "/api/admin/schedules", "/readyz", "/healthz"):
        await poll(
            lambda path=path: program.ask("GET", path),  # type: ignore[misc]
            lambda status: status == 200,
            TIMEOUT_S,
            lambda status, path=path: f"{path} is {status}\n{program.log}",  # type: ignore[misc]
        )


async def check_settled_once(cluster: Cluster) -> None:
    accepted = [job for job, _ in cluster.run_log.accepted()]
    assert len(accepted) == len(set(accepted))


async def test_serve_answers_again(postgres_cluster: Cluster, proxy: Proxy, frozen_url: str) -> None:
    async with Program(postgres_cluster, "serve", url=frozen_url, **SHORT) as serve:
        await check_answers(serve)
        proxy.freeze()
        asked = await asyncio.gather(
            *(serve.ask("GET", "/api/admin/jobs") for _ in range(CALLERS)),
            *(serve.ask("POST", "/api/admin/jobs", {"task": "work"}) for _ in range(CALLERS)),
        )
        assert set(asked) <= {200, 201, 503}
        await check_answers(serve)
        assert await serve.ask("POST", "/api/admin/jobs", {"task": "work"}) == 201


async def test_commands_are_answered_or_told(
    postgres_cluster: Cluster, proxy: Proxy, frozen_url: str
) -> None:
    cluster, url = postgres_cluster, f"{frozen_url}?connect_timeout=2"
    proxy.stall()
    code, said = await command(cluster, "stats", url=url, **SHORT)
    assert code == 3 and "not available" in said, said
    proxy.freeze()
    proxy.resume()
    for args in (("stats",), ("jobs", "list"), ("health",), ("jobs", "enqueue", "work")):
        code, said = await command(cluster, *args, url=url, **SHORT)
        assert code in (0, 1) and "not available" not in said, said


# --- producers --------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Rota], Awaitable[Sequence[Any]]]] = {}


def call(way: Callable[[Rota], Awaitable[Sequence[Any]]]) -> Callable[[Rota], Awaitable[Sequence[Any]]]:
    CALLS[way.__name__] = way
    return way


@call
async def enqueue(app: Rota) -> Sequence[Any]:
    return [await app.enqueue("work", {}, max_attempts=100)]


@call
async def enqueue_sync(app: Rota) -> Sequence[Any]:
    return [await asyncio.to_thread(app.enqueue_sync, "work", {}, max_attempts=100)]


@call
async def enqueue_many(app: Rota) -> Sequence[Any]:
    return await app.enqueue_many("work", [{}] * 10, max_attempts=100)


@call
async def enqueue_many_sync(app: Rota) -> Sequence[Any]:
    return await asyncio.to_thread(app.enqueue_many_sync, "work", [{}] * 10, max_attempts=100)


@pytest.mark.parametrize("way", CALLS)
async def test_every_caller_is_answered_or_told(
    way: str, postgres_cluster: Cluster, proxy: Proxy, producer: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, stop = postgres_cluster, asyncio.Event()
    answers = [0] * CALLERS

    async def produce(caller: int) -> None:
        while not stop.is_set():
            try:
                handles = await CALLS[way](producer)
            except RotaError:
                for n in range(10):
                    cluster.run_log.write("U", n)
                continue
            for handle in handles:
                cluster.run_log.write("A", handle.id, caller)
            answers[caller] += 1
            await asyncio.sleep(0.02)

    callers = [asyncio.create_task(produce(n)) for n in range(CALLERS)]
    await until("all are answered", lambda: min(answers) >= 2)
    proxy.freeze()
    before = list(answers)
    await until(
        "all are answered again", lambda: all(n >= o + 2 for n, o in zip(answers, before, strict=True))
    )
    stop.set()
    async with asyncio.timeout(TIMEOUT_S):
        await asyncio.gather(*callers)
    shorten(TIMEOUT_S, monkeypatch.setattr)  # the checks may take their time
    cluster.start(lease_s=LEASE_S, concurrency=32)
    await cluster.wait_until_idle(within=TIMEOUT_S)
    await cluster.check_invariants()


async def test_a_stream_that_freezes_halfway_stores_all_or_nothing(
    postgres_cluster: Cluster, proxy: Proxy, producer: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COPY: the server keeps it only if it came whole."""
    await producer.enqueue("work", {})
    sent = proxy.sent_bytes

    async def freeze() -> None:
        await until("the stream is under way", lambda: proxy.sent_bytes > sent + 200_000)
        proxy.freeze()

    freezing = asyncio.create_task(freeze())
    async with asyncio.timeout(TIMEOUT_S * 3):
        try:
            told = len(await producer.enqueue_many("bulk", [{"text": "x" * 100}] * BULK))
        except RotaError:
            told = 0
        await freezing
        shorten(TIMEOUT_S, monkeypatch.setattr)
        stored = sum(job.task == "bulk" for job in (await postgres_cluster.jobs()).values())
        assert stored == told or (stored, told) == (BULK, 0)
        assert len(await producer.enqueue_many("bulk", [{}] * BULK)) == BULK


async def test_a_caller_that_waits_for_a_result_gets_it(
    postgres_cluster: Cluster, proxy: Proxy, producer: Rota
) -> None:
    cluster = postgres_cluster
    cluster.start(lease_s=LEASE_S)
    job = await cluster.enqueue("hold", latch="later")
    waiting = asyncio.create_task(producer.wait(job, timeout=TIMEOUT_S))
    await cluster.wait_started(job)
    await until("it listens", lambda: proxy.listeners > 0)
    proxy.freeze()
    cluster.open_latch("later")
    try:
        assert await waiting == 1
    except RotaError:  # told, and may ask again
        assert await producer.wait(job, timeout=TIMEOUT_S) == 1
