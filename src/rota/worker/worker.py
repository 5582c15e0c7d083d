"""The worker: turns with the store, and the orderly ways to begin and to stop.

One loop makes turns (``exchange.py``), and under load a second one beside it. Nothing is held while
user code runs but the lease. Nothing is claimed before the gates are known.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine
from typing import Any

import msgspec

from ..config import Settings
from ..core.jobs.gates import narrow_claim
from ..errors import StoreError, StoreUnavailable
from ..model import ClaimRequest, Job, Settlement, State, TurnResult, Value
from ..runtime.clock import Clock, monotonic
from ..runtime.events import Hooks
from ..runtime.gate_watch import GateWatch
from ..runtime.metrics import WorkerMetrics
from ..runtime.service import ReconnectPolicy, Tick, any_of, pause, repeat
from ..schedules.scheduler import Scheduler
from ..store.protocol import Store, Waker
from ..tasks.registry import Registry
from ..version import __version__
from . import upkeep
from .context import LogCapture
from .execution import Execution
from .heartbeats import HeartbeatThread
from .maintenance import Maintenance
from .reporting import JobReporter
from .slots import Slots
from .turns import Turns, event_name

log = logging.getLogger("rota.worker")

AHEAD_S = 0.05  # beyond the free slots, claim what is likely to begin within this time
MOST_AHEAD = 1000
SECOND_FROM = 200  # outcomes that are worth a turn beside the one under way
AWAY_AT_STOP_S = 2.0  # how long a stopping worker waits for a store that is away
LAST_TRY_S = 0.3
LAST_WORDS_S = 1.0  # for runs that are handed back, to end by themselves


class WorkerOptions(Value, frozen=True, kw_only=True):
    queues: tuple[str, ...] | None = None
    exclude_queues: tuple[str, ...] = ()
    concurrency: int = 32
    burst: bool = False  # stop when nothing is due
    max_jobs: int | None = None  # stop after so many
    shutdown_timeout_s: float = 30.0
    lease_s: float = 30.0
    poll_s: float = 1.0
    sweep_s: float = upkeep.SWEEP_S
    name: str | None = None
    scheduler: bool = True
    tick_s: float = 1.0
    heartbeat_thread: bool = True  # off only where time is faked
    upkeep: bool = True


class Worker:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        clock: Clock,
        hooks: Hooks,
        settings: Settings,
        options: WorkerOptions,
        identity: str,
        scheduler: Scheduler | None = None,
    ) -> None:
        self.id = identity
        self.options = options
        self.finished = 0  # attempts settled
        self.refused = 0  # outcomes dropped because the lease was gone
        self.released = 0  # runs that were begun and given back unfinished
        self.was_forced = False
        self.is_idle = False
        self.measures = WorkerMetrics()
        self._reporter = JobReporter(identity, clock, hooks, self.measures)
        self._store = store
        self._registry = registry
        self._clock = clock
        self._hooks = hooks
        self._settings = settings
        self.turns = Turns(store, clock, options.lease_s, self._on_settled, self._on_refused)
        self._claimed = 0
        self._reconnect = ReconnectPolicy("worker")
        self._gates = GateWatch(store, clock)
        self._heartbeats: HeartbeatThread | None = None
        self.scheduler = scheduler
        if scheduler is not None:
            scheduler.metrics = self.measures
        self._changed = asyncio.Event()  # something ended here, or we should stop
        self._resting = asyncio.Event()
        self._rest_s = 0.0
        self._stop = asyncio.Event()
        self._forced = asyncio.Event()
        self._pressed = asyncio.Event()  # outcomes pile up while a turn is under way
        self._heard_at = monotonic()  # when the store last answered, while we stop
        self._pace = Throughput()
        self._started_at = clock.now()
        self.slots = Slots(
            identity,
            registry,
            clock,
            options.concurrency,
            options.lease_s,
            settings.max_payload_bytes,
            settings.secret_fields,
            self.measures,
            self._on_began,
            self._on_decided,
        )

    # --- life ------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Claim nothing more; finish what runs, within the shutdown timeout."""
        if not self._stop.is_set():
            self._heard_at = monotonic()
        self._stop.set()
        self._changed.set()
        self.turns.limit_waits(AWAY_AT_STOP_S)

    def force(self) -> None:
        """Hand back at once what runs."""
        self.was_forced = True
        self._forced.set()
        self.drain()

    async def run(self) -> None:
        """Work until drained. Never ends because the store went away."""
        capture = LogCapture(self.id)
        logging.getLogger().addHandler(capture)
        if self.options.heartbeat_thread:
            self._heartbeats = self._new_heartbeat_thread()
        services = self._services()
        try:
            if self._heartbeats is not None:
                self._heartbeats.start()
            self._reporter.emit("worker.started")
            log.info("worker %s started: %s", self.id, self._describe())
            await self._work()
            await self._drain()
        finally:
            logging.getLogger().removeHandler(capture)
            await self._end(services)
            await self._sign_off()
            self._reporter.emit("worker.stopped")
            log.info("worker %s stopped after %d jobs", self.id, self.finished)

    async def _end(self, services: list[asyncio.Task[None]]) -> None:
        ends: list[Coroutine[Any, Any, Any]] = [self.slots.close()]
        for service in services:
            service.cancel()
        if services:
            ends.append(asyncio.wait(services, timeout=1.0))
        if self._heartbeats is not None:
            ends.append(self._heartbeats.stop())
        await asyncio.gather(*ends)

    def _new_heartbeat_thread(self) -> HeartbeatThread:
        return HeartbeatThread(
            self._store,
            self._clock,
            self.id,
            self.options.lease_s,
            self.slots.held,
            self._document,
            self.slots.lost,
            self.slots.cancel,
        )

    def _services(self) -> list[asyncio.Task[None]]:
        steps: dict[str, Tick] = {"gates": self._gates_step}
        if self.options.upkeep:
            steps |= self._chores().steps
        services = [repeat(step, self._stop, ReconnectPolicy(name)) for name, step in steps.items()]
        if self.scheduler is not None and self.options.upkeep:
            step, wake = self.scheduler.tick, self.scheduler.wake
            services.append(repeat(step, self._stop, ReconnectPolicy("scheduler"), wake))
        return [asyncio.create_task(service, name="rota-service") for service in services]

    async def _sign_off(self) -> None:
        if self._reconnect.down_since is not None:
            return
        try:
            async with asyncio.timeout(2):
                await self._store.drop("worker", self.id)
        except (StoreError, TimeoutError) as error:
            log.debug("could not sign off: %s", error)

    # --- turns -----------------------------------------------------------------------------------

    async def _work(self) -> None:
        waker = self._store.waker()
        second = asyncio.create_task(self._second(), name="rota-second-turn")
        hints = asyncio.create_task(self._hear(waker), name="rota-hints")
        try:
            while not self._stop.is_set():
                self._changed.clear()
                delay = await self._guarded_step()
                if delay > 0 and not self._changed.is_set():
                    await self._rest(delay)
                while self.turns.under_way and not self._is_worth_another and not self._stop.is_set():
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            if not self._stop.is_set():  # we are cancelled ourselves
                second.cancel()
            self._pressed.set()
            self._resting.set()
            hints.cancel()
            await asyncio.gather(second, hints, return_exceptions=True)
            await waker.close()

    async def _second(self) -> None:
        """Under load another turn, while the first one commits: neither we nor the store then wait."""
        while not self._stop.is_set():
            await self._pressed.wait()
            self._pressed.clear()
            if self._is_worth_another and not self._stop.is_set():
                await self._guarded_step()
                self._changed.set()

    @property
    def _is_worth_another(self) -> bool:
        """Whether so much has ended that it should not wait for the turn under way."""
        return len(self.turns) >= SECOND_FROM

    async def _rest(self, delay: float) -> None:
        """Until the delay is over, the store hints at work, or something ends here."""
        if len(self.slots) < self.options.concurrency:  # without room a hint would be of no use
            self._rest_s = delay
            self._resting.set()
        await pause(delay, self._changed)
        self._resting.clear()

    async def _hear(self, waker: Waker) -> None:
        """Listen for hints, by one task for all rests: a job may wait for nothing but us to wake up."""
        while not self._stop.is_set():
            await self._resting.wait()
            try:
                await waker.wait(self.options.queues, self._rest_s)
                self._changed.set()
            except StoreError as error:  # without hints we poll
                log.debug("worker %s hears no hints: %s", self.id, error)
                await pause(self.options.poll_s, self._stop)

    async def _guarded_step(self) -> float:
        """A step that survives whatever the store does; the seconds that may pass before the next."""
        try:
            delay = await self._step()
            self._reconnect.worked()
            return delay
        except Exception as error:
            if not isinstance(error, StoreUnavailable):
                log.error("worker %s: %s", self.id, error, exc_info=not isinstance(error, StoreError))
            elif self._reconnect.down_since is None:
                self.measures.outages += 1
            self._reporter.emit("worker.error", error=error)
            await pause(self._reconnect.failed(error, self.turns.asked_at), self._stop)
            return 0.0

    async def _step(self) -> float:
        if not self._gates.seen:
            await self.turns.answered(self._gates.refresh())
        self._claimed -= self.slots.release_stale()
        wish = self._want()
        want = None if wish is None else narrow_claim(wish, self._gates.active())
        if want is None and not len(self.turns):
            if (wish is not None or not self._registry.names) and not self._has_work:
                self._found_nothing()
            return self._until_open()
        turn, asked_at = await self.turns.turn(want)
        if turn.jobs:
            self.is_idle = False
            self._claimed += len(turn.jobs)
            self.measures.claims += len(turn.jobs)
            self.slots.take(turn.jobs, asked_at)
        if want is None:
            return self._until_open()
        return min(self._after(turn, want), self._until_open())

    def _after(self, turn: TurnResult, want: ClaimRequest) -> float:
        if len(turn.jobs) >= want.limit:
            return 0.0  # more may be waiting
        if not turn.jobs and not self._has_work:
            self._found_nothing()
        if turn.next_due_at is None:
            return self.options.poll_s
        until_due = (turn.next_due_at - self._clock.now()).total_seconds()
        return min(max(until_due, 0.001), self.options.poll_s)

    def _until_open(self) -> float:
        """The seconds until a gate opens by itself, at most until the next poll."""
        end_at = self._gates.next_end_at()
        if end_at is None:
            return self.options.poll_s
        return min(max((end_at - self._clock.now()).total_seconds(), 0.001), self.options.poll_s)

    @property
    def _has_work(self) -> bool:
        return bool(len(self.slots) or len(self.turns) or self.turns.under_way)

    def _found_nothing(self) -> None:
        if self.options.burst:
            self.drain()
        if not self.is_idle:
            self.is_idle = True
            self._reporter.emit("worker.idle")

    # --- room ------------------------------------------------------------------------------------

    def _want(self) -> ClaimRequest | None:
        """What to ask for: the free slots, and what the recent pace will use up at once."""
        ahead = min(int(self._pace.per_second(self.slots.ended) * AHEAD_S), MOST_AHEAD)
        most = self.options.concurrency + ahead
        room = most - len(self.slots) - self.turns.asked
        room = min(room, max(self.options.concurrency, most // 2))  # by halves: one runs while one turns
        if self.options.max_jobs is not None:
            left = self.options.max_jobs - self._claimed - self.turns.asked
            if left <= 0 and not self._has_work:
                self.drain()
            room = min(room, left)
        if room <= 0 or self._stop.is_set() or not self._registry.names:
            return None
        return ClaimRequest(
            worker=self.id,
            limit=room,
            lease_s=self.options.lease_s,
            queues=self.options.queues,
            exclude_queues=self.options.exclude_queues,
            tasks=self._registry.names,
        )

    # --- what the hands tell ---------------------------------------------------------------------

    def _on_began(self, run: Execution) -> None:
        if self._hooks.wants("job.started"):
            self._reporter.emit("job.started", run.job)

    def _on_decided(self, run: Execution, change: Settlement | None) -> None:
        if change is None:
            self._on_refused(run, None)
        else:
            if self.turns.add(run, change) >= SECOND_FROM and self.turns.under_way == 1:
                self._pressed.set()
        self._changed.set()

    def _on_settled(self, run: Execution, change: Settlement) -> None:
        self.finished += 1
        if change.state is State.QUEUED:
            self.released += run.started_at is not None and event_name(change) == "job.released"
        self._reporter.settled(run, change)

    def _on_refused(self, run: Execution, change: Settlement | None) -> None:
        self.refused += 1
        self._reporter.refused(run, change)

    # --- drain -----------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Stop claiming → give back what has not begun → let the rest end in time → give back the rest."""
        self.slots.stop_accepting()
        self.slots.release_waiting()
        deadline = monotonic() + self.options.shutdown_timeout_s
        while not self._forced.is_set() and monotonic() < deadline:
            self._changed.clear()
            if not await self._flush() or not len(self.slots):
                break
            left = min(deadline - monotonic(), self.options.poll_s)
            await any_of(self._changed.wait(), self._forced.wait(), timeout=left)
        await self._hand_back()

    async def _hand_back(self) -> None:
        self.slots.release_running()
        deadline = monotonic() + LAST_WORDS_S
        while len(self.slots) and monotonic() < deadline:
            self._changed.clear()
            await pause(deadline - monotonic(), self._changed)
        self.slots.abandon_all()
        await self._flush()

    async def _flush(self) -> bool:
        """Settle what is decided; False if the store stays away: then waiting for runs is in vain too."""
        while True:
            try:
                await self._settle_or_ask()
                self._reconnect.worked()
                self._heard_at = monotonic()
                if not len(self.turns):
                    return True
                continue
            except StoreError as error:
                delay = self._reconnect.failed(error, self.turns.asked_at)
            if self._left() <= 0 or self._forced.is_set():
                log.error(
                    "the store is away: %d outcomes are lost with this worker; their jobs will be rescued",
                    len(self.turns),
                )
                return False
            await pause(min(delay, self._left()), self._forced)

    async def _settle_or_ask(self) -> None:
        self.turns.limit_waits(max(self._left(), LAST_TRY_S))
        if len(self.turns):
            await self.turns.turn(None)
        else:
            await self.turns.answered(self._store.clock())

    def _left(self) -> float:
        """How long the store may still stay away while we stop."""
        return AWAY_AT_STOP_S - (monotonic() - self._heard_at)

    # --- services --------------------------------------------------------------------------------

    async def _gates_step(self) -> float:
        if await self._gates.refresh():
            if self._gates.active():  # what has not begun may be paused now: let the next claim choose anew
                self._claimed -= self.slots.release_waiting()
            if self._heartbeats is not None:
                self._heartbeats.hurry()
            self._changed.set()
        return self.options.poll_s

    def _on_rescued(self, name: str, job: Job, error: Any) -> None:
        self._reporter.emit(name, job, error)
        self._changed.set()

    def _chores(self) -> Maintenance:
        return Maintenance(
            self._store,
            self._clock,
            self._settings,
            self.id,
            self.options.lease_s,
            self.options.sweep_s,
            lambda: self._registry.names,
            self._on_rescued,
            self.measures,
        )

    # --- telling ---------------------------------------------------------------------------------

    def _describe(self) -> str:
        queues = ", ".join(self.options.queues) if self.options.queues else "all queues"
        n = len(self._registry.names)
        tasks = f"{n} task{'s' * (n != 1)}"
        return f"{tasks}, {queues}, {self.options.concurrency} at once, on {self._store.url}"

    def _document(self) -> str:
        body = {
            "id": self.id,
            "name": self.options.name,
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "queues": self.options.queues,
            "exclude_queues": self.options.exclude_queues,
            "tasks": self._registry.names,
            "concurrency": self.options.concurrency,
            "running": len(self.slots.running),
            "finished": self.finished,
            "state": self.state,
            "started_at": self._started_at,
            "version": __version__,
            "measures": self.measures.snapshot(),
        }
        return msgspec.json.encode(body).decode()

    @property
    def state(self) -> str:
        """``running``, ``paused`` while everything is, or ``draining``."""
        if self._stop.is_set():
            return "draining"
        return "paused" if self._gates.is_all_closed else "running"


class Throughput:
    """Runs ended per second, over the last moments."""

    def __init__(self) -> None:
        self._at = monotonic()
        self._ended = 0
        self._pace = 0.0

    def per_second(self, ended: int) -> float:
        now = monotonic()
        if now - self._at >= 0.02:
            self._pace = (ended - self._ended) / (now - self._at)
            self._at, self._ended = now, ended
        return self._pace
