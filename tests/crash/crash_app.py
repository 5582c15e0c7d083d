"""The program under test: ``python crash_app.py '{"lease_s": 1.0}'`` is one worker.

CRASH_URL names the store and CRASH_RUN_LOG the run log: in the environment, so that the children of
process tasks have them too. CRASH_PATIENCE_S shortens the patience with a silent server. A handler that
must wait polls for a latch, a file next to the run log.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from run_log import RunLog

from rota import Backoff, Context, Rota
from rota.runtime.events import Event

CHECK_S = 0.01

if "CRASH_PATIENCE_S" in os.environ:
    from patience import shorten

    shorten(float(os.environ["CRASH_PATIENCE_S"]))

app = Rota(os.environ["CRASH_URL"])
run_log = RunLog(os.environ["CRASH_RUN_LOG"])


@contextmanager
def recorded(ctx: Context) -> Iterator[None]:
    """Record the start, and the end if it is reached."""
    run_log.began(ctx.job.id, ctx.job.lease_token, ctx.worker)
    yield
    run_log.ended(ctx.job.id, ctx.job.lease_token, ctx.worker)


def is_open(latch: str) -> bool:
    return run_log.path.with_suffix(f".{latch}").exists()


# --- load ----------------------------------------------------------------------------------------


@app.task
async def work(ctx: Context, ms: int = 0) -> None:
    with recorded(ctx):
        await asyncio.sleep(ms / 1000)


@app.task
def work_thread(ctx: Context, ms: int = 0) -> None:
    work_blocking(ctx, ms)


@app.task(executor="process")
def work_process(ctx: Context, ms: int = 0) -> None:
    work_blocking(ctx, ms)


def work_blocking(ctx: Context, ms: int) -> None:
    with recorded(ctx):
        time.sleep(ms / 1000)


@app.task
async def fat(ctx: Context, text: str) -> int:
    with recorded(ctx):
        return len(text)


@app.task
async def fan_out(ctx: Context) -> None:
    with recorded(ctx):
        for _ in range(3):
            ctx.enqueue(work)


# --- limits --------------------------------------------------------------------------------------


@contextmanager
def measured(ctx: Context) -> Iterator[None]:
    """Record the start with the time of the claim, and the end however it comes."""
    assert ctx.job.started_at is not None
    claimed_us = round(ctx.job.started_at.timestamp() * 1e6)
    run_log.began(ctx.job.id, ctx.job.lease_token, ctx.worker, claimed_us * 1000)
    try:
        yield
    finally:
        run_log.ended(ctx.job.id, ctx.job.lease_token, ctx.worker)


@app.task(backoff=Backoff(base=0.1, factor=1, jitter=0.2))
async def limited(ctx: Context, ms: int, fails: bool) -> None:
    with measured(ctx):
        await asyncio.sleep(ms / 1000)
        if fails and ctx.attempt == 1:
            raise ConnectionError("the first attempt fails")


@app.task(backoff=Backoff(base=0.1, factor=1, jitter=0.2))
def limited_thread(ctx: Context, ms: int, fails: bool) -> None:
    with measured(ctx):
        time.sleep(ms / 1000)
        if fails and ctx.attempt == 1:
            raise ConnectionError("the first attempt fails")


# --- handlers that wait --------------------------------------------------------------------------


def runs(ctx: Context) -> int:
    """How often the job has been run, this time included."""
    return ctx.attempt + ctx.job.crashes


@app.task
async def hold(ctx: Context, latch: str, only_first: bool = False) -> int:
    with recorded(ctx):
        ctx.progress(runs(ctx), "holding")
        while not (is_open(latch) or (only_first and runs(ctx) > 1)):  # noqa: ASYNC110 - opened from outside
            await asyncio.sleep(CHECK_S)
    return runs(ctx)


@app.task
def hold_thread(ctx: Context, latch: str, only_first: bool = False) -> int:
    return hold_blocking(ctx, latch, only_first)


@app.task(executor="process")
def hold_process(ctx: Context, latch: str, only_first: bool = False) -> int:
    return hold_blocking(ctx, latch, only_first)


def hold_blocking(ctx: Context, latch: str, only_first: bool) -> int:
    with recorded(ctx):
        ctx.progress(runs(ctx), "holding")
        while not (is_open(latch) or (only_first and runs(ctx) > 1)):
            time.sleep(CHECK_S)
    return runs(ctx)


@app.task
async def block_loop(ctx: Context, seconds: float) -> None:
    with recorded(ctx):
        time.sleep(seconds)  # noqa: ASYNC251 - the error under test


@app.task
async def hold_interpreter(ctx: Context, seconds: float) -> int:
    """Hold the interpreter's lock for this long at a stretch, in the first run."""
    with recorded(ctx):
        usual = sys.getswitchinterval()
        sys.setswitchinterval(3600)  # other threads wait this long before they ask for the lock
        end = time.monotonic() + (seconds if runs(ctx) == 1 else 0)
        while time.monotonic() < end:
            pass
        sys.setswitchinterval(usual)
    return runs(ctx)


