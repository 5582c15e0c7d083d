"""What every Python adapter shares: the roles of a run, and the ledger in which handlers write that they ran.

Runs in each peer's own environment, so it needs the standard library only. An adapter is a class with

    setup()      make the schema or the queue; the store itself is fresh
    producer()   a context manager, sync or async: gives (one, many); ``many`` is None without a bulk call
    work()       run a worker until TERM; each job calls ``ran(i)``
    left()       how many jobs are still to run, or running, asked of the store itself

and ends its file with ``main(Adapter)``. All may be sync or async. ``own_producers``: each concurrent
caller gets a producer of its own.
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
CHUNK = 5_000  # jobs per bulk call, where a peer wants the calls bounded
WARM_UP = 20

now_ns = time.monotonic_ns

# --- the ledger: one file per process, a record (job number + 1, instant) per execution -----------

_record = struct.Struct("<qq").pack_into
_log: mmap.mmap | None = None
_place = itertools.count()  # next() is atomic: handlers may run in threads
_opening = threading.Lock()


def ran(i: int) -> None:
    """Every handler calls this first: job ``i`` has begun."""
    at = now_ns()
    _record(_log or _open_log(), next(_place) * 16, i + 1, at)


def _open_log() -> mmap.mmap:
    global _log
    with _opening:
        if _log is None:
            path = os.path.join(os.environ["BENCH_LEDGER"], f"{os.getpid()}.log")
            with open(path, "w+b") as file:
                file.truncate(int(os.environ["BENCH_LEDGER_SIZE"]) * 16)
                _log = mmap.mmap(file.fileno(), 0)
        return _log


# --- payloads --------------------------------------------------------------------------------------

# Text that does not compress, so that a large value costs what a real one costs.
_noise = base64.b64encode(random.Random(0).randbytes(750_000)).decode()


def noise(i: int, size: int) -> str:
    start = i * 37 % (len(_noise) - size)
    return _noise[start : start + size]


def payload(i: int) -> dict[str, object]:
    """About 100 bytes of JSON, or as many as the options say."""
    size = OPTIONS.get("payload_bytes", 100)
    return {"i": i, "pad": "x" * 78 if size == 100 else noise(i, size)}


# --- roles -----------------------------------------------------------------------------------------


async def done(value):
    return await value if inspect.isawaitable(value) else value


@contextlib.asynccontextmanager
async def producing(adapter):
    made = adapter.producer()
    if hasattr(made, "__aenter__"):
        async with made as calls:
            yield calls
    else:
        with made as calls:
            yield calls


async def setup(adapter):
    await done(adapter.setup())


async def bulk(adapter, n):
    jobs = [payload(i) for i in range(n)]
    async with producing(adapter) as (one, many):
        begun = now_ns()
        if many is not None:
            await done(many(jobs))
        else:
            for job in jobs:
                await done(one(job))
        return {"n": n, "seconds": (now_ns() - begun) / 1e9, "has_bulk": many is not None}


async def single(adapter, seconds):
    """One producer that awaits each job."""
    async with producing(adapter) as (one, _):
        for i in range(WARM_UP):
            await done(one(payload(i)))
        begun = now_ns()
        n = await _keep_on(one, itertools.count(WARM_UP), begun + int(seconds * 1e9))
        return {"n": n, "stored": n + WARM_UP, "seconds": (now_ns() - begun) / 1e9}


async def callers(adapter, k, seconds):
    """``k`` producers at once: coroutines of one process, or threads if the peer's call blocks."""
    async with contextlib.AsyncExitStack() as stack:
        own = getattr(adapter, "own_producers", False)
        made = [await stack.enter_async_context(producing(adapter)) for _ in range(k if own else 1)]
        ones = [one for one, _ in made] * (1 if own else k)
        numbers = itertools.count()
        await asyncio.gather(*(_once(one, next(numbers)) for one in ones))
        begun = now_ns()
        until = begun + int(seconds * 1e9)
        if inspect.iscoroutinefunction(ones[0]):
            counts = await asyncio.gather(*(_keep_on(one, numbers, until) for one in ones))
        else:
            counts = await _in_threads(ones, numbers, until)
        took = (now_ns() - begun) / 1e9
        return {"n": sum(counts), "stored": sum(counts) + k, "seconds": took}


