"""Keeps leases alive from a thread with an event loop and a store connection of its own.

A blocked worker loop cannot stop it. It renews leases at a third of their length, carries progress
out and cancellations in, and, when the store cannot be reached, stops runs before their leases can
have expired. It decides nothing about jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..core.jobs.lifecycle import reason_to_stop
from ..errors import StoreUnavailable
from ..model import Heartbeat, HeartbeatReply, JobFilter, Lease, PageRequest, ProgressUpdate
from ..runtime.clock import Clock, monotonic
from ..runtime.failpoints import hit
from ..runtime.service import ReconnectPolicy, repeat
from ..store.protocol import Store
from .execution import FENCE

if TYPE_CHECKING:
    from .execution import Execution

log = logging.getLogger("rota.worker")

TICK = 1.0
TOGETHER = 2000  # leases in one statement

Tell = Callable[[list["Execution"]], None]


class HeartbeatThread:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        worker: str,
        lease_s: float,
        runs: Callable[[], Iterable[Execution]],
        document: Callable[[], str],
        lost: Tell,
        cancel: Tell,
    ) -> None:
        self._store = store
        self._clock = clock
        self._worker = worker
        self._lease_s = lease_s
        self._runs = runs
        self._document = document
        self._lost = lost
        self._cancel = cancel
        self._beat_at = float("-inf")
        self._news = self._carried = 0
        self._tick = min(TICK, lease_s / 4)
        self._reconnect = ReconnectPolicy("heartbeat", longest=self._tick)
        self._opened = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._home = asyncio.get_running_loop()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._serve, name="rota-heartbeat", daemon=True)
        self._thread.start()

    def hurry(self) -> None:
        """There is news of this worker: let the next tick carry it."""
        self._news += 1

    async def stop(self) -> None:
        """End the thread; a beat that hangs is not waited for."""
        if self._thread is None:
            return
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, 2.0)

    def _serve(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception:
            log.exception("the heartbeat thread ended with an error; leases are no longer renewed")

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        store = self._store.for_another_loop()
        # The fence is watched beside the beats: it must hold while a beat hangs.
        fence = asyncio.create_task(repeat(self._fence, self._stop, ReconnectPolicy("fence")))
        beats = asyncio.create_task(repeat(lambda: self._step(store), self._stop, self._reconnect))
        await self._stop.wait()
        beats.cancel()
        await asyncio.wait({beats, fence}, timeout=1.0)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(store.close(), 1.0)

    async def _step(self, store: Store) -> float:
        try:
            async with asyncio.timeout(self._lease_s / 3):
                if not self._opened:
                    await store.open()
                    self._opened = True
                await self._beat(store)
        except TimeoutError:
            raise StoreUnavailable("a heartbeat was not answered in time") from None
        return self._tick

    async def _beat(self, store: Store) -> None:
        sent_at = monotonic()
        runs = [run for run in self._runs() if not run.ended and run.stop_reason != "lost"]
        due = [run for run in runs if sent_at - run.renewed_at >= self._lease_s / 3]
        notes = [(run, mark) for run in runs if (mark := run.context.mark) not in (None, run.noted)]
        news = self._news
        if not (runs or news > self._carried or sent_at - self._beat_at >= self._lease_s / 3):
            return
        hit("beat.before")
        for first in range(0, max(len(due), 1), TOGETHER):
            part = due[first : first + TOGETHER]
            reply = await store.heartbeat(self._pulse(part, notes if first == 0 else []), self._clock.now())
            await self._heard(store, reply, part, runs, sent_at)
        hit("beat.after")
        for run, mark in notes:
            run.noted = mark
        self._beat_at, self._carried = sent_at, news
        if self._clock.is_stale:
            await self._clock.sync(store.clock)

    def _pulse(self, due: list[Execution], notes: Sequence[tuple[Execution, object]]) -> Heartbeat:
        return Heartbeat(
            worker=self._worker,
            document=self._document(),
            lease_s=self._lease_s,
            leases=[Lease(id=run.job.id, token=run.job.token) for run in due],
            notes=[
                ProgressUpdate(id=run.job.id, token=run.job.token, progress_json=run.context.live_json)
                for run, _ in notes
            ],
        )

    async def _heard(
        self, store: Store, reply: HeartbeatReply, due: list[Execution], runs: list[Execution], sent_at: float
    ) -> None:
        for run in due:
            if run.job.id not in reply.lost:
                run.renewed_at = sent_at
        # Runs, not ids: this worker may have begun the same job again under a newer lease.
        self._call_in_worker_loop(self._lost, [run for run in due if run.job.id in reply.lost])
        asked = [run for run in runs if run.job.id in reply.cancel and run.stop_reason is None]
        if asked:
            await self._ask_why(store, asked)
            self._call_in_worker_loop(self._cancel, asked)

    async def _ask_why(self, store: Store, asked: list[Execution]) -> None:
        ids = tuple(run.job.id for run in asked)
        found = {
            job.id: job for job in (await store.jobs(JobFilter(ids=ids), PageRequest(limit=len(ids)))).items
        }
        for run in asked:
            if run.job.id in found:
                run.context.stop_text = reason_to_stop(found[run.job.id])

    async def _fence(self) -> float:
        """Stop what may already have been given to somebody else."""
        deadline = monotonic() - self._lease_s * FENCE
        gone = [run for run in self._runs() if run.renewed_at < deadline and run.stop_reason is None]
        for run in gone:
            run.context.stop_reason = "lost"  # even if the loop is blocked, the task can see it
        self._call_in_worker_loop(self._lost, gone)
        return min(TICK, self._lease_s * (1 - FENCE) / 4)

    def _call_in_worker_loop(self, tell: Tell, runs: list[Execution]) -> None:
        if not runs:
            return
        try:
            self._home.call_soon_threadsafe(tell, runs)
        except RuntimeError:
            log.debug("the worker's loop has ended before its heartbeat thread")
