"""How executions are stopped before they end by themselves: by timeout, cancel, lost lease or shutdown.

Owns the requests to stop and the time an execution has to comply. Never decides what becomes of the job:
that follows from the stop reason (``execution.outcome_of_error``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Protocol

from ..core.jobs.lifecycle import Outcome, Released
from ..runtime.events import about
from .execution import Execution, NotStarted, StopIgnored, StopReason, outcome_of_error
from .executors.protocol import TaskExecutor

log = logging.getLogger("rota.worker")

STOP_GRACE_S = 5.0  # how long an execution has to stop, before its outcome is recorded without it


class HeldExecutions(Protocol):
    """The executions that a worker holds: running ones in a slot, waiting ones claimed but not started."""

    running: dict[Execution, None]
    waiting: deque[Execution]

    def end(self, execution: Execution, outcome: Outcome) -> None: ...

    def drop(self, execution: Execution, outcome: Outcome) -> None: ...


class Stops:
    """Stops the executions in the slots of one worker. Never frees a slot: that happens when one returns."""

    def __init__(self, held: HeldExecutions, executors: Mapping[str, TaskExecutor]) -> None:
        self._held = held
        self._executors = executors

    def stop(self, execution: Execution, reason: StopReason) -> None:
        """Ask an execution to stop; if it does not comply in time, its outcome is recorded without it."""
        if execution.ended or execution.stop_requested:
            return
        execution.stop_requested = True
        execution.context.stop_reason = reason
        self._executors[execution.task.executor].stop(execution)
        asyncio.get_running_loop().call_later(STOP_GRACE_S, self._abandon, execution)

    def _abandon(self, execution: Execution) -> None:
        if execution.ended:
            return
        job = execution.job
        log.error(
            "job %s (%s) ignored the stop request (%s); outcome recorded, slot busy until it returns",
            job.id,
            job.task,
            execution.stop_reason,
            extra=about(job, execution.context.worker),
        )
        self._held.end(execution, outcome_of_error(execution, StopIgnored()))

    def stop_lost(self, executions: Sequence[Execution]) -> None:
        """Stop executions whose jobs another worker may hold, and drop their outcomes."""
        self._stop_held(executions, "lost")

    def stop_cancelled(self, executions: Sequence[Execution]) -> None:
        self._stop_held(executions, "cancelled")

    def _stop_held(self, executions: Sequence[Execution], reason: StopReason) -> None:
        for execution in executions:
            if execution in self._held.running:
                self.stop(execution, reason)
            elif execution in self._held.waiting:
                self._held.waiting.remove(execution)
                execution.context.stop_reason = reason
                self._held.drop(execution, outcome_of_error(execution, NotStarted()))

    def release_running(self) -> None:
        """Stop everything; what does not finish by itself meanwhile is released."""
        for execution in list(self._held.running):
            self.stop(execution, "released")

    def abandon_running(self) -> None:
        """Release what still has not stopped."""
        for execution in list(self._held.running):
            self._held.end(execution, Released())
