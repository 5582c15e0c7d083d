"""What a worker reports of its jobs: counts, log lines, and events for the hooks. Decides nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec

from ..model import Job, Settlement, State
from ..runtime.clock import Clock
from ..runtime.events import Event, Hooks, about
from ..runtime.metrics import WorkerMetrics
from .error_records import shown_exception
from .execution import Execution

log = logging.getLogger("rota.worker")

Settled = tuple[Execution, Settlement]

# Outcomes that get a line in the log; the others have counts and events alone.
LEVELS = {"failed": logging.ERROR, "retried": logging.WARNING, "cancelled": logging.INFO}


class _ErrorSummary(msgspec.Struct):
    type: str | None = None
    message: str | None = None


_summary = msgspec.json.Decoder(_ErrorSummary).decode  # skips the traceback of an error


class JobReporter:
    """Counts, logs and emits events for one worker. Never touches the store or a job."""

    def __init__(self, worker: str, clock: Clock, hooks: Hooks, metrics: WorkerMetrics) -> None:
        self.finished = 0  # attempts settled
        self.rejected = 0  # outcomes dropped because the lease was lost
        self.released = 0  # executions that were started and released unfinished
        self.wants = hooks.wants  # whether a hook listens to an event
        self._worker = worker
        self._clock = clock
        self._hooks = hooks
        self._metrics = metrics

    def emit(
        self,
        name: str,
        job: Job | None = None,
        error: Any = None,
        exception: BaseException | None = None,
    ) -> None:
        if self.wants(name):
            at = self._clock.now()
            self._hooks.emit(
                Event(name=name, at=at, worker=self._worker, job=job, error=error, exception=exception)
            )

    def pass_on(self, event: Event) -> None:
        """An event that is made already."""
        self._hooks.emit(event)

    def on_settled(self, batch: Sequence[Settled]) -> None:
        """Report the outcomes that the store has accepted."""
        succeeded = 0
        has_hooks = bool(self._hooks)
        for execution, settlement in batch:
            if settlement.state is State.SUCCEEDED:  # most of them: no more work than this
                succeeded += 1
            else:
                self._count_and_log(execution, settlement)
            if has_hooks and self.wants(name := event_name(settlement)):
                job = _job_after(execution, settlement)
                self.emit(name, job, error=job.error, exception=execution.exception)
            execution.exception = None  # its traceback holds frames, and these the execution
        self._metrics.runs["succeeded"] += succeeded
        self.finished += len(batch)

    def _count_and_log(self, execution: Execution, settlement: Settlement) -> None:
        outcome = event_name(settlement).removeprefix("job.")
        self._metrics.runs[outcome] += 1
        self.released += outcome == "released" and execution.started_at is not None
        level = LEVELS.get(outcome)
        if level is None or not log.isEnabledFor(level):
            return
        job, error = execution.job, _summary(settlement.error_json or "{}")
        raised = execution.exception if outcome in ("failed", "retried") else None
        log.log(
            level,
            "job %s (%s) %s: attempt %d of %d: %s: %s",
            job.id, job.task, outcome, job.attempt, job.max_attempts, error.type, error.message,
            exc_info=None if raised is None else shown_exception(raised, execution.context.redactor),
            extra=about(job, self._worker),
        )  # fmt: skip

    def on_rejected(self, execution: Execution, settlement: Settlement | None) -> None:
        """Report an outcome that is dropped; ``settlement`` is None if the execution was stopped first."""
        self.rejected += 1
        self._metrics.runs["rejected"] += 1
        job = execution.job
        log.warning(
            "rejected: job %s (%s) attempt %d, lease token %d: the lease was lost, another worker may hold "
            "the job; the outcome of this attempt is dropped (%s)",
            job.id,
            job.task,
            job.attempt,
            job.lease_token,
            "stopped" if settlement is None else settlement.state,
            extra=about(job, self._worker),
        )
        self.emit("job.rejected", job)


def event_name(settlement: Settlement) -> str:
    """The event of a settlement, such as ``job.succeeded``."""
    if settlement.state is not State.QUEUED:
        return f"job.{settlement.state}"
    outcome = settlement.record.outcome if settlement.record is not None else "released"
    return {"failed": "job.retried", "snoozed": "job.snoozed"}.get(outcome, "job.released")


def _job_after(execution: Execution, settlement: Settlement) -> Job:
    """The job as the settlement left it."""
    job = execution.job
    return msgspec.structs.replace(
        job,
        state=settlement.state,
        output_json=settlement.output_json,
        error_json=settlement.error_json,
        run_at=settlement.run_at or job.run_at,
        started_at=execution.started_at,
        attempt=settlement.attempt,
        progress_json=settlement.progress_json or job.progress_json,
        cost_cents=job.cost_cents + settlement.cost_cents,
        crashes=job.crashes if settlement.crashes is None else settlement.crashes,
        snoozes=job.snoozes if settlement.snoozes is None else settlement.snoozes,
    )
