"""The program under test: ``python crash_app.py '{"lease_s": 1.0}'`` is one worker.

CRASH_URL names the store and CRASH_RUN_LOG the run log: in the environment, so that the children of
process tasks have them too. A handler that must wait polls for a latch, a file next to the run log.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import logging
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from run_log import RunLog

from rota import Backoff, Context, Rota
from rota.runtime.events import Event

CHECK_S = 0.01

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


# --- handlers that wait --------------------------------------------------------------------------


@app.task
async def hold(ctx: Context, latch: str, only_first: bool = False) -> int:
    with recorded(ctx):
        ctx.progress(ctx.attempt, "holding")
        while not (is_open(latch) or (only_first and ctx.attempt > 1)):  # noqa: ASYNC110 - opened from outside
            await asyncio.sleep(CHECK_S)
    return ctx.attempt


@app.task
def hold_thread(ctx: Context, latch: str, only_first: bool = False) -> int:
    return hold_blocking(ctx, latch, only_first)


@app.task(executor="process")
def hold_process(ctx: Context, latch: str, only_first: bool = False) -> int:
    return hold_blocking(ctx, latch, only_first)


def hold_blocking(ctx: Context, latch: str, only_first: bool) -> int:
    with recorded(ctx):
        ctx.progress(ctx.attempt, "holding")
        while not (is_open(latch) or (only_first and ctx.attempt > 1)):
            time.sleep(CHECK_S)
    return ctx.attempt


@app.task
async def block_loop(ctx: Context, seconds: float) -> None:
    with recorded(ctx):
        time.sleep(seconds)  # noqa: ASYNC251 - the error under test


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
