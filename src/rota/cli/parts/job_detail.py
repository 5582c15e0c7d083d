"""One job with all that is known about it: gathered once, told as plain data or as a page of text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from ...model import LIVE, State, Value
from ...operate import Operations
from ...operate.views import AttemptView, JobView
from ...terminal import table
from ...terminal.text import json_text, relative_time, safe, short_duration, state, style, utc_time
from .target import store_time

COLUMNS = (
    table.Column("ID"),
    table.Column("STATE"),
    table.Column("TASK", yields=5),
    table.Column("QUEUE", yields=2),
    table.Column("TRY", yields=3, right=True),
    table.Column("WHEN", yields=4),
    table.Column("NOTE", yields=1),
)
HINDRANCES = ("dependency", "paused", "no_worker", "unknown_task", "unserved_queue", "lease_expired")


# --- as a row ------------------------------------------------------------------------------------


def show_jobs(jobs: Sequence[JobView], now: datetime) -> None:
    table.print_table(COLUMNS, [_row(job, now) for job in jobs])


def _row(job: JobView, now: datetime) -> tuple[str, ...]:
    tries = f"{job.attempt}/{job.max_attempts}"
    return (job.id, state(job.state), safe(job.task), safe(job.queue), tries, _time(job, now), _note(job))


def _time(job: JobView, now: datetime) -> str:
    if job.state not in LIVE:
        return relative_time(job.finished_at, now)
    if job.state is State.RUNNING:
        return f"for {short_duration((now - (job.started_at or now)).total_seconds())}"
    return relative_time(job.run_at, now) if job.run_at > now else f"due {relative_time(job.run_at, now)}"


def _note(job: JobView) -> str:
    if job.state is State.RUNNING:
        return safe(progress(job.progress))
    return safe(headline(job.error))[:200] if job.state is not State.SUCCEEDED else ""


# --- the whole -----------------------------------------------------------------------------------


class JobDetail(Value, frozen=True, kw_only=True):
    job: JobView
    attempts: Sequence[AttemptView]
    now: datetime
    hindrance: str | None = None  # why it does not run, and will not by itself


async def gather(operations: Operations, job_id: str) -> JobDetail:
    job = await operations.jobs.show(job_id)
    attempts = await operations.jobs.attempts(job.id)
    why = await operations.jobs.why(job.id)
    held = next((reason for reason in why.reasons if reason.code in HINDRANCES), None)
    hindrance = " ".join(filter(None, (held.text, held.remedy))) if held is not None else None
    return JobDetail(job=job, attempts=attempts.items, now=await store_time(operations), hindrance=hindrance)


def as_plain(page: JobDetail) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(page.job)
    return {**told, "attempts": msgspec.to_builtins(page.attempts), "hindrance": page.hindrance}


# --- as text -------------------------------------------------------------------------------------


def as_text(page: JobDetail) -> str:
    job = page.job
    parts = [
        f"{state(job.state)}  {style(safe(job.task), bold=True)}  {job.id}",
        *_facts(page),
        *([f"\n  {style('! ' + safe(page.hindrance), 'yellow')}"] if page.hindrance else []),
        *as_block("Payload", json_text(job.payload, indent=2)),
        *(as_block("Output", json_text(job.output, indent=2)) if job.output is not None else []),
        *_error(job.error),
        *_attempts(page),
    ]
    return "\n".join(parts)


def _facts(page: JobDetail) -> list[str]:
    job, now = page.job, page.now
    facts: list[tuple[str, Any]] = [
        ("queue", job.queue),
        ("tenant", job.tenant),
        ("priority", job.priority),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("progress", progress(job.progress)),
        ("cancelling", "asked to stop" if job.cancel_requested and job.state is State.RUNNING else None),
        ("key", job.key),
        ("tags", ", ".join(job.tags)),
        ("timeout", f"{job.timeout:g} s" if job.timeout is not None else None),
        ("removed", "when it has succeeded" if job.auto_remove else None),
        ("origin", job.origin),
        ("schedule", job.schedule),
        ("parent", job.parent),
        ("worker", job.worker),
        ("cost", f"{job.cost_cents:g} cents" if job.cost_cents else None),
    ]
    times = (
        ("created", job.created_at),
        ("due", job.run_at),
        ("scheduled for", job.scheduled_for),
        ("started", job.started_at),
        ("lease until", job.lease_until if job.state is State.RUNNING else None),
        ("finished", job.finished_at),
    )
    facts += [(name, f"{relative_time(at, now)}  ({utc_time(at)})") for name, at in times if at is not None]
    return [f"  {name:<15}{safe(value)}" for name, value in facts if value not in (None, "")]


def as_block(title: str, text: str) -> list[str]:
    return [f"\n{style(title, bold=True)}", *(f"  {line}" for line in text.splitlines())]


def headline(error: Any) -> str:
    """An error in one line. Other programs may have stored anything at all."""
    if not isinstance(error, dict):
        return "" if error is None else str(error)
    return f"{error.get('type', 'Error')}: {error.get('message', error.get('unreadable', ''))}"


def progress(told: Any) -> str:
    if not isinstance(told, dict):
        return ""
    if told.get("percent") is None:
        return str(told.get("message") or "")
    return f"{told['percent']}% {told.get('message', '')}".replace(".0%", "%").strip()


def _error(error: Any) -> list[str]:
    if not error:
        return []
    trace = error.get("traceback") if isinstance(error, dict) else None
    return as_block("Error", safe(f"{headline(error)}\n{trace or ''}", lines=True))


def _attempts(page: JobDetail) -> list[str]:
    if not page.attempts:
        return []
    lines = [line for attempt in page.attempts for line in _attempt(attempt, page.now)]
    return [f"\n{style('Attempts', bold=True)}", *lines]


def _attempt(attempt: AttemptView, now: datetime) -> list[str]:
    took = ""
    if attempt.started_at is not None:
        took = f"  took {short_duration((attempt.finished_at - attempt.started_at).total_seconds())}"
    cause = f"  {headline(attempt.error)}".rstrip()
    worker = f"  on {attempt.worker}" if attempt.worker else ""
    head = safe(f"{attempt.outcome}  {relative_time(attempt.finished_at, now)}{took}{worker}{cause}")
    return [f"  {attempt.attempt}  {head}", *(f"     {line}" for line in _logs(attempt))]


def _logs(attempt: AttemptView) -> list[str]:
    return [safe(f"{line.at:%H:%M:%S}  {line.level:<7}  {line.message}") for line in attempt.logs]
