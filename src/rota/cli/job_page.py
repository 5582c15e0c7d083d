"""One job with all that is known about it: gathered once, told as plain data or as a page of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from .. import operate
from ..app import Rota
from ..handle import plain
from ..model import LIVE, Attempt, Job, State, Value
from .text import exact, json_text, safe, span, state, style, when


class JobPage(Value, frozen=True, kw_only=True):
    job: Job
    attempts: Sequence[Attempt]
    now: datetime
    hindrance: str | None = None  # why no worker will take it


async def gather(app: Rota, job_id: str) -> JobPage:
    store = await app.stores.get()
    job = await operate.get(store, job_id)
    attempts = await operate.attempts(store, job)
    workers = await operate.workers(store, app.clock, app.settings.lease_duration_s)
    return JobPage(job=job, attempts=attempts, now=app.clock.now(), hindrance=hindrance(job, workers))


def hindrance(job: Job, workers: Sequence[Mapping[str, Any]]) -> str | None:
    """Why no live worker can take a queued job; None if one can, or none has to."""
    if job.state not in LIVE - {State.RUNNING}:
        return None
    live = [w for w in workers if w["state"] != "lost"]
    if not live:
        return "no worker is alive: start one with rota worker --app MODULE:APP"
    knowing = [w for w in live if job.task in (w.get("tasks") or ())]
    if not knowing:
        return f"no live worker knows task {job.task!r}: start one whose app has it"
    if not any(_serves(w, job.queue) for w in knowing):
        return f"no live worker serves queue {job.queue!r} and knows task {job.task!r}: add the queue to -q"
    return None


def _serves(worker: Mapping[str, Any], queue: str) -> bool:
    queues = worker.get("queues")
    return (not queues or queue in queues) and queue not in (worker.get("exclude_queues") or ())


# --- as data -------------------------------------------------------------------------------------


def as_plain(page: JobPage) -> dict[str, Any]:
    attempts = [_attempt_plain(attempt) for attempt in page.attempts]
    return {**plain(page.job), "attempts": attempts, "hindrance": page.hindrance}


def _attempt_plain(attempt: Attempt) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(attempt)
    told["error"], told["logs"] = decoded(told.pop("error_json")), decoded(told.pop("logs_json")) or []
    return told


def decoded(text: str | None) -> Any:
    """JSON from the store; what cannot be read is shown as it is."""
    try:
        return None if text is None else msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {"unreadable": text[:1000] if text else text}


# --- as text -------------------------------------------------------------------------------------


def as_text(page: JobPage) -> str:
    told = plain(page.job)
    parts = [
        f"{state(page.job.state)}  {style(safe(page.job.task), bold=True)}  {page.job.id}",
        *_facts(page),
        *([f"\n  {style('! ' + safe(page.hindrance), 'yellow')}"] if page.hindrance else []),
        *as_block("Payload", json_text(told["payload"], indent=2)),
        *(
            as_block("Output", json_text(told["output"], indent=2))
            if page.job.output_json is not None
            else []
        ),
        *_error(told["error"]),
        *_attempts(page),
    ]
    return "\n".join(parts)


def _facts(page: JobPage) -> list[str]:
    job, now = page.job, page.now
    facts: list[tuple[str, Any]] = [
        ("queue", job.queue),
        ("tenant", job.tenant),
        ("priority", job.priority),
        ("attempt", f"{job.attempt} of {job.max_attempts}"),
        ("progress", progress(plain(job)["progress"])),
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
    facts += [(name, f"{when(at, now)}  ({exact(at)})") for name, at in times if at is not None]
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
    return f"{told.get('percent', '?')}% {told.get('message', '')}".replace(".0%", "%").strip()


def _error(error: Any) -> list[str]:
    if not error:
        return []
    trace = error.get("traceback") if isinstance(error, dict) else None
    return as_block("Error", safe(f"{headline(error)}\n{trace or ''}", lines=True))


def _attempts(page: JobPage) -> list[str]:
    if not page.attempts:
        return []
    lines = [line for attempt in page.attempts for line in _attempt(attempt, page.now)]
    return [f"\n{style('Attempts', bold=True)}", *lines]


def _attempt(attempt: Attempt, now: datetime) -> list[str]:
    took = ""
    if attempt.started_at is not None:
        took = f"  took {span((attempt.finished_at - attempt.started_at).total_seconds())}"
    cause = f"  {headline(decoded(attempt.error_json))}".rstrip()
    worker = f"  on {attempt.worker}" if attempt.worker else ""
    head = safe(f"{attempt.outcome}  {when(attempt.finished_at, now)}{took}{worker}{cause}")
    return [f"  {attempt.attempt}  {head}", *(f"     {line}" for line in _logs(attempt))]


def _logs(attempt: Attempt) -> list[str]:
    lines = decoded(attempt.logs_json) or []
    if not isinstance(lines, list):
        return [safe(lines)]
    return [safe(f"{str(at['at'])[11:19]}  {at['level']:<7}  {at['message']}") for at in lines]
