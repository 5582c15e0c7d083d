"""Jobs as rows of a table, and their error and progress in one line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ...model import LIVE, State
from ...operate.views import JobView
from ...terminal.text import relative_time, safe, short_duration, state
from .lists import Columns, ListColumn

LONGEST_NOTE = 200


def _time(job: JobView, now: datetime) -> str:
    if job.state not in LIVE:
        return relative_time(job.finished_at, now)
    if job.state is State.RUNNING:
        return f"for {short_duration((now - (job.started_at or now)).total_seconds())}"
    return relative_time(job.run_at, now) if job.run_at > now else f"due {relative_time(job.run_at, now)}"


def _note(job: JobView) -> str:
    if job.state is State.RUNNING:
        return safe(progress_line(job.progress))
    return safe(error_line(job.error))[:LONGEST_NOTE] if job.state is not State.SUCCEEDED else ""


JOB_COLUMNS: Columns[JobView] = (
    ListColumn("ID", lambda job, now: job.id),
    ListColumn("STATE", lambda job, now: state(job.state)),
    ListColumn("TASK", lambda job, now: safe(job.task), yields=5),
    ListColumn("QUEUE", lambda job, now: safe(job.queue), yields=2),
    ListColumn("ATTEMPT", lambda job, now: f"{job.attempt}/{job.max_attempts}", yields=3, right=True),
    ListColumn("WHEN", _time, yields=4),
    ListColumn("NOTE", lambda job, now: _note(job), yields=1),
)


def error_line(error: Any) -> str:
    """An error in one line. Other programs may have stored any JSON."""
    if not isinstance(error, dict):
        return "" if error is None else str(error)
    return f"{error.get('type', 'Error')}: {error.get('message', error.get('unreadable', ''))}"


def progress_line(progress: Any) -> str:
    """Progress in one line. A task may have stored any JSON."""
    if not isinstance(progress, dict):
        return ""
    if progress.get("percent") is None:
        return str(progress.get("message") or "")
    percent = progress["percent"]
    shown = f"{percent:.1f}".removesuffix(".0") if isinstance(percent, int | float) else percent
    return f"{shown}% {progress.get('message', '')}".strip()
