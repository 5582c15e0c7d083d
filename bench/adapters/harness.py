"""The roles that every Python adapter shares, and the log in which handlers record executions.

It runs in each peer's own environment, so it uses only the standard library. An adapter is a class with

    setup()      create the schema or the queue in a fresh store
    producer()   a context manager, sync or async: yields (one, many); ``many`` is None without a bulk call
    work()       run a worker until TERM; each job calls ``ran(i)``
    left()       the number of live jobs, counted in the store itself

and ends its file with ``main(Adapter)``. All may be sync or async. ``own_producers``: each concurrent
caller gets its own producer.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import inspect
import itertools
import json
import mmap
import os
import random
import struct
import sys
import threading
import time

URL = os.environ["BENCH_URL"]  # PostgreSQL: a URL; SQLite: the path of a file
OPTIONS = json.loads(os.environ["BENCH_OPTIONS"])
CHUNK = 5_000  # jobs per bulk call, for peers that need smaller calls
WARM_UP = 20

now_ns = time.monotonic_ns

# --- the execution log: one file per process, a record (job number + 1, time) per execution --------

_record = struct.Struct("<qq").pack_into
_log: mmap.mmap | None = None
_position = itertools.count()  # next() is atomic: handlers may run in threads
_opening = threading.Lock()


def ran(i: int) -> None:
    """Record that job ``i`` has started; every handler calls this first."""
    at = now_ns()
    _record(_log or _open_log(), next(_position) * 16, i + 1, at)


def _open_log() -> mmap.mmap:
    global _log
    with _opening:
        if _log is None:
            path = os.path.join(os.environ["BENCH_LOG"], f"{os.getpid()}.log")
            with open(path, "w+b") as file:
                file.truncate(int(os.environ["BENCH_LOG_SIZE"]) * 16)
                _log = mmap.mmap(file.fileno(), 0)
        return _log


# --- payloads --------------------------------------------------------------------------------------

# Text that does not compress, so that a large value costs what a real one costs.
_noise = base64.b64encode(random.Random(0).randbytes(750_000)).decode()


def noise(i: int, size: int) -> str:
    start = i * 37 % (len(_noise) - size)
    return _noise[start : start + size]


def payload(i: int) -> dict[str, object]:
    """About 100 bytes of JSON, or ``payload_bytes`` from the options."""
    size = OPTIONS.get("payload_bytes", 100)
    return {"i": i, "pad": "x" * 78 if size == 100 else noise(i, size)}


# --- roles -----------------------------------------------------------------------------------------


async def resolve(value):
    return await value if inspect.isawaitable(value) else value


@contextlib.asynccontextmanager
async def open_producer(adapter):
    producer = adapter.producer()
    if hasattr(producer, "__aenter__"):
        async with producer as calls:
            yield calls
    else:
        with producer as calls:
            yield calls


async def setup(adapter):
    await resolve(adapter.setup())


async def bulk(adapter, n):
    jobs = [payload(i) for i in range(n)]
    async with open_producer(adapter) as (one, many):
        started = now_ns()
        if many is not None:
            await resolve(many(jobs))
        else:
            for job in jobs:
                await resolve(one(job))
        return {"n": n, "seconds": (now_ns() - started) / 1e9, "has_bulk": many is not None}


async def single(adapter, seconds):
    """One producer that awaits each job."""
    async with open_producer(adapter) as (one, _):
        for i in range(WARM_UP):
            await resolve(one(payload(i)))
        started = now_ns()
        n = await _produce_until(one, itertools.count(WARM_UP), started + int(seconds * 1e9))
        return {"n": n, "stored": n + WARM_UP, "seconds": (now_ns() - started) / 1e9}


async def callers(adapter, k, seconds):
    """``k`` producers at once: coroutines of one process, or threads if the peer's call blocks."""
    async with contextlib.AsyncExitStack() as stack:
        own = getattr(adapter, "own_producers", False)
        producers = [await stack.enter_async_context(open_producer(adapter)) for _ in range(k if own else 1)]
        ones = [one for one, _ in producers] * (1 if own else k)
        numbers = itertools.count()
        await asyncio.gather(*(_once(one, next(numbers)) for one in ones))
        started = now_ns()
        until = started + int(seconds * 1e9)
        if inspect.iscoroutinefunction(ones[0]):
            counts = await asyncio.gather(*(_produce_until(one, numbers, until) for one in ones))
        else:
            counts = await _in_threads(ones, numbers, until)
        took = (now_ns() - started) / 1e9
        return {"n": sum(counts), "stored": sum(counts) + k, "seconds": took}


