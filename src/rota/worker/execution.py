"""One attempt in the hands of this worker, and how its end is read. No store, no loop."""

from __future__ import annotations

import asyncio
import contextvars
from datetime import datetime
from typing import Any, Literal

from ..core.jobs.lifecycle import Cancelled, ExecutionReport, Failed, Outcome, Released, Snoozed, Succeeded
from ..core.payload import codec
from ..errors import Cancel, PayloadError, Snooze
from ..model import ErrorRecord, Job
from ..tasks.current import CURRENT
from ..tasks.task import Task
from .context import Context, clean
from .error_records import LONGEST_MESSAGE, fault_of

StopReason = Literal["cancelled", "timeout", "lost", "released"]

FENCE = 0.9  # of a lease may go by unrenewed: then its run is stopped, or never begun

SILENTLY = Succeeded()


class Execution:
    """A claimed job on its way from claim to settle."""

    __slots__ = (
        "context",
        "ended",
        "handle",
        "job",
        "noted",
        "renewed_at",
        "started_at",
        "taken_at",
        "task",
        "timeout",
        "timer",
        "told_to_stop",
    )

    def __init__(self, job: Job, task: Task[..., Any], context: Context, renewed_at: float) -> None:
        self.job = job
        self.task = task
        self.context = context
        self.renewed_at = renewed_at  # monotonic: when the last accepted renewal was *sent*
        self.taken_at = renewed_at
        self.timeout: float | None = job.timeout if job.timeout is not None else task.chosen.timeout
        self.started_at: datetime | None = None
        self.ended = False
        self.told_to_stop = False
        self.noted: tuple[str | None, int] | None = None  # the mark of what was last sent to the store
        self.handle: Any = None  # what the executor needs to stop it
        self.timer: asyncio.TimerHandle | None = None

    @property
    def stop_reason(self) -> str | None:
        return self.context.stop_reason

    def arguments(self) -> dict[str, Any]:
        """The task's arguments, decoded to their types; PayloadError if they do not fit."""
        arguments = self.task.signature.bind(self.job.payload_json)
        if self.task.signature.context is not None:
            arguments[self.task.signature.context] = self.context
        return arguments

    def enter(self) -> contextvars.Context:
        """A context of this attempt's own: what it sets is never seen by the next one."""
        scope = contextvars.copy_context()
        scope.run(CURRENT.set, self.context)
        return scope

    def report(self, worker: str) -> ExecutionReport:
        context = self.context
        return ExecutionReport(
            worker=worker,
            started_at=self.started_at,
            logs=context.lines,
            cost_cents=context.cost_cents,
            progress_json=context.last_progress_json,
            audit=context.audited,
        )


def returned(run: Execution, value: Any, limit: int) -> Outcome:
    """The outcome of a task that came back with a value."""
    if value is None:
        return SILENTLY
    try:
        return Succeeded(
            output_json=codec.encode(value, limit=limit, what=f"the output of task {run.task.name!r}")
        )
    except PayloadError as error:
        message = clean(run.context.redact(str(error)), LONGEST_MESSAGE)
        return Failed(fault=ErrorRecord(type="PayloadError", message=message))


def raised(run: Execution, error: BaseException) -> Outcome:
    """The outcome of a task that raised; a stop we asked for comes before what it raised."""
    match run.stop_reason:
        case "cancelled":
            return Cancelled(reason=run.context.stop_text or "cancelled while it was running")
        case "timeout":
            return timed_out(run)
        case "released":
            return Released()
    match error:
        case Snooze():
            return Snoozed(seconds=error.seconds, reason=error.reason)
        case Cancel():
            return Cancelled(reason=clean(run.context.redact(error.reason), LONGEST_MESSAGE))
        case Undecodable():
            return Failed(fault=fault_of(error.cause, run.context.redact), final=True)
        case _:
            return Failed(fault=fault_of(error, run.context.redact))


def timed_out(run: Execution) -> Outcome:
    return Failed(
        fault=ErrorRecord(type="Timeout", message=f"ran longer than its timeout of {run.timeout:g} s")
    )


class Undecodable(Exception):
    """The stored payload does not fit the task: trying again cannot help."""

    def __init__(self, cause: PayloadError) -> None:
        super().__init__(str(cause))
        self.cause = cause
