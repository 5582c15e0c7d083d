"""The measurements of ``rota bench``. Each stores its own jobs and removes them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from ...app import Rota
from ...core.jobs import lifecycle
from ...model import LIVE, JobFilter, PageRequest
from ...runtime.clock import monotonic
from ...runtime.service import pause
from ...store.calls import edit_matching
from ...store.protocol import Store
from ...tasks.task import Task
from .bench_worker import QUEUE, RECORD, TASK
from .exit_codes import CommandFailed
from .supervisor import SUPERVISED

CALLERS = 32
PICKUPS = 100
PICKUP_GAP_S = 0.02
WARM_UP = 10
POLL_S = 0.01
SILENCE_S = 60.0  # without a job for this long, the measurement fails
DELETE_BATCH = 1_000
BENCH_JOBS = JobFilter(queue=QUEUE, task=TASK)

BenchResult = dict[str, float]
Tick = Callable[[int], object]


def payload(i: int) -> dict[str, Any]:
    """About 100 bytes of JSON."""
    return {"i": i, "pad": "x" * 78}


class Benchmark:
    """``jobs``: the most a measurement stores. ``tick`` is called per job, for a progress bar."""

    def __init__(self, app: Rota, task: Task[..., Any], store: Store, jobs: int, workers: int) -> None:
        self._app, self._task, self._store = app, task, store
        self._jobs, self._workers = jobs, workers
        # name: (number of steps, the measurement)
        self.measurements: dict[str, tuple[int, Callable[[Tick], Awaitable[BenchResult]]]] = {
            "single": (max(jobs // 10, 1), self._single),
            "concurrent": (jobs, self._concurrent),
            "bulk": (jobs, self._bulk),
            "drain": (jobs, self._drain),
            "pickup": (PICKUPS, self._pickup),
        }

    async def measure(self, name: str, tick: Tick) -> BenchResult:
        _, run = self.measurements[name]
        try:
            return await run(tick)
        finally:
            await self.clean()

    async def clean(self) -> None:
        """Delete jobs left by this or an earlier run."""
        while await edit_matching(
            self._store, BENCH_JOBS, lifecycle.delete(), DELETE_BATCH, self._app.clock.now()
        ):
            pass

    # --- storing ---------------------------------------------------------------------------------

    async def _single(self, tick: Tick) -> BenchResult:
        """One caller that awaits each enqueue."""
        await self._warm_up()
        return await self._timed(range(self.measurements["single"][0]), 1, tick)

    async def _concurrent(self, tick: Tick) -> BenchResult:
        """Many callers at once, each awaiting its own enqueue."""
        await self._warm_up()
        return await self._timed(range(self._jobs), CALLERS, tick)

    async def _timed(self, numbers: Sequence[int], callers: int, tick: Tick) -> BenchResult:
        waits: list[float] = []
        remaining = iter(numbers)

        async def call() -> None:
            for i in remaining:
                called = monotonic()
                await self._task.enqueue(**payload(i))
                waits.append(monotonic() - called)
                tick(1)

        began = monotonic()
        await asyncio.gather(*(call() for _ in range(callers)))
        return {"jobs_s": len(waits) / (monotonic() - began), **percentiles(waits)}

    async def _bulk(self, tick: Tick) -> BenchResult:
        await self._warm_up()
        jobs = [payload(i) for i in range(self._jobs)]
        began = monotonic()
        await self._task.enqueue_many(jobs)
        took = monotonic() - began
        tick(self._jobs)
        return {"jobs_s": self._jobs / took}

    async def _warm_up(self) -> None:
        """Connections, prepared statements, caches."""
        for i in range(WARM_UP):
            await self._task.enqueue(**payload(i))

    # --- running ---------------------------------------------------------------------------------

    async def _drain(self, tick: Tick) -> BenchResult:
        """From the start of the first task until no benchmark job is left."""
        await self._task.enqueue_many([payload(i) for i in range(self._jobs)])
        async with self._running(self._workers) as records:
            first, _ = await _next(records), tick(1)
            ran = {first[0]}
            while len(ran) < self._jobs:
                ran.add((await _next(records))[0])
                tick(1)
            while (await self._store.jobs(_LIVE_JOBS, PageRequest(limit=1))).items:
                await pause(POLL_S, asyncio.Event())
            return {"jobs_s": self._jobs / (monotonic() - first[1])}

    async def _pickup(self, tick: Tick) -> BenchResult:
        """From just before the enqueue to the start of the task in an idle worker process."""
        waits = []
        async with self._running(1) as records:
            for i in range(WARM_UP + PICKUPS):
                await pause(PICKUP_GAP_S, asyncio.Event())
                called = monotonic()
                await self._task.enqueue(**payload(i))
                _, started = await _next(records)
                waits.append(started - called)
                tick(i >= WARM_UP)
        return percentiles(waits[WARM_UP:])

    @asynccontextmanager
    async def _running(self, workers: int) -> AsyncIterator[asyncio.Queue[tuple[int, float]]]:
        """Worker processes while the block runs; the queue receives each job number and its start time."""
        if not self._store.capabilities.shared:
            raise CommandFailed(
                f"{self._store.url} cannot be shared with worker processes; use a file or a server"
            )
        records: asyncio.Queue[tuple[int, float]] = asyncio.Queue()
        children = [await self._child() for _ in range(workers)]
        readers = [asyncio.create_task(_read(child, records)) for child in children]
        try:
            yield records
        finally:
            for child in children:
                if child.returncode is None:
                    child.terminate()
            await asyncio.gather(*readers, *(child.wait() for child in children))

    async def _child(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "rota.cli.parts.bench_worker",
            stdin=asyncio.subprocess.PIPE,  # closed when this process dies, which makes the child drain
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, SUPERVISED: "1", "ROTA_URL": self._app.settings.url},
            start_new_session=True,
        )  # fmt: skip


_LIVE_JOBS = JobFilter(queue=QUEUE, task=TASK, states=tuple(LIVE))


async def _read(child: asyncio.subprocess.Process, records: asyncio.Queue[tuple[int, float]]) -> None:
    assert child.stdout is not None
    rest = b""
    while chunk := await child.stdout.read(1 << 16):
        whole = len(rest + chunk) // RECORD.size * RECORD.size
        for record in RECORD.iter_unpack((rest + chunk)[:whole]):
            records.put_nowait(record)
        rest = (rest + chunk)[whole:]


async def _next(records: asyncio.Queue[tuple[int, float]]) -> tuple[int, float]:
    if not records.empty():
        return records.get_nowait()
    try:
        return await asyncio.wait_for(records.get(), SILENCE_S)
    except TimeoutError:
        raise CommandFailed(f"no job ran for {SILENCE_S:g} s; see the worker's output above") from None


def percentiles(seconds: Sequence[float]) -> BenchResult:
    """p50 and p99 in milliseconds."""
    ordered = sorted(seconds)
    return {f"p{share}_ms": round(ordered[len(ordered) * share // 100] * 1000, 3) for share in (50, 99)}
