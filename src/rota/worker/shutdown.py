"""How a worker stops: nothing is claimed, running jobs finish in time, and the rest is released.

Owns the deadlines of a stop. Never waits for a store that stays unavailable: the leases of this worker
expire, and its jobs are rescued.
"""

from __future__ import annotations

import asyncio
import logging

from ..errors import StoreError
from ..runtime.clock import monotonic
from ..runtime.service import any_of, pause
from ..runtime.service_records import ServiceRecord
from .environment import WorkerEnvironment
from .turns import STORE_WAIT_AT_STOP_S, Turns

log = logging.getLogger("rota.worker")

LAST_ATTEMPT_S = 0.3
RELEASE_GRACE_S = 1.0  # for executions that are released, to end by themselves


class Shutdown:
    """Stops the executions of one worker in order, and stores their outcomes."""

    def __init__(self, environment: WorkerEnvironment, turns: Turns, reconnect: ServiceRecord) -> None:
        self.forced = asyncio.Event()  # release at once what runs
        self._environment = environment
        self._turns = turns
        self._reconnect = reconnect
        self._answered_at = 0.0  # when the store last answered

    async def run(self) -> None:
        """Release what has not started, let the rest finish in time, release what is left."""
        turns, slots, options = self._turns, self._turns.slots, self._environment.options
        self._answered_at = turns.stopping_at
        slots.stop_accepting()
        slots.release_waiting()
        deadline = monotonic() + options.shutdown_timeout_s
        while not self.forced.is_set() and monotonic() < deadline:
            turns.changed.clear()
            if not await self._flush() or not len(slots):
                break
            left_s = min(deadline - monotonic(), options.poll_s)
            await any_of(turns.changed.wait(), self.forced.wait(), timeout=left_s)
        await self._release_running()

    async def _release_running(self) -> None:
        turns, slots = self._turns, self._turns.slots
        slots.stops.release_running()
        deadline = monotonic() + RELEASE_GRACE_S
        while len(slots) and monotonic() < deadline:
            turns.changed.clear()
            await pause(deadline - monotonic(), turns.changed)
        slots.stops.abandon_running()
        await self._flush()

    async def _flush(self) -> bool:
        """Store what is decided; False if the store stays unavailable: there is then nothing to wait for."""
        while True:
            try:
                await self._settle_or_ping()
                self._reconnect.worked()
                self._answered_at = monotonic()
                if not len(self._turns):
                    return True
                continue
            except StoreError as error:
                delay = self._reconnect.failed(error, self._turns.sent_at)
            if self._left_s <= 0 or self.forced.is_set():
                log.error(
                    "store unavailable: %d outcomes are lost with this worker; their jobs will be rescued",
                    len(self._turns),
                )
                return False
            await pause(min(delay, self._left_s), self.forced)

    async def _settle_or_ping(self) -> None:
        turns = self._turns
        turns.deadline.limit(max(self._left_s, LAST_ATTEMPT_S))
        if len(turns):
            await turns.turn()
        else:
            await turns.deadline.answer(self._environment.store.clock())

    @property
    def _left_s(self) -> float:
        """How long the store may still be unavailable while the worker stops."""
        return STORE_WAIT_AT_STOP_S - (monotonic() - self._answered_at)