@app.task
async def hang(ctx: Context, seconds: float) -> int:
    """Hold the interpreter's lock without doing anything, in the first run."""
    with recorded(ctx):
        if runs(ctx) == 1:
            ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return runs(ctx)


@app.task(backoff=Backoff(base=0.2, factor=2, jitter=0.5))
async def fails_until(ctx: Context, latch: str) -> None:
    """As a service that is down until the latch opens."""
    with recorded(ctx):
        if not is_open(latch):
            raise ConnectionError("x" * 100_000)


# --- poison --------------------------------------------------------------------------------------

SOON = Backoff(base=0.05, factor=1, jitter=0)


@app.task(executor="process", backoff=SOON)
def exits(ctx: Context) -> None:
    with recorded(ctx):
        os._exit(3)


@app.task(executor="process", backoff=SOON)
def segfaults(ctx: Context) -> None:
    with recorded(ctx):
        ctypes.string_at(0)


@app.task(executor="process", backoff=SOON)
def eats_memory(ctx: Context) -> None:
    with recorded(ctx):
        resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30))
        bytearray(2**31)


@app.task(executor="process")
def prints(ctx: Context, megabytes: int) -> int:
    with recorded(ctx):
        for _ in range(megabytes):
            print("x" * 2**20)
    return megabytes


@app.task(executor="process")
def forks(ctx: Context) -> int:
    """Leave a process behind that outlives the job."""
    with recorded(ctx):
        return subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL).pid


@app.task(timeout=0.5)
async def ignores_cancellation(ctx: Context) -> str:
    with recorded(ctx):
        for _ in range(5):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.5)
    return "late"


@app.task(executor="process", timeout=0.5)
def spins_process(ctx: Context) -> None:
    with recorded(ctx):
        while True:
            pass


@app.task(timeout=0.5)
def spins_thread(ctx: Context) -> None:
    with recorded(ctx):
        while True:
            pass


@app.task
async def kills_worker(ctx: Context) -> None:
    with recorded(ctx):
        os._exit(9)


# --- the worker ----------------------------------------------------------------------------------


def accepted(event: Event) -> None:
    assert event.job is not None
    run_log.write("T", event.job.id, event.job.lease_token, event.job.state)


for name in ("job.succeeded", "job.failed", "job.cancelled"):
    app.on(name)(accepted)


@app.on("worker.started")
def started(event: Event) -> None:
    app.clock._base += float(os.environ.get("CRASH_CLOCK_OFF_S", "0"))  # as after a sleep it did not count
    run_log.write("W", event.worker, os.getpid())


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    options: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    produce: int = options.pop("produce", 0)
    if produce:
        asyncio.run(enqueue_and_work(produce, options))
    else:
        app.run(**options)


async def enqueue_and_work(count: int, options: dict[str, Any]) -> None:
    """Enqueue one job after the other while a worker runs in the same process, until SIGTERM."""
    producer = asyncio.create_task(enqueue(count))
    await app.serve(**options)
    await producer


async def enqueue(count: int) -> None:
    for n in range(count):
        job = await app.enqueue("work", {"ms": n % 5})
        run_log.write("A", job.id, n)
    run_log.write("P", os.getpid())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
