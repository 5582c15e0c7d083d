"""The worker: turns with the store, and the orderly ways to begin and to stop.

One loop makes turns (``exchange.py``), and under load a second one beside it. Nothing is held while
user code runs but the lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Coroutine
from typing import Any

import msgspec

from .. import upkeep
from ..clock import Clock, monotonic
from ..config import Settings
from ..errors import StoreError, StoreUnavailable
from ..events import Event, Hooks
from ..model import Change, Job, State, Turn, Value, Want
from ..scheduler import Scheduler
from ..service import Patience, any_of, pause, repeat
from ..store.protocol import Store, Waker
from ..task import Registry
from .context import LogCapture
from .exchange import Exchange, event_name
from .hands import Hands
from .keeper import Keeper
from .run import Run

log = logging.getLogger("rota.worker")

AHEAD_S = 0.05  # beyond the free slots, claim what is likely to begin within this time
MOST_AHEAD = 1000
SECOND_FROM = 200  # outcomes that are worth a turn beside the one under way
AWAY_AT_STOP_S = 2.0  # how long a stopping worker waits for a store that is away
LAST_TRY_S = 0.3
LAST_WORDS_S = 1.0  # for runs that are handed back, to end by themselves
UNSERVED_S = 60.0
SWEEP_SHARE = 100  # a sweep for lost jobs takes at most one part in this many of the time


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
    keeper: bool = True  # off only where time is faked
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
        self.handed_back = 0  # runs that were begun and given back unfinished
        self.was_forced = False
        self.is_idle = False
        self._store = store
        self._registry = registry
        self._clock = clock
        self._hooks = hooks
        self._settings = settings
        self.exchange = Exchange(store, clock, options.lease_s, self._on_settled, self._on_refused)
        self._claimed = 0
        self._patience = Patience("worker")
        self.scheduler = scheduler
        self._changed = asyncio.Event()  # something ended here, or we should stop
        self._resting = asyncio.Event()
        self._rest_s = 0.0
        self._stop = asyncio.Event()
        self._forced = asyncio.Event()
        self._pressed = asyncio.Event()  # outcomes pile up while a turn is under way
        self._heard_at = monotonic()  # when the store last answered, while we stop
        self._pace = Pace()
        self._unserved: frozenset[str] = frozenset()
        self._started_at = clock.now()
        self.hands = Hands(
            identity,
            registry,
            clock,
            options.concurrency,
            options.lease_s,
            settings.max_payload_bytes,
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
        self.exchange.be_quick(AWAY_AT_STOP_S)

    def force(self) -> None:
        """Hand back at once what runs."""
        self.was_forced = True
        self._forced.set()
        self.drain()

    async def run(self) -> None:
        """Work until drained. Never ends because the store went away."""
        capture = LogCapture(self.id)
        logging.getLogger().addHandler(capture)
        keeper = self._keeper() if self.options.keeper else None
        services = self._services() if self.options.upkeep else []
        try:
            if keeper is not None:
                keeper.start()
            self._emit("worker.started")
            log.info("worker %s started: %s", self.id, self._describe())
            await self._work()
            await self._drain()
        finally:
            logging.getLogger().removeHandler(capture)
            await self._end(services, keeper)
            await self._sign_off()
            self._emit("worker.stopped")
            log.info("worker %s stopped after %d jobs", self.id, self.finished)

    async def _end(self, services: list[asyncio.Task[None]], keeper: Keeper | None) -> None:
        ends: list[Coroutine[Any, Any, Any]] = [self.hands.close()]
        for service in services:
            service.cancel()
        if services:
            ends.append(asyncio.wait(services, timeout=1.0))
        if keeper is not None:
            ends.append(keeper.stop())
        await asyncio.gather(*ends)

    def _keeper(self) -> Keeper:
        return Keeper(
            self._store,
            self._clock,
            self.id,
            self.options.lease_s,
            self.hands.held,
            self._document,
            self.hands.lost,
            self.hands.cancel,
        )

    def _services(self) -> list[asyncio.Task[None]]:
        steps = {
            "rescue": self._rescue_step,
            "prune": self._prune_step,
            "unserved": self._unserved_step,
        }
        services = [repeat(step, self._stop, Patience(name)) for name, step in steps.items()]
        if self.scheduler is not None:
            step, wake = self.scheduler.step, self.scheduler.wake
            services.append(repeat(step, self._stop, Patience("scheduler"), wake))
        return [asyncio.create_task(service, name="rota-service") for service in services]

    async def _sign_off(self) -> None:
        if self._patience.down_since is not None:
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
                while self.exchange.under_way and not self._is_worth_another and not self._stop.is_set():
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
        return len(self.exchange) >= SECOND_FROM

    async def _rest(self, delay: float) -> None:
        """Until the delay is over, the store hints at work, or something ends here."""
        if len(self.hands) < self.options.concurrency:  # without room a hint would be of no use
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
            self._patience.worked()
            return delay
        except Exception as error:
            if not isinstance(error, StoreUnavailable):
                log.error("worker %s: %s", self.id, error, exc_info=not isinstance(error, StoreError))
            self._emit("worker.error", error=error)
            await pause(self._patience.failed(error, self.exchange.asked_at), self._stop)
            return 0.0

    async def _step(self) -> float:
        self._claimed -= self.hands.release_stale()
        want = self._want()
        if want is None and not len(self.exchange):
            if not self._registry.names:
                self._found_nothing()
            return self.options.poll_s
        turn, asked_at = await self.exchange.turn(want)
        if turn.jobs:
            self.is_idle = False
            self._claimed += len(turn.jobs)
            self.hands.take(turn.jobs, asked_at)
        if want is None:
            return self.options.poll_s
        return self._after(turn, want)

    def _after(self, turn: Turn, want: Want) -> float:
        if len(turn.jobs) >= want.limit:
            return 0.0  # more may be waiting
        if not turn.jobs and not self._has_work:
            self._found_nothing()
        if turn.next_due_at is None:
            return self.options.poll_s
        until_due = (turn.next_due_at - self._clock.now()).total_seconds()
        return min(max(until_due, 0.001), self.options.poll_s)

    @property
    def _has_work(self) -> bool:
        return bool(len(self.hands) or len(self.exchange) or self.exchange.under_way)

    def _found_nothing(self) -> None:
        if self.options.burst:
            self.drain()
        if not self.is_idle:
            self.is_idle = True
            self._emit("worker.idle")

    # --- room ------------------------------------------------------------------------------------

    def _want(self) -> Want | None:
        """What to ask for: the free slots, and what the recent pace will use up at once."""
        ahead = min(int(self._pace.per_second(self.hands.ended) * AHEAD_S), MOST_AHEAD)
        most = self.options.concurrency + ahead
        room = most - len(self.hands) - self.exchange.asked
        room = min(room, max(self.options.concurrency, most // 2))  # by halves: one runs while one turns
        if self.options.max_jobs is not None:
            left = self.options.max_jobs - self._claimed - self.exchange.asked
            if left <= 0 and not self._has_work:
                self.drain()
            room = min(room, left)
        if room <= 0 or self._stop.is_set() or not self._registry.names:
            return None
        return Want(
            worker=self.id,
            limit=room,
            lease_s=self.options.lease_s,
            queues=self.options.queues,
            exclude_queues=self.options.exclude_queues,
            tasks=self._registry.names,
        )

    # --- what the hands tell ---------------------------------------------------------------------

    def _on_began(self, run: Run) -> None:
        if self._hooks.wants("job.started"):
            self._emit("job.started", run.job)

    def _on_decided(self, run: Run, change: Change | None) -> None:
        if change is None:
            self._on_refused(run, None)
        else:
            if self.exchange.add(run, change) >= SECOND_FROM and self.exchange.under_way == 1:
                self._pressed.set()
        self._changed.set()

    def _on_settled(self, run: Run, change: Change) -> None:
        self.finished += 1
        if change.state is State.QUEUED:
            self.handed_back += run.started_at is not None and event_name(change) == "job.released"
        if self._hooks and self._hooks.wants(name := event_name(change)):
            job = after(run, change)
            self._emit(name, job, error=job.error)

    def _on_refused(self, run: Run, change: Change | None) -> None:
        self.refused += 1
        log.warning(
            "refused: job %s (%s) attempt %d, token %d: the lease is gone, another worker may own the job; "
            "the outcome of this attempt is dropped (%s)",
            run.job.id,
            run.job.task,
            run.job.attempt,
            run.job.token,
            "it was stopped" if change is None else change.state,
        )
        self._emit("job.refused", run.job)

    # --- drain -----------------------------------------------------------------------------------

    async def _drain(self) -> None:
        """Stop claiming → give back what has not begun → let the rest end in time → give back the rest."""
        self.hands.close_door()
        self.hands.release_waiting()
        deadline = monotonic() + self.options.shutdown_timeout_s
        while not self._forced.is_set() and monotonic() < deadline:
            self._changed.clear()
            if not await self._flush() or not len(self.hands):
                break
            left = min(deadline - monotonic(), self.options.poll_s)
            await any_of(self._changed.wait(), self._forced.wait(), timeout=left)
        await self._hand_back()

    async def _hand_back(self) -> None:
        self.hands.release_running()
        deadline = monotonic() + LAST_WORDS_S
        while len(self.hands) and monotonic() < deadline:
            self._changed.clear()
            await pause(deadline - monotonic(), self._changed)
        self.hands.give_up()
        await self._flush()

    async def _flush(self) -> bool:
        """Settle what is decided; False if the store stays away: then waiting for runs is in vain too."""
        while True:
            try:
                await self._settle_or_ask()
                self._patience.worked()
                self._heard_at = monotonic()
                if not len(self.exchange):
                    return True
                continue
            except StoreError as error:
                delay = self._patience.failed(error, self.exchange.asked_at)
            if self._left() <= 0 or self._forced.is_set():
                log.error(
                    "the store is away: %d outcomes are lost with this worker; their jobs will be rescued",
                    len(self.exchange),
                )
                return False
            await pause(min(delay, self._left()), self._forced)

    async def _settle_or_ask(self) -> None:
        self.exchange.be_quick(max(self._left(), LAST_TRY_S))
        if len(self.exchange):
            await self.exchange.turn(None)
        else:
            await self.exchange.answered(self._store.clock())

    def _left(self) -> float:
        """How long the store may still stay away while we stop."""
        return AWAY_AT_STOP_S - (monotonic() - self._heard_at)

    # --- services --------------------------------------------------------------------------------

    async def _rescue_step(self) -> float:
        def rescued(job: Job, state: State) -> None:
            self._emit("job.rescued", job)
            if state is not State.QUEUED:
                self._emit(f"job.{state}", job, error=job.error)
            self._changed.set()

        began = monotonic()
        await upkeep.rescue(self._store, self._clock, self.id, self.options.lease_s, rescued)
        pause_s = max(self.options.sweep_s, SWEEP_SHARE * (monotonic() - began))
        return pause_s * (0.75 + self._clock.jitter() / 2)

    async def _prune_step(self) -> float:
        await upkeep.prune(self._store, self._clock, self._settings)
        return upkeep.PRUNE_S * (0.75 + self._clock.jitter() / 2)

    async def _unserved_step(self) -> float:
        missing = await upkeep.unserved(self._store, self._clock, self.options.lease_s)
        for task in sorted(missing.keys() - self._unserved - set(self._registry.names)):
            log.warning(
                "no live worker knows task %r: %d or more due jobs wait for one that does",
                task,
                missing[task],
            )
        self._unserved = frozenset(missing)
        return UNSERVED_S

    # --- telling ---------------------------------------------------------------------------------

    def _emit(self, name: str, job: Job | None = None, error: Any = None) -> None:
        if self._hooks.wants(name):
            self._hooks.emit(Event(name=name, at=self._clock.now(), worker=self.id, job=job, error=error))

    def _describe(self) -> str:
        queues = ", ".join(self.options.queues) if self.options.queues else "all queues"
        tasks = len(self._registry.names)
        return f"{tasks} tasks, {queues}, {self.options.concurrency} at once, on {self._store.url}"

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
            "running": len(self.hands.running),
            "finished": self.finished,
            "state": "draining" if self._stop.is_set() else "running",
            "started_at": self._started_at,
        }
        return msgspec.json.encode(body).decode()


class Pace:
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


def after(run: Run, change: Change) -> Job:
    """The job as the change left it."""
    return msgspec.structs.replace(
        run.job,
        state=change.state,
        output_json=change.output_json,
        error_json=change.error_json,
        run_at=change.run_at or run.job.run_at,
        started_at=run.started_at,
        attempt=change.attempt,
        progress_json=change.progress_json or run.job.progress_json,
        cost_cents=run.job.cost_cents + change.cost_cents,
    )
