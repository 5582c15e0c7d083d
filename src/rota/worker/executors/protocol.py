"""What an executor is, and what it may ask of the slots that own it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...core.jobs.lifecycle import Outcome
from ..execution import Execution


class TaskExecutor(Protocol):
    """Runs executions of one kind: coroutines, threads or processes.

    Calls ``finish`` (or ``advance``) of its host exactly once for each execution it started, on the worker's
    loop. Never decides what becomes of a job and never touches the store.
    """

    def start(self, execution: Execution) -> None:
        """Run the task of an execution that has a slot."""

    def stop(self, execution: Execution) -> None:
        """Make a running execution end soon; its outcome arrives in the usual way."""

    async def close(self) -> None:
        """Free all resources. Nothing is started after this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorHost:
    """The owner of the slots, as an executor sees it."""

    begin: Callable[[Execution], None]  # the task's code starts now, later than its ``start``
    finish: Callable[[Execution, Outcome], None]  # it ended: free its slot
    advance: Callable[[Execution, Outcome], Execution | None]  # ``finish``; the next coroutine to run
    fill: Callable[[], None]  # a coroutine waits for the first time: another may start
    output_limit: int  # bytes
