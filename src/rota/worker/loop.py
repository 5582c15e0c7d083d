"""When turns are taken: at once while there is work, else at a wake-up, a due time or the next poll.

Owns the rests between turns and the second turn under load. Survives whatever the store does. Never knows
what a turn contains.
"""

from __future__ import annotations

import asyncio
import logging

from ..errors import StoreError, StoreUnavailable
from ..runtime.clock import monotonic
from ..runtime.service import pause
from ..runtime.service_records import ServiceRecord
from ..store.protocol import Waker
from .environment import WorkerEnvironment
from .turns import SECOND_TURN_FROM, Turns

log = logging.getLogger("rota.worker")


class TurnLoop:
    """Takes turns until the worker stops, and under load a second one beside the first."""

    def __init__(self, environment: WorkerEnvironment, turns: Turns, reconnect: ServiceRecord) -> None:
        self._environment = environment
        self._turns = turns
        self._reconnect = reconnect
        self._resting = asyncio.Event()
        self._rest_s = 0.0
        self._came_late = False  # looks after others should have looked

    async def run(self) -> None:
        turns = self._turns
        waker = self._environment.store.waker()
        second = asyncio.create_task(self._take_second_turns(), name="rota-second-turn")
        wake_ups = asyncio.create_task(self._listen(waker), name="rota-wake-ups")
        try:
            while not turns.stopping.is_set():
                turns.changed.clear()
                delay = await self._guarded_turn()
                if delay > 0 and not turns.changed.is_set():
                    await self._rest(delay)
                while turns.under_way and not self._is_second_due and not turns.stopping.is_set():
                    turns.changed.clear()
                    await turns.changed.wait()
        finally:
            if not turns.stopping.is_set():  # this task is cancelled itself
                second.cancel()
            turns.second_turn.set()
            self._resting.set()
            wake_ups.cancel()
            await asyncio.gather(second, wake_ups, return_exceptions=True)
            await waker.close()

    @property
    def _is_second_due(self) -> bool:
        """Whether so much has ended that it should not wait for the turn under way."""
        return len(self._turns) >= SECOND_TURN_FROM

    async def _take_second_turns(self) -> None:
        """Under load take another turn while the first one commits: then neither side waits."""
        turns = self._turns
        while not turns.stopping.is_set():
            await turns.second_turn.wait()
            turns.second_turn.clear()
            if self._is_second_due and not turns.stopping.is_set():
                await self._guarded_turn()
                turns.changed.set()

    async def _rest(self, delay: float) -> None:
        """Until the delay is over, a wake-up arrives, or something ends here."""
        if len(self._turns.slots) < self._environment.options.concurrency:  # else a wake-up is useless
            self._rest_s = delay
            self._resting.set()
        await pause(delay, self._turns.changed)
        self._resting.clear()

    async def _listen(self, waker: Waker) -> None:
        """Wait for wake-ups, by one task for all rests: creating one each time would delay the next job."""
        options, turns = self._environment.options, self._turns
        while not turns.stopping.is_set():
            await self._resting.wait()
            try:
                if await self._is_to_look(waker, monotonic() + self._rest_s):
                    turns.changed.set()
            except StoreError as error:
                log.debug("worker %s: no wake-ups, polling instead: %s", self._environment.worker, error)
                await pause(options.poll_s, turns.stopping)

    async def _is_to_look(self, waker: Waker, rest_until: float) -> bool:
        """Wait for a hint that is for this worker: of many that receive one, a few look at once.

        False: none came, and the rest is over by itself.
        """
        options, fleet = self._environment.options, self._environment.fleet
        until = rest_until
        while (left := until - monotonic()) > 0:
            announced = await waker.wait(options.queues, left)
            if announced is None:
                break
            back_s = fleet.hold_back_s(announced, options.poll_s)
            if back_s == 0.0:
                self._came_late = False
                return True
            if not self._came_late:  # the first that is left to others decides for those after it, too
                self._came_late = True
                until = min(until, monotonic() + back_s)
        return monotonic() < rest_until

    async def _guarded_turn(self) -> float:
        """A turn that survives whatever the store does; the seconds that may pass before the next."""
        self._reconnect.began()
        try:
            delay = await self._turns.turn()
            if self._came_late:
                self._came_late = False
                if not self._turns.is_idle:  # so they did not
                    self._environment.fleet.doubt()
            self._reconnect.worked(delay)
            return delay
        except Exception as error:
            if not isinstance(error, StoreUnavailable):
                is_bug = not isinstance(error, StoreError)
                log.error("worker %s: %s", self._environment.worker, error, exc_info=is_bug)
            elif self._reconnect.down_since is None:
                self._environment.metrics.outages += 1
            self._environment.reporter.emit("worker.error", error=error)
            await pause(self._reconnect.failed(error, self._turns.sent_at), self._turns.stopping)
            return 0.0
