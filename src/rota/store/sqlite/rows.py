"""Values to columns and back. Must never fail on a row: what cannot be read gets a safe stand-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from ...model import Attempt, Backoff, Document, Job, NewJob, State
from ..sql import fields
from ..sql.fields import (
    BACKOFF,
    COUNTER,
    FIELDS,
    FLAG,
    INSTANT,
    NEW,
    OPTIONS,
    RANK,
    REAL,
    TAGS,
    WHOLE,
    JobField,
    Kind,
)
from ..sql.readers import job_reader
from .statements import COLUMNS, SHARED, VARIED

T = TypeVar("T")
Row = tuple[Any, ...]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = 60_000_000
DAY = 1440 * MINUTE

_BACKOFF = msgspec.json.Decoder(Backoff)
_TAGS = msgspec.json.Decoder(tuple[str, ...])
_ALIKE = msgspec.json.Decoder(list[tuple[str, str, int, int, str, str | None, msgspec.Raw]])
_STATES = {state.value: state for state in State}
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(Job)}


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


# How a value of a kind is written; those that are not here are written as they are.
_WRITERS: dict[Kind, Callable[[Any], Any]] = {
    INSTANT: micros,
    FLAG: int,  # a bool would take the slow way through adapters
    BACKOFF: as_json,
    TAGS: as_json,
}
_OPTIONS = tuple((field.sqlite, _WRITERS.get(field.kind)) for field in OPTIONS)
_ALIKE_OPTIONS = tuple(option for option in _OPTIONS if option[0] not in VARIED)
_options = attrgetter(*(field.name for field in OPTIONS if field.name not in VARIED))


@lru_cache(maxsize=256)  # a program enqueues the same few kinds of jobs again and again
def _cells(options: Row) -> Mapping[str, Any]:
    """The columns of the options. Those that would be null or 0 are left out: to bind None costs Python
    more than to bind a text, and most jobs use few of them."""
    cells = {}
    for (column, write), value in zip(_ALIKE_OPTIONS, options, strict=True):
        if value is not None and value is not False and value != ():
            cells[column] = value if write is None else write(value)
    if "key" in cells:
        cells["slot"] = cells["key"]
    return cells


def alike_cells(job: NewJob, now: int) -> tuple[dict[str, Any], int]:
    """A new job beside its id, payload and what is VARIED: its other columns, and when it is due."""
    run_at = now if job.run_at is None else micros(job.run_at)
    return {"due": 1 if run_at <= now else 0, "rank": -job.priority, **_cells(_options(job))}, run_at


def varied_cells(tenant: str, concurrency_key: str | None) -> dict[str, Any]:
    cells: dict[str, Any] = {"tenant": tenant}
    if tenant != "default":
        cells["lane"] = ""  # it can be reached by its tenant; see statements.py for the default one
    if concurrency_key is not None:
        cells["concurrency_key"] = concurrency_key
    return cells


# Jobs of which all this is equal have the same ``alike_cells``.
likeness = attrgetter(*(f.name for f in NEW if f.name not in ("id", "payload_json", *VARIED)))


_REPLACED = tuple(option for option in _OPTIONS if option[0] not in ("key", "tenant"))


def replacement(job: NewJob, now: int, holder: str) -> Row:
    """The parameters of ``replace.sql``."""
    run_at = now if job.run_at is None else micros(job.run_at)
    cells = {**_cells(_options(job)), **varied_cells(job.tenant, job.concurrency_key)}
    options = [cells.get(column, 0 if write is int else None) for column, write in _REPLACED]
    return *options, job.payload_json, 1 if run_at <= now else 0, -job.priority, run_at, holder


# How a column of a kind is read; those that are not here are what SQLite gives.
_EXPRESSIONS = {
    INSTANT: "None if {0} is None else instant({0})",
    RANK: "-{0}",
    FLAG: "bool({0})",
    BACKOFF: "None if {0} is None else BACKOFF({0})",
    TAGS: "() if {0} is None else TAGS({0})",
}
_VALUES = {f.name: _EXPRESSIONS[f.kind].format(f.name) for f in FIELDS if f.kind in _EXPRESSIONS}
_VALUES["state"] = "STATES[state]"
_VALUES["units"] = "units or 1"
_SCOPE = {"STATES": _STATES, "instant": instant, "BACKOFF": _BACKOFF.decode, "TAGS": _TAGS.decode}
_job = job_reader(Job.__struct_fields__, _VALUES, _SCOPE)


def job(row: Row) -> Job:
    """A row of ``statements.JOB`` as a Job."""
    try:
        return _job(row)
    except Exception:  # a row edited by hand must not hide the others
        return _salvaged(row)


def alike_jobs(text: str) -> list[Job]:
    """The answer of ``claimed.sql``. What many jobs share is read once; they are copies of one of them.

    Fails on rows that ``job`` would salvage.
    """
    kinds: dict[bytes, Job] = {}
    jobs = []
    for id, payload, run_at, created_at, tenant, key, shared in _ALIKE.decode(text):
        raw = bytes(shared)
        kind = kinds.get(raw) or kinds.setdefault(raw, _of_kind(raw))
        jobs.append(
            replace(
                kind,
                id=id,
                payload_json=payload,
                run_at=instant(run_at),
                created_at=instant(created_at),
                tenant=tenant,
                concurrency_key=key,
            )
        )
    return jobs


def _of_kind(shared: bytes) -> Job:
    cells = dict(zip(SHARED, msgspec.json.decode(shared), strict=True))
    cells |= {
        "id": "",
        "payload_json": "",
        "run_at": 0,
        "created_at": 0,
        "tenant": "",
        "concurrency_key": None,
    }
    return _job(tuple(cells[name] for name in COLUMNS))


def _salvaged(row: Row) -> Job:
    """The same, column by column, each unreadable one replaced by its default."""
    cells = list(row)
    for place, field in enumerate(fields.JOB):
        cells[place] = _salvage(field, cells[place])
    return Job(*cells)


def _salvage(field: JobField, value: Any) -> Any:
    default = _DEFAULTS[field.name]
    if field.name == "state":
        return _STATES.get(value, State.FAILED)
    if field.kind is INSTANT:
        return _try(instant, value, EPOCH if default is msgspec.NODEFAULT else None)
    if field.kind in _SALVAGED:
        return default if value is None else _try(_SALVAGED[field.kind], value, default)
    return None if value is None else str(value)


_SALVAGED: dict[Kind, Callable[[Any], Any]] = {
    RANK: lambda value: -int(value),
    WHOLE: int,
    COUNTER: int,
    REAL: float,
    FLAG: bool,
    BACKOFF: _BACKOFF.decode,
    TAGS: _TAGS.decode,
}


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
        record.lease_token,
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
    job, lease_token, number, outcome, worker, started_at, finished_at, error, logs, cost = row
    return Attempt(
        job=job,
        attempt=number,
        lease_token=lease_token,
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
