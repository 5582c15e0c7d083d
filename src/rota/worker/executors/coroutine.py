"""The async executor: coroutines on the worker's own loop.

A runner is one asyncio task that runs job after job, so that a small job costs no task of its own; each
attempt still gets context variables of its own. ``asyncio.current_task()`` inside a job is its runner, so
timeouts, task groups and cancellation work as anywhere else.
"""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Coroutine, Generator
from typing import Any

from ...core.jobs.lifecycle import Outcome
from ...runtime.clock import monotonic
from ..execution import SUCCEEDED, Execution, NotStarted, outcome_of_error, outcome_of_value
from .protocol import ExecutorHost

YIELD_AFTER_S = 0.001  # how long runners may go from job to job before the loop serves others
CANCEL_AGAIN_S = 1.0
CLOSE_S = 1.0


class CoroutineExecutor:
    """Runs coroutine tasks. Jobs that never wait share one runner; when one waits, another runner starts."""

    def __init__(self, host: ExecutorHost) -> None:
        self.awake = 0  # runners whose job has not waited yet
        self._host = host
        self._idle: list[asyncio.Future[Execution]] = []
        self._runners: set[asyncio.Task[None]] = set()
        self._yielded_at = monotonic()

    def start(self, execution: Execution) -> None:
        self.awake += 1
        while self._idle:
            idle = self._idle.pop()
            if not idle.done():
                idle.set_result(execution)
                return
        runner = asyncio.create_task(self._run(execution), name="rota-runner")
        self._runners.add(runner)
        runner.add_done_callback(self._runners.discard)

    def stop(self, execution: Execution) -> None:
        """Cancel the coroutine, and again every second for as long as it does not end."""
        runner: asyncio.Task[None] | None = execution.handle
        if runner is None or runner.done():
            return
        runner.cancel()
        asyncio.get_running_loop().call_later(CANCEL_AGAIN_S, self._stop_again, execution, runner)

    def _stop_again(self, execution: Execution, runner: asyncio.Task[None]) -> None:
        if execution.handle is runner:
            self.stop(execution)

    async def close(self) -> None:
        """End the idle runners; one whose job ignores cancellation is left behind."""
        for runner in self._runners:
            runner.cancel()
        if self._runners:
            await asyncio.wait(self._runners, timeout=CLOSE_S)

    async def _run(self, execution: Execution | None) -> None:
        """Run one execution after another."""
        runner = asyncio.current_task()
        assert runner is not None
        advance, limit = self._host.advance, self._host.output_limit
        coroutine: Any
        value: Any
        while True:
            if execution is None:
                coroutine = scope = value = outcome = None  # keep nothing of the last job in memory
                execution = await self._next()
            execution.handle = runner
            try:
                if execution.context.stop_reason is not None:
                    raise NotStarted
                scope = execution.new_scope()
                coroutine = execution.task.fn(**execution.arguments())
                try:
                    awaited = scope.run(coroutine.send, None)
                except StopIteration as stop:  # it never waits: no more machinery than this
                    value = stop.value
                else:
                    value = await self._resume(coroutine, scope, awaited)
                outcome = SUCCEEDED if value is None else outcome_of_value(execution, value, limit)
            except GeneratorExit:
                raise
            except BaseException as error:
                outcome = _outcome_of(execution, error)
            execution.handle = None
            while runner.cancelling():
                runner.uncancel()
            execution = advance(execution, outcome)
            if execution is not None and monotonic() - self._yielded_at > YIELD_AFTER_S:
                await asyncio.sleep(0)  # other runners do the same: then the loop looks for answers
                self._yielded_at = monotonic()

    async def _next(self) -> Execution:
        """Wait, as an idle runner, for the next execution."""
        self.awake -= 1
        idle: asyncio.Future[Execution] = asyncio.get_running_loop().create_future()
        self._idle.append(idle)
        return await idle

    async def _resume(
        self, coroutine: Coroutine[Any, Any, Any], scope: contextvars.Context, awaited: Any
    ) -> Any:
        """Finish a coroutine that waits, and let another execution start meanwhile."""
        self.awake -= 1
        self._host.fill()
        try:
            return await _drive(coroutine, scope, awaited)
        finally:
            self.awake += 1


@types.coroutine
def _drive(
    coroutine: Coroutine[Any, Any, Any], scope: contextvars.Context, awaited: Any
) -> Generator[Any, Any, Any]:
    """Await a coroutine so that each of its further steps runs inside ``scope`` too."""
    step: Any
    value: Any
    try:
        while True:
            try:
                value = yield awaited
                step = coroutine.send
            except BaseException as error:  # cancellation, or the loop shutting down
                step, value = coroutine.throw, error
            awaited = scope.run(step, value)
    except StopIteration as stop:
        return stop.value


def _outcome_of(execution: Execution, error: BaseException) -> Outcome:
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        error = RuntimeError(f"the task raised {type(error).__name__}")
    return outcome_of_error(execution, error)
