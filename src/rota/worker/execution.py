"""One attempt in this process, from claim to settlement, and how its outcome is read. No store, no loop."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from datetime import datetime
from typing import Any, Literal

from ..core.jobs.backoff import function_delay
from ..core.jobs.lifecycle import Cancelled, ExecutionReport, Failed, Outcome, Released, Snoozed, Succeeded
from ..core.jobs.retries import fails_at_once, is_snoozed_out
from ..core.payload import codec
from ..core.schedules.run_success import reported_failure
from ..errors import Cancel, Fail, PayloadError, Snooze
from ..model import Backoff, ErrorRecord, Job
from ..runtime.events import about
from ..tasks.current import CURRENT
from ..tasks.task import Task
from .context import Context, clean
from .error_records import LONGEST_MESSAGE, error_record, failure_record

log = logging.getLogger("rota.worker")

StopReason = Literal["cancelled", "timeout", "lost", "released"]

FENCE = 0.9  # the share of a lease that may pass unrenewed: then its execution is stopped, or never started

OVERRUN_S = 0.1  # beyond a timeout that a busy worker may cause

SUCCEEDED = Succeeded()


class Execution:
    """A claimed job on its way from claim to settlement. Holds state, decides nothing.

    Compared by identity: an execution that ignores its stop may still be here when its job runs again.
    """

    __slots__ = (
        "begin_by",
        "claimed_at",
        "context",
        "ended",
        "exception",
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
        context.producer = task.producer
        self.claimed_at = claimed_at  # monotonic: when the claim was *sent*
        self.renewed_at = claimed_at  # monotonic: when the last accepted renewal was *sent*
        self.begin_by: float | None = None  # monotonic: no slot until then, and one claimed ahead is released
        self.timeout: float | None = job.timeout if job.timeout is not None else task.chosen.timeout
        self.started_at: datetime | None = None  # when the task's code started
        self.ended = False  # an outcome is decided
        self.stop_requested = False
        self.reported: tuple[str | None, int] | None = None  # the context's mark when it was last stored
        self.exception: BaseException | None = None  # of a failed attempt: for the log and the hooks
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
            then=context.follow_ups,
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


class ProcessDied(Exception):
    """The child process ended before its task did. The task raised nothing: so none of its rules apply."""

    __module__ = "rota"


def outcome_of_value(execution: Execution, value: Any, limit: int) -> Outcome:
    """The outcome of a task that returned."""
    if value is None:
        return SUCCEEDED
    try:
        output = codec.encode(value, limit=limit, what=f"the output of task {execution.task.name!r}")
    except PayloadError as error:
        return _failed(execution, error, _fault(execution, "PayloadError", str(error)))
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
            late = TimeoutError(message).with_traceback(error.__traceback__)  # where it was stopped
            return _failed(execution, late, ErrorRecord(type="Timeout", message=message))
        case "released":
            return Released()
    match error:
        case Snooze() if is_snoozed_out(execution.job, execution.task.chosen.max_snoozes):
            last = f"; the last reason: {error.reason}" if error.reason else ""
            message = f"snoozed {execution.job.snoozes} times, as often as max_snoozes allows{last}"
            return Failed(fault=_fault(execution, "SnoozedTooOften", message), final=True)
        case Snooze():
            return Snoozed(seconds=error.seconds, reason=error.reason)
        case Cancel():
            return Cancelled(reason=clean(context.redact(error.reason), LONGEST_MESSAGE))
        case Fail():
            return _failed(execution, error, failure_record(error, context.redactor))
        case Undecodable():
            execution.exception = error.cause
            return Failed(fault=error_record(error.cause, context.redact), final=True)
        case _:
            return _failed(execution, error, error_record(error, context.redact))


def note_overrun(execution: Execution, now: datetime) -> None:
    """Say so, in the log and with the attempt, if a task returned only after its timeout.

    Its work is done, so it counts: to run it again would do it twice.
    """
    if execution.started_at is None or execution.timeout is None:
        return
    took_s = (now - execution.started_at).total_seconds()
    if took_s <= execution.timeout + OVERRUN_S:
        return
    if execution.stop_requested:
        why = "it was asked to stop, and returned all the same"
    elif execution.task.executor == "async":
        why = "it blocked the event loop, so it could not be stopped; await what takes time, or use def"
    else:
        why = "the worker was too busy to stop it"
    message = f"took {took_s:.1f} s, longer than its timeout of {execution.timeout:g} s: {why}"
    execution.context.log(message, "warning")
    job = execution.job
    log.warning(
        "job %s (%s) succeeded, but %s", job.id, job.task, message, extra=about(job, execution.context.worker)
    )


def _failed(execution: Execution, error: BaseException, fault: ErrorRecord) -> Failed:
    """What the task's own rules make of an error. Only here is the exception itself at hand."""
    execution.exception = error
    rules = execution.task.chosen
    if isinstance(error, ProcessDied):
        return Failed(fault=fault, retry_in=_retry_in(execution, error))
    if fails_at_once(error, rules.fail_on, rules.retry_on):
        return Failed(fault=fault, final=True)
    return Failed(fault=fault, retry_in=_retry_in(execution, error))


def _retry_in(execution: Execution, error: BaseException) -> float | None:
    """The delay that the task's backoff function asks for; None: by the job's or the standard backoff."""
    backoff, job = execution.task.chosen.backoff, execution.job
    if backoff is None or isinstance(backoff, Backoff) or job.backoff is not None:
        return None
    try:
        return function_delay(backoff, job.attempt, error)
    except Exception as failure:
        log.error(
            "task %r: its backoff function failed, so the standard backoff is used: %s: %s",
            job.task,
            type(failure).__name__,
            execution.context.redact(str(failure)),
            extra=about(job, execution.context.worker),
        )
        return None


def _fault(execution: Execution, type: str, message: str) -> ErrorRecord:
    return ErrorRecord(type=type, message=clean(execution.context.redact(message), LONGEST_MESSAGE))
