"""One job with everything known about it: gathered once, rendered as data or as text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...core.jobs.options import FOREVER
from ...durations import short
from ...model import State, Value
from ...operate import Operations
from ...operate.views import AttemptView, JobView
from ...terminal.text import json_text, relative_time, safe, short_duration, state, style, utc_time
from .detail import block, fact_lines, section, warning
from .job_columns import error_line, progress_line
from .target import store_time

HINDRANCES = (
    "dependency", "paused", "budget", "oversized", "strict", "limit_full", "rate", "no_worker",
    "unknown_task", "unserved_queue", "lease_expired",
)  # fmt: skip


class JobDetail(Value, frozen=True, kw_only=True):
    job: JobView
    attempts: Sequence[AttemptView]
    now: datetime
    hindrance: str | None = None  # why it is not running, if it cannot start without help


async def gather(operations: Operations, job_id: str) -> JobDetail:
    job = await operations.jobs.show(job_id)
    attempts = await operations.jobs.attempts(job.id)
    why = await operations.jobs.why(job.id)
    reason = next((reason for reason in why.reasons if reason.code in HINDRANCES), None)
    hindrance = " ".join(filter(None, (reason.text, reason.remedy))) if reason is not None else None
    return JobDetail(job=job, attempts=attempts.items, now=await store_time(operations), hindrance=hindrance)


def as_plain(detail: JobDetail) -> dict[str, Any]:
    job: dict[str, Any] = msgspec.to_builtins(detail.job)
    return {**job, "attempts": msgspec.to_builtins(detail.attempts), "hindrance": detail.hindrance}


def as_text(detail: JobDetail) -> str:
    job = detail.job
    parts = [
        f"{state(job.state)}  {style(safe(job.task), bold=True)}  {job.id}",
        *fact_lines(_facts(job)),
        *fact_lines(_times(job, detail.now)),
        *warning(detail.hindrance),
        *block("Payload", json_text(job.payload, indent=2)),
        *(block("Output", json_text(job.output, indent=2)) if job.output is not None else []),
        *_error(job.error),
        *_attempts(detail),
    ]
    return "\n".join(parts)


def _crashes(job: JobView) -> str | None:
    if not job.crashes:
        return None
    in_a_row = " in a row" if job.crashes > 1 and job.state is not State.SUCCEEDED else ""
    return f"{job.crashes}{in_a_row}: its worker{'s' * (job.crashes > 1)} stopped responding"


def _facts(job: JobView) -> list[tuple[str, Any]]:
    is_cancelling = job.cancel_requested and job.state is State.RUNNING
    return [
        ("queue", job.queue),
        ("tenant", job.tenant),
        ("priority", job.priority),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("crashes", _crashes(job)),
        ("progress", progress_line(job.progress)),
        ("cancelling", "requested to stop" if is_cancelling else None),
        ("key", job.key),
        ("concurrency key", job.concurrency_key),
        ("units", job.units if job.units != 1 else None),
        ("tags", ", ".join(job.tags)),
        ("timeout", f"{job.timeout:g} s" if job.timeout is not None else None),
        ("auto-remove", "after it succeeds" if job.auto_remove else None),
        ("kept for", _kept(job.keep)),
        ("snoozed", f"{job.snoozes} time{'s' * (job.snoozes != 1)}" if job.snoozes else None),
        ("origin", job.origin),
        ("schedule", job.schedule),
        ("parent", job.parent),
        ("worker", job.worker),
        ("price", f"{job.price:g} cents" if job.price is not None else None),
        ("cost", f"{job.cost_cents:g} cents" if job.cost_cents else None),
    ]


def _kept(keep: float | None) -> str | None:
    """How long it is kept once it has finished, if it does not follow the settings."""
    if keep is None:
        return None
    return "ever" if keep >= FOREVER else short(keep)


def _times(job: JobView, now: datetime) -> list[tuple[str, str]]:
    times = (
        ("created", job.created_at),
        ("due", job.run_at),
        ("scheduled for", job.scheduled_for),
        ("started", job.started_at),
        ("expires", job.expires_at if job.state is State.QUEUED else None),
        ("lease until", job.lease_until if job.state is State.RUNNING else None),
        ("finished", job.finished_at),
    )
    return [(name, f"{relative_time(at, now)}  ({utc_time(at)})") for name, at in times if at is not None]


def _error(error: Any) -> list[str]:
    if not error:
        return []
    known = error if isinstance(error, dict) else {}
    details = known.get("details")
    return [
        *block("Error", safe(f"{error_line(error)}\n{known.get('traceback') or ''}", lines=True)),
        *(block("Details", json_text(details, indent=2)) if details is not None else []),
    ]


def _attempts(detail: JobDetail) -> list[str]:
    lines = [line for attempt in detail.attempts for line in _attempt(attempt, detail.now)]
    return section("Attempts", lines) if lines else []


def _attempt(attempt: AttemptView, now: datetime) -> list[str]:
    took = ""
    if attempt.started_at is not None:
        took = f"  took {short_duration((attempt.finished_at - attempt.started_at).total_seconds())}"
    cause = f"  {error_line(attempt.error)}".rstrip()
    worker = f"  on {attempt.worker}" if attempt.worker else ""
    head = safe(f"{attempt.outcome}  {relative_time(attempt.finished_at, now)}{took}{worker}{cause}")
    return [f"  {attempt.attempt}  {head}", *(f"     {line}" for line in _logs(attempt))]


def _logs(attempt: AttemptView) -> list[str]:
    return [safe(f"{line.at:%H:%M:%S}  {line.level:<7}  {line.message}") for line in attempt.logs]
