"""The exchange with the store: what has ended goes in, what is claimed comes out, in one round trip.

Owns every outcome from the moment it is decided until the store has taken or refused it, and how
long an answer is waited for. Two turns may be under way at once. Knows no executor.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ..errors import StoreError, StoreUnavailable
from ..model import ClaimRequest, JobId, Settlement, State, TurnResult
from ..runtime.clock import Clock, monotonic
from ..runtime.events import about
from ..runtime.failpoints import hit
from ..store.calls import settle
from ..store.protocol import Store
from .execution import Execution
from .settler import Ended, PendingSettlements, unstorable

T = TypeVar("T")

log = logging.getLogger("rota.worker")


class Turns:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        patience_s: float,
        settled: Callable[[Execution, Settlement], None],
        refused: Callable[[Execution, Settlement | None], None],
    ) -> None:
        self.under_way = 0  # turns without an answer
        self.asked = 0  # jobs that these may bring
        self.asked_at = monotonic()  # when the last turn was sent
        self._store = store
        self._clock = clock
        self._patience_s = patience_s
        self._tell_settled = settled
        self._tell_refused = refused
        self._settler = PendingSettlements()
        self._answers: set[asyncio.Timeout] = set()

    def __len__(self) -> int:
        """Outcomes that wait to be sent."""
        return len(self._settler)

    def add(self, run: Execution, change: Settlement) -> int:
        """Take over an outcome; how many wait to be sent."""
        return self._settler.add(run, change)

    def limit_waits(self, patience_s: float) -> None:
        """We stop: answers are waited for so long at most from now on."""
        self._patience_s = patience_s
        latest = asyncio.get_running_loop().time() + patience_s
        for answer in self._answers:
            if not answer.expired():
                answer.reschedule(latest)

    async def turn(self, want: ClaimRequest | None) -> tuple[TurnResult, float]:
        """Send what has ended, ask for more; the answer, and the monotonic instant of the question."""
        batch = self._settler.take()
        limit = want.limit if want is not None else 0
        self.under_way += 1
        self.asked += limit
        asked_at = self.asked_at = monotonic()
        try:
            return await self._turn(batch, want), asked_at
        finally:
            self.under_way -= 1
            self.asked -= limit

    async def _turn(self, batch: list[Ended], want: ClaimRequest | None) -> TurnResult:
        hit("settle.before" if batch else "claim.before")
        changes = [change for _, change in batch]
        try:
            turn = await self.answered(self._store.turn(changes, want, self._clock.now()))
        except StoreUnavailable:
            self._settler.back(batch)
            raise
        except StoreError as error:
            await self._settle_alone(batch, error)
            return TurnResult()
        except BaseException:
            self._settler.back(batch)
            raise
        hit("claim.after" if turn.jobs else "settle.after")
        await self._settled(batch, turn.refused)
        return turn

    async def answered(self, answer: Awaitable[T]) -> T:
        """The answer, unless it takes so long that a lease it brings would be over; less when we stop."""
        try:
            async with asyncio.timeout(self._patience_s) as timeout:
                self._answers.add(timeout)
                try:
                    return await answer
                finally:
                    self._answers.discard(timeout)
        except TimeoutError:
            raise StoreUnavailable("it does not answer") from None

    async def _settle_alone(self, batch: list[Ended], error: StoreError) -> None:
        """The store refused a whole batch: find the change it cannot take, let the others through."""
        if not batch:
            raise error
        for position, (run, change) in enumerate(batch):
            accepted = change
            try:
                refused = await self.answered(settle(self._store, [change], self._clock.now()))
            except StoreUnavailable:
                self._settler.back(batch[position:])
                raise
            except StoreError as cause:
                why = run.context.redact(str(cause))
                log.error("job %s: its outcome cannot be stored: %s", change.id, why, extra=about(run.job))
                accepted = unstorable(change, why, self._clock.now())
                refused = await settle(self._store, [accepted], self._clock.now())
            await self._settled([(run, accepted)], refused)

    async def _settled(self, batch: list[Ended], refused: frozenset[JobId]) -> None:
        gone = await self._settler.settled(batch, refused, self._store)
        for run, change in batch:
            if gone and change.id in gone:
                self._tell_refused(run, change)
            else:
                self._tell_settled(run, change)


def event_name(change: Settlement) -> str:
    if change.state is not State.QUEUED:
        return f"job.{change.state}"
    outcome = change.record.outcome if change.record is not None else "released"
    return {"failed": "job.retried", "snoozed": "job.snoozed"}.get(outcome, "job.released")
