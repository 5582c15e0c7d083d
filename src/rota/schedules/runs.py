"""Runs: the history of a schedule, read from its jobs, and the counts of how they ended. Pure values."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

import msgspec

from ..core.schedules.run_success import run_success
from ..errors import OptionError
from ..model import KEPT_RUN_DAYS, Job, JobId, RunCount, State, Value

WINDOW_DAYS = 30  # of a summary, unless asked for another
MOST_DAYS = 366
assert MOST_DAYS < KEPT_RUN_DAYS


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
    """How the runs of a schedule ended in the last days: counted as they end, kept whatever becomes of jobs.

    ``window_days`` whole UTC days and the current one, which is everything since ``since``.
    """

    runs: int  # those that ended within the window
    succeeded: int
    failed: int
    cancelled: int
    success_rate_percent: float | None  # of those that succeeded or failed
    average_ms: float | None
    longest_ms: float | None
    window_days: int
    since: datetime


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


def window_start(now: datetime, days: int) -> datetime:
    """When the window of a summary begins: counts are by UTC day."""
    if not 1 <= days <= MOST_DAYS:
        raise OptionError(f"days={days!r}: must be from 1 to {MOST_DAYS}")
    return datetime.combine((now - timedelta(days=days)).astimezone(UTC).date(), time(), UTC)


def summary_of(count: RunCount | None, days: int, since: datetime) -> RunSummary:
    found = count or RunCount(tenant="", schedule="")
    finished = found.succeeded + found.failed
    return RunSummary(
        runs=finished + found.cancelled,
        succeeded=found.succeeded,
        failed=found.failed,
        cancelled=found.cancelled,
        success_rate_percent=_rate(found.succeeded, finished),
        average_ms=round(found.total_ms / found.timed, 3) if found.timed else None,
        longest_ms=found.longest_ms if found.timed else None,
        window_days=days,
        since=since,
    )


def _rate(succeeded: int, finished: int) -> float | None:
    """In percent; never rounded up to 100."""
    if not finished:
        return None
    return 100.0 if succeeded == finished else min(round(100 * succeeded / finished, 2), 99.99)


def _read(text: str | None) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
