"""One attempt in this process, from claim to settlement, and how its outcome is read. No store, no loop."""

from __future__ import annotations

import asyncio
import contextvars
from datetime import datetime
from typing import Any, Literal

from ..core.jobs.lifecycle import Cancelled, ExecutionReport, Failed, Outcome, Released, Snoozed, Succeeded
from ..core.payload import codec
from ..core.schedules.run_success import reported_failure
from ..errors import Cancel, PayloadError, Snooze
from ..model import ErrorRecord, Job
from ..tasks.current import CURRENT
from ..tasks.task import Task
from .context import Context, clean
from .error_records import LONGEST_MESSAGE, error_record

StopReason = Literal["cancelled", "timeout", "lost", "released"]

FENCE = 0.9  # the share of a lease that may pass unrenewed: then its execution is stopped, or never started

SUCCEEDED = Succeeded()


class Execution:
    """A claimed job on its way from claim to settlement. Holds state, decides nothing.

    Compared by identity: an execution that ignores its stop may still be here when its job runs again.
    """

    __slots__ = (
        "claimed_at",
        "context",
        "ended",
        "handle",
        "job",
        "renewed_at",
        "reported",
        "started_at",
        "stop_requested",
        "task",
        "timeout",
        "timer",
    )

    def __init__(self, job: Job, task: Task[..., Any], context: Context, claimed_at: float) -> None:
        self.job = job
        self.task = task
        self.context = context
        self.claimed_at = claimed_at  # monotonic: when the claim was *sent*
        self.renewed_at = claimed_at  # monotonic: when the last accepted renewal was *sent*
        self.timeout: float | None = job.timeout if job.timeout is not None else task.chosen.timeout
        self.started_at: datetime | None = None  # when the task's code started
        self.ended = False  # an outcome is decided
        self.stop_requested = False
        self.reported: tuple[str | None, int] | None = None  # the context's mark when it was last stored
        self.handle: Any = None  # what the executor needs to stop it
        self.timer: asyncio.TimerHandle | None = None

    @property
    def stop_reason(self) -> str | None:
        return self.context.stop_reason

    def arguments(self) -> dict[str, Any]:
        """The task's arguments, decoded to their types; Undecodable if they do not fit."""
        signature = self.task.signature
        try:
            arguments = signature.bind(self.job.payload_json)
        except PayloadError as error:
            raise Undecodable(error) from error
        if signature.context is not None:
            arguments[signature.context] = self.context
        return arguments

    def new_scope(self) -> contextvars.Context:
        """Context variables of this attempt's own: what it sets is never seen by the next one."""
        scope = contextvars.copy_context()
        scope.run(CURRENT.set, self.context)
        return scope

    def report(self) -> ExecutionReport:
        context = self.context
        if context.is_silent:
            return ExecutionReport(worker=context.worker, started_at=self.started_at)
        return ExecutionReport(
            worker=context.worker,
            started_at=self.started_at,
            logs=context.lines,
            cost_cents=context.cost_cents,
            progress_json=context.last_progress_json,
            audit=context.audit_entries,
        )


class Undecodable(Exception):
    """The stored payload does not fit the task: another attempt cannot help."""

    def __init__(self, cause: PayloadError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class NotStarted(Exception):
    """The execution was stopped before its task's code started."""


class StopIgnored(Exception):
    """The execution was asked to stop, and did not in time."""


def outcome_of_value(execution: Execution, value: Any, limit: int) -> Outcome:
    """The outcome of a task that returned."""
    if value is None:
        return SUCCEEDED
    try:
        output = codec.encode(value, limit=limit, what=f"the output of task {execution.task.name!r}")
    except PayloadError as error:
        return Failed(fault=_fault(execution, "PayloadError", str(error)))
    failure = reported_failure(output) if execution.job.schedule is not None else None
    if failure is None:
        return Succeeded(output_json=output)
    return Failed(fault=_fault(execution, "ReportedFailure", failure), final=True, output_json=output)


def outcome_of_error(execution: Execution, error: BaseException) -> Outcome:
    """The outcome of a task that raised; a requested stop takes precedence over the error."""
    context = execution.context
    match context.stop_reason:
        case "cancelled":
            return Cancelled(reason=context.cancel_reason or "cancelled while it was running")
        case "timeout":
            message = f"ran longer than its timeout of {execution.timeout:g} s"
            return Failed(fault=ErrorRecord(type="Timeout", message=message))
        case "released":
            return Released()
    match error:
        case Snooze():
            return Snoozed(seconds=error.seconds, reason=error.reason)
        case Cancel():
            return Cancelled(reason=clean(context.redact(error.reason), LONGEST_MESSAGE))
        case Undecodable():
            return Failed(fault=error_record(error.cause, context.redact), final=True)
        case _:
            return Failed(fault=error_record(error, context.redact))


def _fault(execution: Execution, type: str, message: str) -> ErrorRecord:
    return ErrorRecord(type=type, message=clean(execution.context.redact(message), LONGEST_MESSAGE))
