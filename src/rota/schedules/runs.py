"""Runs: the history of a schedule, read from its jobs. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ..core.schedules.run_success import run_success
from ..model import Job, JobId, State, Value


class ScheduleRun(Value, frozen=True, kw_only=True):
    """A job created by a schedule, as one line of its history."""

    schedule: str
    tenant: str
    job: JobId
    state: State
    triggered_by: str  # scheduler, manual, catchup
    scheduled_for: datetime | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: float | None
    success: bool | None  # None: not finished, or cancelled
    message: str | None
    details: Any = None


class RunSummary(Value, frozen=True, kw_only=True):
    """Counts and durations of some runs."""

    runs: int
    succeeded: int
    failed: int
    success_rate_percent: float | None
    average_ms: float | None
    longest_ms: float | None


def run_of(job: Job) -> ScheduleRun:
    output = _read(job.output_json)
    error = _read(job.error_json)
    duration = None
    if job.started_at is not None and job.finished_at is not None:
        duration = (job.finished_at - job.started_at).total_seconds() * 1000
    return ScheduleRun(
        schedule=job.schedule or "",
        tenant=job.tenant,
        job=job.id,
        state=job.state,
        triggered_by=job.origin,
        scheduled_for=job.scheduled_for,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        duration_ms=duration,
        success=run_success(job.state),
        message=_text(output.get("message")) or _text(error.get("message")),
        details=output.get("details"),
    )


def summary_of(runs: Sequence[ScheduleRun]) -> RunSummary:
    finished = [run for run in runs if run.success is not None]
    durations = [run.duration_ms for run in finished if run.duration_ms is not None]
    succeeded = sum(bool(run.success) for run in finished)
    return RunSummary(
        runs=len(runs),
        succeeded=succeeded,
        failed=len(finished) - succeeded,
        success_rate_percent=round(100 * succeeded / len(finished), 2) if finished else None,
        average_ms=sum(durations) / len(durations) if durations else None,
        longest_ms=max(durations, default=None),
    )


def _read(text: str | None) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
