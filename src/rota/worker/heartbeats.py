"""Keeps leases from expiring, from a thread with an event loop and a store connection of its own.

A blocked worker loop cannot stop it. It renews leases at a third of their length, carries progress out
and cancellations in, and, when the store is unavailable, stops executions before their leases can have
expired. It decides nothing about jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime

from ..core.jobs.lifecycle import reason_to_stop
from ..errors import StoreUnavailable
from ..model import Heartbeat, HeartbeatReply, JobFilter, Lease, PageRequest, ProgressUpdate
from ..runtime.clock import awake, monotonic
from ..runtime.failpoints import hit
from ..runtime.service import repeat
from ..runtime.service_records import ServiceRecord
from ..store.protocol import Store
from .environment import WorkerEnvironment
from .execution import FENCE, Execution
from .lease_guard import LeaseGuard, can_guard
from .loop_watch import LoopWatch
from .slots import Slots

log = logging.getLogger("rota.worker")

TICK_S = 1.0
MAX_LEASES = 2000  # renewed by one call of the store
JOIN_S = 2.0
IDLE_S = 20.0  # between the heartbeats of a worker that holds no lease
KEEP_OPEN_S = 5.0  # the connection, after the last lease


class HeartbeatThread:
    """Sends the heartbeats of one worker. Touches executions only by their marks of renewal and stop."""

    def __init__(self, environment: WorkerEnvironment, slots: Slots, document: Callable[[], str]) -> None:
        self._environment = environment
        self._clock = environment.clock
        self._slots = slots
        self._document = document
        self._lease_s = environment.options.lease_s
        self._idle_s = min(IDLE_S, self._lease_s * 2 / 3)
        self._sent_at = self._held_at = float("-inf")
        self._showed_leases = False  # whether the last document said that there are some
        self._wanted = self._carried = 0  # counts of documents to send, and sent
        self._jumps = 0  # those after which every lease was renewed
        self._tick_s = min(TICK_S, self._lease_s / 4)
        self._fenced_at = self._spared_until = awake()
        self._reconnect = ServiceRecord("heartbeat", longest=self._tick_s)
        self._showing = contextlib.ExitStack()
        self._is_open = False
        self._thread: threading.Thread | None = None
        self._loop = asyncio.new_event_loop()  # made here: a stop must reach a thread that has yet to begin
        self._stop = asyncio.Event()
        self._worker_loop = asyncio.get_running_loop()
        self._guard = LeaseGuard(environment, document)
        blocked_s = environment.settings.blocked_loop_s
        self._watch = LoopWatch(self._worker_loop, environment.worker, blocked_s)
        slots.is_sparing = self._is_sparing

    def start(self) -> None:
        self._showing.enter_context(self._environment.records.showing(self._reconnect))
        if can_guard(self._environment):  # before the first claim: its task may be the one that starves us
            self._guard.start()
        thread = threading.Thread(target=self._serve, name="rota-heartbeat", daemon=True)
        thread.start()
        self._thread = thread

    def send_soon(self) -> None:
        """The worker's document has changed: let the next tick carry it."""
        self._wanted += 1

    async def stop(self) -> None:
        """End the thread; a heartbeat without an answer is not waited for."""
        self._showing.close()
        if self._thread is None:
            self._loop.close()
            return
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, JOIN_S)
        await asyncio.to_thread(self._guard.stop)

    def _serve(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._main())
        except Exception as error:
            self._reconnect.ended(error)
            log.exception("the heartbeat thread failed; leases are no longer renewed")
        if self._worker_loop.is_closed():  # no one calls stop
            self._guard.stop()

    async def _main(self) -> None:
        store = self._environment.store.for_another_loop()
        # The fence runs beside the heartbeats: it must hold while one of them gets no answer.
        fence = asyncio.create_task(repeat(self._fence, self._stop, ServiceRecord("fence")))
        heartbeats = asyncio.create_task(repeat(lambda: self._tick(store), self._stop, self._reconnect))
        await self._stop.wait()
        heartbeats.cancel()
        await asyncio.wait({heartbeats, fence}, timeout=1.0)
        try:
            await asyncio.wait_for(store.close(), 1.0)
        except TimeoutError:
            store.abandon()  # its loop ends here

    def _is_orphaned(self) -> bool:
        """Whether the worker's loop was closed under it. Then no one can settle: the leases must expire."""
        if not self._worker_loop.is_closed():
            return False
        if not self._stop.is_set():
            self._stop.set()
            log.warning(
                "worker %s: its event loop was closed before it stopped; its jobs are rescued",
                self._environment.worker,
            )
        return True

    async def _tick(self, store: Store) -> float:
        if self._is_orphaned():
            return self._tick_s
        longest_s = self._lease_s / 3
        try:
            async with asyncio.timeout(longest_s):
                await self._send(store)
                if self._is_open and monotonic() - self._held_at > KEEP_OPEN_S:
                    self._is_open = False
                    await store.close()
        except TimeoutError:
            raise StoreUnavailable(f"the store did not answer a heartbeat within {longest_s:g} s") from None
        return self._tick_s

    async def _send(self, store: Store) -> None:
        sent_at = monotonic()
        held = [one for one in self._slots.held() if not one.ended and one.stop_reason != "lost"]
        jumps = self._slots.jumps
        # what would be due before the next heartbeat is due now
        longest_s = self._lease_s / 3 - self._tick_s if jumps == self._jumps else 0.0
        due = [one for one in held if sent_at - one.renewed_at >= longest_s]
        updates = [(one, mark) for one in held if (mark := one.context.mark) not in (None, one.reported)]
        wanted = self._wanted
        was_held = self._showed_leases
        if held:
            self._held_at = sent_at
        elif not (was_held or wanted > self._carried or sent_at - self._sent_at >= self._idle_s):
            return
        is_idle = not (held or was_held)
        hit("beat.before")
        for first in range(0, max(len(due), 1), MAX_LEASES):
            part = due[first : first + MAX_LEASES]
            heartbeat = self._heartbeat(part, [one for one, _ in updates] if first == 0 else [])
            asked_at = monotonic()
            reply = await self._ask(store, is_idle, heartbeat)
            if self._clock.correct(reply.at, asked_at) > self._lease_s / 3:
                self._slots.jumps += 1
            await self._apply(reply, part, held, sent_at, store)
        hit("beat.after")
        for execution, mark in updates:
            execution.reported = mark
        self._sent_at, self._carried, self._jumps = sent_at, wanted, jumps
        self._showed_leases = bool(held)

    async def _ask(self, store: Store, is_idle: bool, heartbeat: Heartbeat) -> HeartbeatReply:
        """Send it by this thread's own connection, or, while there is nothing to keep, by the worker's.

        So an idle worker needs one connection less. A worker's loop that is blocked is not waited for.
        """
        now = self._clock.store_now
        if is_idle:
            sent = _beat(self._environment.store, heartbeat, now)
            try:
                theirs = asyncio.run_coroutine_threadsafe(sent, self._worker_loop)
            except RuntimeError:  # closed since the tick began
                sent.close()
                raise StoreUnavailable("the worker's event loop is closed") from None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._tick_s):
                    return await asyncio.wrap_future(theirs)
        if not self._is_open:
            await store.open()
            self._is_open = True
        return await store.heartbeat(heartbeat, now)

    def _heartbeat(self, due: Sequence[Execution], updated: Sequence[Execution]) -> Heartbeat:
        return Heartbeat(
            worker=self._environment.worker,
            document=self._document(),
            lease_s=self._lease_s,
            leases=[Lease(id=one.job.id, lease_token=one.job.lease_token) for one in due],
            notes=[
                ProgressUpdate(
                    id=one.job.id, lease_token=one.job.lease_token, progress_json=one.context.live_json
                )
                for one in updated
            ],
        )

    async def _apply(
        self,
        reply: HeartbeatReply,
        due: Sequence[Execution],
        held: Sequence[Execution],
        sent_at: float,
        store: Store,
    ) -> None:
        for execution in due:
            if execution.job.id not in reply.lost:
                execution.renewed_at = sent_at
        # Executions, not ids: this worker may have started the same job again under a newer lease.
        stops = self._slots.stops
        self._call_in_worker_loop(stops.stop_lost, [one for one in due if one.job.id in reply.lost])
        cancelled = [one for one in held if one.job.id in reply.cancel and one.stop_reason is None]
        if cancelled:
            await _read_cancel_reasons(store, cancelled)
            self._call_in_worker_loop(stops.stop_cancelled, cancelled)

    async def _fence(self) -> float:
        """Stop the executions whose jobs another worker may already hold."""
        if self._is_orphaned():
            return TICK_S
        self._guard.report_life(self._slots.held())
        self._watch.check()
        lost = self._slots.outdated()
        self._fenced_at = awake()
        for execution in lost:
            execution.context.stop_reason = "lost"  # even if the loop is blocked, the task can see it
        self._call_in_worker_loop(self._slots.stops.stop_lost, lost)
        return min(TICK_S, self._lease_s * (1 - FENCE) / 4)

    def _is_sparing(self) -> bool:
        """Note what the guard has renewed; whether the rest is spared until a heartbeat is answered.

        That is after a starved process wakes, which is no sign that anyone else holds its jobs. One that was
        suspended wakes long after its leases have expired. Called from any thread.
        """
        self._guard.apply_reports(self._slots.held)
        if awake() - self._fenced_at > self._lease_s / 3:
            self._spared_until = awake() + self._lease_s / 3
        return awake() < self._spared_until

    def _call_in_worker_loop(
        self, stop: Callable[[list[Execution]], None], executions: list[Execution]
    ) -> None:
        if not executions:
            return
        try:
            self._worker_loop.call_soon_threadsafe(stop, executions)
        except RuntimeError:
            log.debug("the worker's loop ended before its heartbeat thread")


async def _beat(store: Store, heartbeat: Heartbeat, now: datetime | None) -> HeartbeatReply:
    return await store.heartbeat(heartbeat, now)


async def _read_cancel_reasons(store: Store, executions: Sequence[Execution]) -> None:
    ids = tuple(one.job.id for one in executions)
    page = await store.jobs(JobFilter(ids=ids), PageRequest(limit=len(ids)))
    found = {job.id: job for job in page.items}
    for execution in executions:
        if execution.job.id in found:
            execution.context.cancel_reason = reason_to_stop(found[execution.job.id])
