"""Values to columns and back. Must never fail on a row: what cannot be read gets a safe stand-in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ...model import Attempt, Backoff, Document, Job, NewJob, State
from .statements import JOB, SHARED

T = TypeVar("T")
Row = tuple[Any, ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000

_BACKOFF = msgspec.json.Decoder(Backoff)
_TAGS = msgspec.json.Decoder(tuple[str, ...])
_ALIKE = msgspec.json.Decoder(list[tuple[str, str, int, int, msgspec.Raw]])
_STATES = {state.value: state for state in State}


def micros(at: datetime) -> int:
    """Exact: no float on the way."""
    since = at - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def some_micros(at: datetime | None) -> int | None:
    return None if at is None else micros(at)


@lru_cache(maxsize=1024)  # jobs of one batch share most of their instants
def instant(value: int) -> datetime:
    return EPOCH + timedelta(0, *divmod(value, 1_000_000))


def some_instant(value: int | None) -> datetime | None:
    return None if value is None else instant(value)


def readable_instant(value: Any) -> datetime | None:
    """None too for what no datetime can hold."""
    return None if value is None else _try(instant, value, None)


def span(seconds: float) -> int:
    return round(seconds * 1_000_000)


def as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# --- jobs ----------------------------------------------------------------------------------------


def new_job(job: NewJob, now: int) -> tuple[dict[str, Any], int]:
    """A new job beside its id and payload: its other columns, and when it is due.

    Columns that would be null or 0 are left out: to bind None costs Python more than to bind a text,
    and most jobs use few of the options.
    """
    run_at = now if job.run_at is None else micros(job.run_at)
    cells: dict[str, Any] = {
        "task": job.task,
        "due": 1 if run_at <= now else 0,  # a bool would take the slow way through adapters
        "queue": job.queue,
        "tenant": job.tenant,
        "rank": -job.priority,
        "max_attempts": job.max_attempts,
        "origin": job.origin,
    }
    if job.timeout is not None:
        cells["timeout"] = job.timeout
    if job.backoff is not None:
        cells["backoff_json"] = as_json(job.backoff)
    if job.key is not None:
        cells["key"] = cells["slot"] = job.key
    if job.auto_remove:
        cells["auto_remove"] = 1
    if job.tags:
        cells["tags_json"] = as_json(job.tags)
    if job.parent is not None:
        cells["parent"] = job.parent
    if job.schedule is not None:
        cells["schedule"] = job.schedule
    if job.scheduled_for is not None:
        cells["scheduled_for"] = micros(job.scheduled_for)
    return cells, run_at


# Jobs of which all this is equal have the same ``new_job``.
likeness = attrgetter(
    "task", "queue", "tenant", "priority", "run_at", "max_attempts", "timeout", "backoff", "key",
    "auto_remove", "tags", "parent", "origin", "schedule", "scheduled_for",
)  # fmt: skip


def replacement(job: NewJob, now: int, holder: str) -> Row:
    """The parameters of ``replace.sql``."""
    run_at = now if job.run_at is None else micros(job.run_at)
    return (
        job.task,
        1 if run_at <= now else 0,
        job.queue,
        -job.priority,
        job.payload_json,
        job.max_attempts,
        run_at,
        job.timeout,
        None if job.backoff is None else as_json(job.backoff),
        1 if job.auto_remove else 0,
        as_json(job.tags) if job.tags else None,
        job.parent,
        job.origin,
        job.schedule,
        some_micros(job.scheduled_for),
        holder,
    )


def job(row: Row) -> Job:
    """A row of ``statements.JOB`` as a Job."""
    try:
        return _job(row)
    except Exception:  # a row edited by hand must not hide the others
        return _salvaged(row)


def _job(row: Row) -> Job:
    (
        id, task, state, queue, tenant, rank, payload, output, error, attempt, max_attempts, token, run_at,
        created_at, started_at, finished_at, lease_until, worker, timeout, backoff, key, auto_remove, tags,
        parent, origin, schedule, scheduled_for, cost_cents, progress, cancel_requested,
    ) = row  # fmt: skip
    return Job(
        id=id,
        task=task,
        state=_STATES[state],
        queue=queue,
        tenant=tenant,
        priority=-rank,
        payload_json=payload,
        output_json=output,
        error_json=error,
        attempt=attempt,
        max_attempts=max_attempts,
        token=token,
        run_at=instant(run_at),
        created_at=instant(created_at),
        started_at=None if started_at is None else instant(started_at),
        finished_at=None if finished_at is None else instant(finished_at),
        lease_until=None if lease_until is None else instant(lease_until),
        worker=worker,
        timeout=timeout,
        backoff=None if backoff is None else _BACKOFF.decode(backoff),
        key=key,
        auto_remove=bool(auto_remove),
        tags=() if tags is None else _TAGS.decode(tags),
        parent=parent,
        origin=origin,
        schedule=schedule,
        scheduled_for=None if scheduled_for is None else instant(scheduled_for),
        cost_cents=cost_cents,
        progress_json=progress,
        cancel_requested=bool(cancel_requested),
    )


def alike_jobs(text: str) -> list[Job]:
    """The answer of ``claimed.sql``. What many jobs share is read once; they are copies of one of them.

    Fails on rows that ``job`` would salvage.
    """
    kinds: dict[bytes, Job] = {}
    jobs = []
    for id, payload, run_at, created_at, shared in _ALIKE.decode(text):
        raw = bytes(shared)
        kind = kinds.get(raw) or kinds.setdefault(raw, _of_kind(raw))
        jobs.append(
            replace(kind, id=id, payload_json=payload, run_at=instant(run_at), created_at=instant(created_at))
        )
    return jobs


def _of_kind(shared: bytes) -> Job:
    cells = dict(zip(SHARED, msgspec.json.decode(shared), strict=True))
    cells |= {"id": "", "payload_json": "", "run_at": 0, "created_at": 0}
    return _job(tuple(cells[name] for name in JOB.split(", ")))


def _salvaged(row: Row) -> Job:
    """The same, column by column, each unreadable one replaced."""
    cell = dict(zip(JOB.split(", "), row, strict=True))
    when: dict[str, Any] = {
        name: _try(instant, cell[name], None)
        for name in ("started_at", "finished_at", "lease_until", "scheduled_for")
    }
    text: dict[str, Any] = {
        name: None if cell[name] is None else str(cell[name])
        for name in ("output_json", "error_json", "worker", "key", "parent", "schedule", "progress_json")
    }
    number: dict[str, Any] = {name: _try(int, cell[name], 0) for name in ("attempt", "max_attempts", "token")}
    return Job(
        id=str(cell["id"]),
        task=str(cell["task"]),
        state=_STATES.get(cell["state"], State.FAILED),
        queue=str(cell["queue"]),
        tenant=str(cell["tenant"]),
        priority=-_try(int, cell["rank"], 0),
        payload_json=str(cell["payload_json"]),
        run_at=_try(instant, cell["run_at"], EPOCH),
        created_at=_try(instant, cell["created_at"], EPOCH),
        timeout=_try(float, cell["timeout"], None),
        backoff=_try(_BACKOFF.decode, cell["backoff_json"], None),
        auto_remove=bool(cell["auto_remove"]),
        tags=_try(_TAGS.decode, cell["tags_json"], ()),
        origin=str(cell["origin"]),  # type: ignore[arg-type]
        cost_cents=_try(float, cell["cost_cents"], 0.0),
        cancel_requested=bool(cell["cancel_requested"]),
        **when,
        **text,
        **number,
    )


def _try(read: Callable[[Any], T], value: Any, otherwise: Any) -> Any:
    try:
        return read(value)
    except Exception:
        return otherwise


# --- attempts and documents ----------------------------------------------------------------------


def new_attempt(record: Attempt) -> Row:
    """The parameters of ``record.sql``."""
    return (
        record.job,
        record.token,
        record.attempt,
        record.outcome,
        record.worker,
        some_micros(record.started_at),
        micros(record.finished_at),
        record.error_json,
        record.logs_json,
        record.cost_cents,
    )


def attempt(row: Row) -> Attempt:
    job, token, number, outcome, worker, started_at, finished_at, error, logs, cost = row
    return Attempt(
        job=job,
        attempt=number,
        token=token,
        outcome=outcome,
        worker=worker,
        started_at=_try(instant, started_at, None),
        finished_at=_try(instant, finished_at, EPOCH),
        error_json=error,
        logs_json=logs,
        cost_cents=cost,
    )


def document(row: Row) -> Document:
    kind, key, body, version, updated_at = row
    at = _try(instant, updated_at, EPOCH)
    return Document(kind=kind, key=key, body=body, version=version, updated_at=at)