async def _once(one, i):
    await resolve(one(payload(i)))


async def _produce_until(one, numbers, until):
    n = 0
    if inspect.iscoroutinefunction(one):
        while now_ns() < until:
            await one(payload(next(numbers)))
            n += 1
    else:
        while now_ns() < until:
            one(payload(next(numbers)))
            n += 1
    return n


async def _in_threads(ones, numbers, until):
    counts = [0] * len(ones)

    def produce_until(place):
        while now_ns() < until:
            ones[place](payload(next(numbers)))
            counts[place] += 1

    threads = [threading.Thread(target=produce_until, args=(place,)) for place in range(len(ones))]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    return counts


async def spaced(adapter, n, gap):
    """Send one job every ``gap`` seconds and return the time just before each call."""
    requested_at = []
    async with open_producer(adapter) as (one, _):
        due = now_ns()
        for i in range(n):
            due += int(gap * 1e9)
            await asyncio.sleep(max(0.0, (due - now_ns()) / 1e9))
            requested_at.append(now_ns())
            await resolve(one(payload(i)))
    return {"n": n, "requested_at": requested_at}


async def paced(adapter, rate, seconds, tick=0.01):
    """Send ``rate`` jobs a second regardless of delays, all jobs of a tick together.

    Return the times at which the jobs were due to be sent, so that a producer that falls behind does
    not hide how long they waited.
    """
    requested_at, late = [], 0
    total, each = int(rate * seconds), max(1, int(rate * tick))
    async with open_producer(adapter) as (one, many):
        started = now_ns() + 50_000_000
        for first in range(0, total, each):
            due = started + int(first / rate * 1e9)
            ahead = (due - now_ns()) / 1e9
            if ahead > 0:
                await asyncio.sleep(ahead)
            late += ahead < -tick
            jobs = [payload(i) for i in range(first, min(first + each, total))]
            requested_at += [due] * len(jobs)
            if many is not None:
                await resolve(many(jobs))
            else:
                for job in jobs:
                    await resolve(one(job))
        return {
            "n": total,
            "requested_at": requested_at,
            "late_ticks": late,
            "seconds": (now_ns() - started) / 1e9,
        }


async def wait(adapter):
    """Connect, sleep until a line arrives, then return the time at which no job is left."""
    await resolve(adapter.left())
    print("READY", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    deadline = now_ns() + int(60e9)
    while (left := await resolve(adapter.left())) and now_ns() < deadline:
        await asyncio.sleep(0.01)
    return {"at": now_ns(), "left": left}


async def left(adapter):
    return {"left": await resolve(adapter.left())}


ROLES = {role.__name__: role for role in (setup, bulk, single, callers, spaced, paced, wait, left)}


def main(kind) -> None:
    adapter = kind()
    role, arguments = sys.argv[1], json.loads(sys.argv[2])
    new_loop = getattr(adapter, "new_loop", None)

    async def work():
        await resolve(adapter.work())

    if role == "work" and not inspect.iscoroutinefunction(adapter.work):
        adapter.work()  # it has its own event loop
        return
    with asyncio.Runner(loop_factory=new_loop) as runner:
        if role == "work":
            runner.run(work())
        else:
            print("RESULT " + json.dumps(runner.run(ROLES[role](adapter, **arguments))), flush=True)


# --- querying PostgreSQL with the driver that the peer has -------------------------------------------


class NumberQuery:
    """``await query(sql)`` returns one number. Keeps its connection."""

    def __init__(self) -> None:
        self._query = None

    async def __call__(self, sql: str) -> int:
        if self._query is None:
            self._query = await self._connect()
        return await self._query(sql)

    async def _connect(self):
        try:
            import asyncpg
        except ImportError:
            import psycopg

            connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)

            async def query(sql):
                return (await (await connection.execute(sql)).fetchone())[0]

            return query
        return (await asyncpg.connect(URL)).fetchval
