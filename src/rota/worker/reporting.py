"""What a worker tells of its jobs: counts, log lines, and events for the hooks. Decides nothing."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from ..model import Job, Settlement, State
from ..runtime.clock import Clock
from ..runtime.events import Event, Hooks, about
from ..runtime.metrics import WorkerMetrics
from .execution import Execution
from .turns import event_name

log = logging.getLogger("rota.worker")

# What becomes a line in the log; the rest is told by counts and events alone.
LEVELS = {"failed": logging.WARNING, "retried": logging.INFO, "cancelled": logging.INFO}


class _Brief(msgspec.Struct):
    type: str | None = None
    message: str | None = None


_brief = msgspec.json.Decoder(_Brief).decode  # the rest of an error, its traceback, is not even read


class JobReporter:
    def __init__(self, worker: str, clock: Clock, hooks: Hooks, measures: WorkerMetrics) -> None:
        self._worker = worker
        self._clock = clock
        self._hooks = hooks
        self._measures = measures

    def emit(self, name: str, job: Job | None = None, error: Any = None) -> None:
        if self._hooks.wants(name):
            at = self._clock.now()
            self._hooks.emit(Event(name=name, at=at, worker=self._worker, job=job, error=error))

    def settled(self, run: Execution, change: Settlement) -> None:
        if change.state is State.SUCCEEDED:  # the way of most: no more than this
            self._measures.runs["succeeded"] += 1
        else:
            self._count_and_log(run, change)
        if self._hooks and self._hooks.wants(name := event_name(change)):
            job = _after(run, change)
            self.emit(name, job, error=job.error)

    def _count_and_log(self, run: Execution, change: Settlement) -> None:
        what = event_name(change).removeprefix("job.")
        self._measures.runs[what] += 1
        level = LEVELS.get(what)
        if level is None or not log.isEnabledFor(level):
            return
        job, error = run.job, _brief(change.error_json or "{}")
        log.log(
            level,
            "job %s (%s) %s: attempt %d of %d: %s: %s",
            job.id, job.task, what, job.attempt, job.max_attempts, error.type, error.message,
            extra=about(job, self._worker),
        )  # fmt: skip

    def refused(self, run: Execution, change: Settlement | None) -> None:
        self._measures.runs["refused"] += 1
        log.warning(
            "refused: job %s (%s) attempt %d, token %d: the lease is gone, another worker may own the job; "
            "the outcome of this attempt is dropped (%s)",
            run.job.id,
            run.job.task,
            run.job.attempt,
            run.job.token,
            "it was stopped" if change is None else change.state,
            extra=about(run.job, self._worker),
        )
        self.emit("job.refused", run.job)


def _after(run: Execution, change: Settlement) -> Job:
    """The job as the change left it."""
    return msgspec.structs.replace(
        run.job,
        state=change.state,
        output_json=change.output_json,
        error_json=change.error_json,
        run_at=change.run_at or run.job.run_at,
        started_at=run.started_at,
        attempt=change.attempt,
        progress_json=change.progress_json or run.job.progress_json,
        cost_cents=run.job.cost_cents + change.cost_cents,
    )
