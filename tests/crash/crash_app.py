"""The program under attack: ``python crash_app.py '{"lease_s": 1.0}'`` is one worker.

CRASH_URL names the store and CRASH_LEDGER the ledger: by environment, so that the children of
process tasks have them too. A handler that must wait watches for a gate: a file beside the ledger.
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

from ledger import Ledger

from rota import Backoff, Context, Rota
from rota.runtime.events import Event

LOOK_S = 0.01

app = Rota(os.environ["CRASH_URL"])
ledger = Ledger(os.environ["CRASH_LEDGER"])


@contextmanager
def told(ctx: Context) -> Iterator[None]:
    """Write down the beginning, and the end if it is reached."""
    ledger.began(ctx.job.id, ctx.job.token, ctx.worker)
    yield
    ledger.ended(ctx.job.id, ctx.job.token, ctx.worker)


def is_open(gate: str) -> bool:
    return ledger.path.with_suffix(f".{gate}").exists()


# --- load ----------------------------------------------------------------------------------------


@app.task
async def work(ctx: Context, ms: int = 0) -> None:
    with told(ctx):
        await asyncio.sleep(ms / 1000)


@app.task
def work_thread(ctx: Context, ms: int = 0) -> None:
    with told(ctx):
        time.sleep(ms / 1000)


@app.task(executor="process")
def work_process(ctx: Context, ms: int = 0) -> None:
    with told(ctx):
        time.sleep(ms / 1000)


# --- handlers that wait --------------------------------------------------------------------------


@app.task
async def hold(ctx: Context, gate: str, only_first: bool = False) -> int:
    with told(ctx):
        ctx.progress(ctx.attempt, "holding")
        while not (is_open(gate) or (only_first and ctx.attempt > 1)):  # noqa: ASYNC110 - opened from outside
            await asyncio.sleep(LOOK_S)
    return ctx.attempt


@app.task
def hold_thread(ctx: Context, gate: str, only_first: bool = False) -> int:
    with told(ctx):
        ctx.progress(ctx.attempt, "holding")
        while not (is_open(gate) or (only_first and ctx.attempt > 1)):
            time.sleep(LOOK_S)
    return ctx.attempt


@app.task(executor="process")
def hold_process(ctx: Context, gate: str, only_first: bool = False) -> int:
    with told(ctx):
        ctx.progress(ctx.attempt, "holding")
        while not (is_open(gate) or (only_first and ctx.attempt > 1)):
            time.sleep(LOOK_S)
    return ctx.attempt


@app.task
async def block_loop(ctx: Context, seconds: float) -> None:
    with told(ctx):
        time.sleep(seconds)  # noqa: ASYNC251 - the fault under test


# --- poison --------------------------------------------------------------------------------------

SOON = Backoff(base=0.05, factor=1, jitter=0)


@app.task(executor="process", backoff=SOON)
def exits(ctx: Context) -> None:
    with told(ctx):
        os._exit(3)


@app.task(executor="process", backoff=SOON)
def segfaults(ctx: Context) -> None:
    with told(ctx):
        ctypes.string_at(0)


@app.task(executor="process", timeout=0.5)
def spins_process(ctx: Context) -> None:
    with told(ctx):
        while True:
            pass


@app.task(timeout=0.5)
def spins_thread(ctx: Context) -> None:
    with told(ctx):
        while True:
            pass


@app.task
async def kills_worker(ctx: Context) -> None:
    with told(ctx):
        os._exit(9)


# --- the worker ----------------------------------------------------------------------------------


def accepted(event: Event) -> None:
    assert event.job is not None
    ledger.write("T", event.job.id, event.job.token, event.job.state)


for name in ("job.succeeded", "job.failed", "job.cancelled"):
    app.on(name)(accepted)


@app.on("worker.started")
def started(event: Event) -> None:
    ledger.write("W", event.worker, os.getpid())


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    options: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    produce: int = options.pop("produce", 0)
    if produce:
        asyncio.run(enqueue_and_work(produce, options))
    else:
        app.run(**options)


async def enqueue_and_work(count: int, options: dict[str, Any]) -> None:
    """Enqueue one job after the other beside a worker in the same process, until told to stop."""
    producer = asyncio.create_task(enqueue(count))
    await app.serve(**options)
    await producer


async def enqueue(count: int) -> None:
    for n in range(count):
        job = await app.enqueue("work", {"ms": n % 5})
        ledger.write("A", job.id, n)
    ledger.write("P", os.getpid())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
