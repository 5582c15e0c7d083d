"""The async executor: coroutines on the worker's own loop.

A lane is one asyncio task that runs job after job, so that a small job costs no task of its own;
each attempt still gets a contextvars context of its own. ``asyncio.current_task()`` inside a job is
its lane, so timeouts, task groups and cancellation work as anywhere else.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from ...core.jobs.lifecycle import Outcome
from ...errors import PayloadError
from ...runtime.clock import monotonic
from ..execution import Execution, Undecodable, raised, returned

YIELD_AFTER = 0.001  # seconds that lanes together may go from job to job without letting the loop breathe
CANCEL_AGAIN = 1.0

Finished = Callable[[Execution, Outcome], None]
Followed = Callable[[Execution, Outcome], Execution | None]


@types.coroutine
def _go_on(
    coroutine: Coroutine[Any, Any, Any], scope: contextvars.Context, waits_for: Any
) -> Generator[Any, Any, Any]:
    """Await a coroutine that waits, so that each of its further steps runs inside ``scope`` too."""
    step: Any
    value: Any
    try:
        while True:
            try:
                value = yield waits_for
                step = coroutine.send
            except BaseException as error:  # cancellation, or the loop shutting down
                step, value = coroutine.throw, error
            waits_for = scope.run(step, value)
    except StopIteration as stop:
        return stop.value


class CoroutineExecutor:
    """Runs coroutine tasks: ``followed`` takes the outcome, and may give the lane its next run.

    One lane is enough for jobs that never wait. ``waits`` is told when a job does for the first time:
    then another lane may begin the next.
    """

    def __init__(self, followed: Followed, waits: Callable[[], None], limit: int) -> None:
        self.awake = 0  # lanes whose job has not waited yet
        self._followed = followed
        self._waits = waits
        self._limit = limit  # bytes of an output
        self._idle: list[asyncio.Future[Execution]] = []
        self._lanes: set[asyncio.Task[None]] = set()
        self._breathed_at = monotonic()

    def start(self, run: Execution) -> None:
        self.awake += 1
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(run)
                return
        lane = asyncio.create_task(self._lane(run), name="rota-lane")
        self._lanes.add(lane)
        lane.add_done_callback(self._lanes.discard)

    def stop(self, run: Execution) -> None:
        """Cancel the coroutine, and again every second for as long as it refuses to end."""
        lane: asyncio.Task[None] | None = run.handle
        if lane is None or lane.done():
            return
        lane.cancel()
        asyncio.get_running_loop().call_later(CANCEL_AGAIN, self._stop_again, run, lane)

    def _stop_again(self, run: Execution, lane: asyncio.Task[None]) -> None:
        if run.handle is lane:
            self.stop(run)

    async def close(self) -> None:
        """End the idle lanes; one whose job ignores cancellation is left behind."""
        for lane in self._lanes:
            lane.cancel()
        if self._lanes:
            await asyncio.wait(self._lanes, timeout=1.0)

    async def _lane(self, run: Execution | None) -> None:
        loop = asyncio.get_running_loop()
        me = asyncio.current_task()
        assert me is not None
        while True:
            if run is None:
                self.awake -= 1
                waiting: asyncio.Future[Execution] = loop.create_future()
                self._idle.append(waiting)
                run = await waiting
            run.handle = me
            outcome = await self._attempt(run)
            run.handle = None
            while me.cancelling():
                me.uncancel()
            run = self._followed(run, outcome)
            if run is not None and monotonic() - self._breathed_at > YIELD_AFTER:
                await asyncio.sleep(0)  # other lanes do the same: the loop then looks for answers
                self._breathed_at = monotonic()

    async def _attempt(self, run: Execution) -> Outcome:
        if run.context.stop_reason is not None:
            return raised(run, RuntimeError("stopped before it began"))
        try:
            try:
                arguments = run.arguments()
            except PayloadError as error:
                raise Undecodable(error) from error
            scope = run.enter()
            coroutine = run.task.fn(**arguments)
            try:
                waits_for = scope.run(coroutine.send, None)
            except StopIteration as stop:  # it never waits: no more machinery than this
                return returned(run, stop.value, self._limit)
            self.awake -= 1
            self._waits()
            try:
                return returned(run, await _go_on(coroutine, scope, waits_for), self._limit)
            finally:
                self.awake += 1
        except GeneratorExit:
            raise
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                error = RuntimeError(f"the task raised {type(error).__name__}")
            return raised(run, error)
