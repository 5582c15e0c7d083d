"""Values to and from the wire.

Owns how jobs, changes and instants are written and read. Must never do I/O. Batches travel as one
JSON text; JSON inside it travels as text, so that it is stored byte for byte, even with escapes that
PostgreSQL could not decode. Rows come back with ids and JSON as ``str``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.string import TextLoader

from ...model import Attempt, Backoff, Change, Document, Inserted, Job, NewJob, State

Row = tuple[Any, ...]

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


class InstantLoader(Loader):
    """A timestamptz as aware UTC, whatever the session's time zone; what Python cannot hold is clipped."""

    def load(self, data: Buffer) -> datetime:
        text = str(data, "ascii")
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            return EARLIEST if text.startswith("-") or text.endswith("BC") else LATEST
        return instant if instant.tzinfo is UTC else instant.astimezone(UTC)


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_loader("uuid", TextLoader)
    adapters.register_loader("json", TextLoader)
    adapters.register_loader("timestamptz", InstantLoader)
    return adapters


class _Adapters:
    """What psycopg calls a context: our loaders for every connection."""

    adapters = _adapters()
    connection = None


ADAPTERS = _Adapters()

# --- to the server -------------------------------------------------------------------------------

_encode = msgspec.json.Encoder().encode


def jobs_text(jobs: Sequence[NewJob]) -> str:
    return _encode(jobs).decode()


def changes_text(changes: Iterable[Change]) -> str:
    return _encode([_wire(change) for change in changes]).decode()


def text(value: Any) -> str:
    return _encode(value).decode()


def _wire(change: Change) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "id": change.id,
        "token": change.token,
        "state": change.state,
        "attempt": change.attempt,
    }
    for name in _OPTIONAL:
        if value := getattr(change, name):
            wire[name] = value
    return wire


_OPTIONAL = (
    "run_at",
    "output_json",
    "error_json",
    "started_at",
    "cost_cents",
    "progress_json",
    "remove",
    "record",
    "then",
)


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def ids(given: Iterable[str]) -> list[str]:
    """Only what can be an id: the server would refuse the whole statement for one that cannot."""
    return [one for one in given if _ID.fullmatch(one)]


# --- from the server -----------------------------------------------------------------------------

_backoff = msgspec.json.Decoder(Backoff).decode

_STATES = {state.value: state for state in State}  # four times quicker than State(text)

# The order of these columns is the order in which ``job`` reads them.
JOB_COLUMNS = (
    "state, priority, run_at, id, created_at, token, attempt, max_attempts, auto_remove, tenant, queue, "
    "task, origin, payload, cost_cents, timeout, scheduled_for, schedule, key, tags, parent, backoff, error, "
    "progress, started_at, lease_until, worker, cancel_requested, output, finished_at"
)


def claimed(row: Row, worker: str, lease_until: datetime, now: datetime) -> Job:
    """A job from a row of ``rota.turn``, which leaves out what the claimer knows."""
    return job((State.RUNNING, -row[3], *row[4:-1], now, lease_until, worker, row[-1], None, None))


def claim_order(row: Row) -> Row:
    return row[3:6]


def job(row: Row) -> Job:
    (
        state, priority, run_at, id, created_at, token, attempt, max_attempts, auto_remove, tenant, queue,
        task, origin, payload, cost_cents, timeout, scheduled_for, schedule, key, tags, parent, backoff,
        error, progress, started_at, lease_until, worker, cancel_requested, output, finished_at,
    ) = row  # fmt: skip
    return Job(
        id=id,
        task=task,
        state=_STATES[state],
        queue=queue,
        tenant=tenant,
        priority=priority,
        payload_json=payload,
        output_json=output,
        error_json=error,
        attempt=attempt,
        max_attempts=max_attempts,
        token=token,
        run_at=run_at,
        created_at=created_at,
        started_at=started_at,
        finished_at=finished_at,
        lease_until=lease_until,
        worker=worker,
        timeout=timeout,
        backoff=None if backoff is None else _backoff(backoff),
        key=key,
        auto_remove=auto_remove,
        tags=tuple(tags) if tags else (),
        parent=parent,
        origin=origin,
        schedule=schedule,
        scheduled_for=scheduled_for,
        cost_cents=cost_cents or 0.0,
        progress_json=progress,
        cancel_requested=cancel_requested,
    )


def inserted(jobs: Sequence[NewJob], rows: Iterable[Sequence[Any]]) -> list[Inserted]:
    """All created, but for the rows (ord, id, outcome, state) that say otherwise."""
    told = [Inserted(id=job.id, outcome="created") for job in jobs]
    for ord, id, outcome, state in rows:
        told[ord - 1] = Inserted(id=id, outcome=outcome, state=State(state))
    return told


def attempt(row: Row) -> Attempt:
    return Attempt(
        job=row[0],
        token=row[1],
        attempt=row[2],
        outcome=row[3],
        worker=row[4],
        started_at=row[5],
        finished_at=row[6],
        error_json=row[7],
        logs_json=row[8],
        cost_cents=row[9] or 0.0,
    )


def document(row: Row) -> Document:
    return Document(kind=row[0], key=row[1], version=row[2], updated_at=row[3], body=row[4])
