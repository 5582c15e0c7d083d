"""What claims cost beside dead index entries that an old snapshot keeps: ``python -m bench.dead_entries``.

Two databases of one server, only one of them with a snapshot held open and many jobs done meanwhile. Every
measurement takes turns between the two, so that the load of the machine affects both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from rota.core.ids import uuid7
from rota.model import ClaimRequest, Job, NewJob, Settlement, State
from rota.store.calls import claim, settle
from rota.store.postgres.store import PostgresStore

from .scenario import percentile
from .servers import postgres

BATCH = 1000
ROUNDS = 1000  # so that p99 is not decided by the first use of a connection
Measure = Callable[[PostgresStore], Awaitable[float]]


async def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory() as folder, postgres(Path(folder)) as server:
        options = "" if given.disk else "?options=-c%20synchronous_commit%3Doff"
        clean, held = [await _store(server, name, options) for name in ("clean", "held")]
        await _compare("no snapshot held", clean, held)
        with _snapshot(server.replace("/postgres", "/held")):
            done = 0
            began = time.monotonic()
            for wanted in given.dead:
                await _work(held, wanted - done)
                done = wanted
                await _compare(f"{wanted:,} dead", clean, held)
            while time.monotonic() < began + given.hold:
                await asyncio.sleep(min(60.0, max(began + given.hold - time.monotonic(), 0.1)))
                await _compare(f"{time.monotonic() - began:.0f} s held", clean, held)
        await clean.close()
        await held.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--dead", type=_numbers, default=[50_000, 300_000, 1_000_000], help="jobs done, in steps"
    )
    parser.add_argument(
        "--hold", type=float, default=0.0, help="seconds for which the snapshot is held at least"
    )
    parser.add_argument(
        "--disk", action="store_true", help="wait for the disk at each commit, which hides a lot"
    )
    return parser.parse_args()


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


async def _store(server: str, name: str, options: str) -> PostgresStore:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    store = PostgresStore(server.replace("/postgres", f"/{name}") + options)
    await store.schema.migrate()
    await store.open()
    await _work(store, 2000)
    return store


@contextmanager
def _snapshot(url: str) -> Iterator[None]:
    with psycopg.connect(url) as connection:
        connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute(b"SELECT count(*) FROM rota.queued")
        yield
        connection.rollback()


# --- work -----------------------------------------------------------------------------------------


def _jobs(count: int) -> list[NewJob]:
    made_at = time.time_ns() // 1_000_000
    return [NewJob(id=uuid7(made_at, secrets.randbits(74)), task="work") for _ in range(count)]


async def _take(store: PostgresStore, most: int) -> list[Job]:
    return list(await claim(store, ClaimRequest(worker="bench", limit=most, lease_s=60), datetime.now(UTC)))


async def _succeed(store: PostgresStore, jobs: list[Job]) -> None:
    ended = [
        Settlement(
            id=job.id,
            lease_token=job.lease_token,
            worker=job.worker,
            queue=job.queue,
            task=job.task,
            tenant=job.tenant,
            key=job.key,
            state=State.SUCCEEDED,
            attempt=job.attempt,
        )
        for job in jobs
    ]
    await settle(store, ended, datetime.now(UTC))


async def _work(store: PostgresStore, count: int) -> None:
    """Store, claim and settle ``count`` jobs."""
    for _ in range(0, count, BATCH):
        await store.insert(_jobs(BATCH), datetime.now(UTC))
        left = BATCH
        while left:
            jobs = await _take(store, 200)
            await _succeed(store, jobs)
            left -= len(jobs)


# --- measuring ------------------------------------------------------------------------------------


async def _idle_poll(store: PostgresStore) -> float:
    began = time.perf_counter()
    await _take(store, 10)
    return time.perf_counter() - began


async def _claim_one(store: PostgresStore) -> float:
    await store.insert(_jobs(1), datetime.now(UTC))
    began = time.perf_counter()
    jobs = await _take(store, 10)
    lasted = time.perf_counter() - began
    await _succeed(store, jobs)
    return lasted


async def _wait_of_one(store: PostgresStore) -> float:
    began = time.perf_counter()
    await store.insert(_jobs(1), datetime.now(UTC))
    jobs = await _take(store, 10)
    lasted = time.perf_counter() - began
    await _succeed(store, jobs)
    return lasted


MEASURES: dict[str, Measure] = {"idle poll": _idle_poll, "claim": _claim_one, "wait": _wait_of_one}


async def _compare(label: str, clean: PostgresStore, held: PostgresStore) -> None:
    for name, measure in MEASURES.items():
        times: tuple[list[float], list[float]] = ([], [])
        began = time.perf_counter()
        for _ in range(ROUNDS):
            for store, found in zip((clean, held), times, strict=True):
                found.append(1000 * await measure(store))
        rate = ROUNDS / (time.perf_counter() - began)
        shown = "   ".join(_shown(share, *times) for share in (50, 99))
        print(f"{label:18} {name:10} {rate:4.0f}/s each   {shown}", flush=True)


def _shown(share: int, clean: list[float], held: list[float]) -> str:
    before, after = (percentile(times, share / 100) for times in (clean, held))
    return f"p{share} {before:6.2f} -> {after:6.2f} ms, x {after / before:4.2f}"


if __name__ == "__main__":
    asyncio.run(main())
