"""Runs: the history of a schedule, told from its jobs. Pure values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ..model import Job, JobId, State, Value


class ScheduleRun(Value, frozen=True, kw_only=True):
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
    success: bool | None  # None: not ended yet
    message: str | None
    details: Any = None


class RunSummary(Value, frozen=True, kw_only=True):
    runs: int
    succeeded: int
    failed: int
    success_rate_percent: float | None
    average_ms: float | None
    longest_ms: float | None


def run_of(job: Job) -> ScheduleRun:
    """A task that returns ``{"success": false, "message": …}`` has failed, though its job ended well."""
    said = _read(job.output_json)
    fault = _read(job.error_json)
    success = None
    if job.is_final:
        success = job.state is State.SUCCEEDED and said.get("success") is not False
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
        success=success,
        message=_text(said.get("message")) or _text(fault.get("message")),
        details=said.get("details"),
    )


def summary_of(runs: Sequence[ScheduleRun]) -> RunSummary:
    ended = [run for run in runs if run.success is not None]
    lengths = [run.duration_ms for run in ended if run.duration_ms is not None]
    succeeded = sum(bool(run.success) for run in ended)
    return RunSummary(
        runs=len(runs),
        succeeded=succeeded,
        failed=len(ended) - succeeded,
        success_rate_percent=round(100 * succeeded / len(ended), 2) if ended else None,
        average_ms=sum(lengths) / len(lengths) if lengths else None,
        longest_ms=max(lengths, default=None),
    )


def _read(text: str | None) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