async def _once(one, i):
    await done(one(payload(i)))


async def _keep_on(one, numbers, until):
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

    def keep_on(place):
        while now_ns() < until:
            ones[place](payload(next(numbers)))
            counts[place] += 1

    threads = [threading.Thread(target=keep_on, args=(place,)) for place in range(len(ones))]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    return counts


async def spaced(adapter, n, gap):
    """A job every ``gap`` seconds, one by one; the instants just before each call."""
    asked = []
    async with producing(adapter) as (one, _):
        due = now_ns()
        for i in range(n):
            due += int(gap * 1e9)
            await asyncio.sleep(max(0.0, (due - now_ns()) / 1e9))
            asked.append(now_ns())
            await done(one(payload(i)))
    return {"n": n, "asked": asked}


async def paced(adapter, rate, seconds, tick=0.01):
    """``rate`` jobs a second whatever happens: each tick's jobs go together.

    The instants are those at which the jobs should have gone: a producer that falls behind does not
    hide how long they waited.
    """
    asked, late = [], 0
    total, each = int(rate * seconds), max(1, int(rate * tick))
    async with producing(adapter) as (one, many):
        begun = now_ns() + 50_000_000
        for first in range(0, total, each):
            due = begun + int(first / rate * 1e9)
            ahead = (due - now_ns()) / 1e9
            if ahead > 0:
                await asyncio.sleep(ahead)
            late += ahead < -tick
            jobs = [payload(i) for i in range(first, min(first + each, total))]
            asked += [due] * len(jobs)
            if many is not None:
                await done(many(jobs))
            else:
                for job in jobs:
                    await done(one(job))
        return {"n": total, "asked": asked, "late_ticks": late, "seconds": (now_ns() - begun) / 1e9}


async def wait(adapter):
    """Connected beforehand, asleep until told; then the instant at which nothing is left to run."""
    await done(adapter.left())
    print("READY", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    abandon_all = now_ns() + int(60e9)
    while (left := await done(adapter.left())) and now_ns() < abandon_all:
        await asyncio.sleep(0.01)
    return {"at": now_ns(), "left": left}


async def left(adapter):
    return {"left": await done(adapter.left())}


ROLES = {role.__name__: role for role in (setup, bulk, single, callers, spaced, paced, wait, left)}


def main(kind) -> None:
    adapter = kind()
    role, arguments = sys.argv[1], json.loads(sys.argv[2])
    new_loop = getattr(adapter, "new_loop", None)

    async def work():
        await done(adapter.work())

    if role == "work" and not inspect.iscoroutinefunction(adapter.work):
        adapter.work()  # it brings its own loop
        return
    with asyncio.Runner(loop_factory=new_loop) as runner:
        if role == "work":
            runner.run(work())
        else:
            print("RESULT " + json.dumps(runner.run(ROLES[role](adapter, **arguments))), flush=True)


# --- asking PostgreSQL, by whichever driver the peer has -------------------------------------------


class Asker:
    """``await asker(sql)``: one number, on a connection that is kept."""

    def __init__(self) -> None:
        self._ask = None

    async def __call__(self, sql: str) -> int:
        if self._ask is None:
            self._ask = await self._connect()
        return await self._ask(sql)

    async def _connect(self):
        try:
            import asyncpg
        except ImportError:
            import psycopg

            connection = await psycopg.AsyncConnection.connect(URL, autocommit=True)

            async def ask(sql):
                return (await (await connection.execute(sql)).fetchone())[0]

            return ask
        return (await asyncpg.connect(URL)).fetchval
