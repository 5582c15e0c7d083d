"""Values to and from the wire.

Owns how jobs, changes and instants are written and read. Must never do I/O. Batches travel as one
JSON text; JSON inside it travels as text, so that it is stored byte for byte, even with escapes that
PostgreSQL could not decode. Rows come back with ids and JSON as ``str``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

import msgspec
import psycopg
from psycopg.adapt import AdaptersMap, Buffer, Loader
from psycopg.types.string import TextLoader

from ...model import Attempt, AuditEntry, Backoff, Document, InsertResult, Job, NewJob, Settlement, State
from ..sql.fields import JOB, JobField
from ..sql.readers import job_reader
from .columns import CLAIMED, CLAIMED_APART

Row = tuple[Any, ...]

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


def instant(text: str) -> datetime:
    """A timestamptz as aware UTC, whatever the session's time zone; what Python cannot hold is clipped."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return EARLIEST if text.startswith("-") or text.endswith("BC") else LATEST
    return read if read.tzinfo is UTC else read.astimezone(UTC)


class InstantLoader(Loader):
    def load(self, data: Buffer) -> datetime:
        return instant(str(data, "ascii"))


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

# An instant that the caller gives, or else the server's own. Of a statement, not of its transaction.
NOW = "coalesce(CAST(%s AS timestamptz), clock_timestamp())"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_encode = msgspec.json.Encoder().encode


def jobs_text(jobs: Sequence[NewJob]) -> str:
    return _encode(jobs).decode()


def settled(changes: Sequence[Settlement], now: datetime | None) -> tuple[Any, ...]:
    """The parameters of ``rota.settle``: plain successes as arrays, all other ends as one JSON text.

    An array literal is several times cheaper than a list of parameters, for the driver and the server.
    """
    plain: list[Settlement] = []
    others: list[Settlement] = []
    for change in changes:
        (plain if _is_plain(change) else others).append(change)
    wired = _encode([_wire(change) for change in others]).decode() if others else None
    if not plain:
        return None, None, None, None, None, wired, now
    plain.sort(key=_by_id)
    outputs = None
    if any(change.output_json is not None for change in plain):
        outputs = text([change.output_json for change in plain])
    ids = ",".join([change.id for change in plain])
    tokens = ",".join([str(change.lease_token) for change in plain])
    workers = texts_array([change.worker or "" for change in plain])
    began = ",".join([_micros(at) if (at := change.started_at) else "NULL" for change in plain])
    return f"{{{ids}}}", f"{{{tokens}}}", workers, f"{{{began}}}", outputs, wired, now


def texts_array(texts: Sequence[str]) -> str:
    """A text[] in the server's notation."""
    if not texts:
        return "{}"
    quoted = [one.replace("\\", "\\\\").replace('"', '\\"') for one in texts]
    return '{"' + '","'.join(quoted) + '"}'


_by_id = attrgetter("id")


def _is_plain(change: Settlement) -> bool:
    """A success that leaves nothing behind but its time, which is that of the settle, and its output."""
    return (
        change.state is State.SUCCEEDED
        and (change.attempt == 1) is (change.record is None)
        and (change.record is None or change.record.logs_json is None)
        and change.error_json is None
        and change.progress_json is None
        and not (change.remove or change.cost_cents or change.then or change.audit)
    )


def _micros(at: datetime) -> str:
    """Microseconds since 1970."""
    since = at - EPOCH
    return str((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


def text(value: Any) -> str:
    return _encode(value).decode()


def _wire(change: Settlement) -> dict[str, Any]:
    wire: dict[str, Any] = {
        "id": change.id,
        "lease_token": change.lease_token,
        "worker": change.worker,
        "state": change.state,
        "attempt": change.attempt,
    }
    if change.crashes is not None:
        wire["crashes"] = change.crashes
    if change.snoozes is not None:
        wire["snoozes"] = change.snoozes
    for name in _OPTIONAL:
        if value := getattr(change, name):
            wire[name] = value
    if (record := change.record) is not None:
        wire["outcome"] = record.outcome
        wire["tried"] = record.attempt
        wire["by"] = record.worker
        wire["ended_at"] = record.finished_at
        if record.cost_cents:
            wire["spent"] = record.cost_cents
        if record.logs_json is not None:
            wire["logs_json"] = record.logs_json
        if record.error_json is not None:  # mostly the job's own: no need to say it twice
            same = record.error_json == change.error_json
            wire["blamed" if same else "own_error"] = True if same else record.error_json
    if change.audit:
        wire["audit"] = audit_lines(change.audit)
    return wire


_OPTIONAL = (
    "run_at",
    "output_json",
    "error_json",
    "started_at",
    "cost_cents",
    "progress_json",
    "remove",
    "then",
)


def audit_lines(entries: Sequence[AuditEntry]) -> list[dict[str, Any]]:
    """For ``rota.append_audit``. The server cannot hold a NUL, and a line must not be lost for one."""
    return [
        {
            name: value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value
            for name in AuditEntry.__struct_fields__
            if name != "id" and (value := getattr(entry, name)) is not None
        }
        for entry in entries
    ]


_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)


def ids(given: Iterable[str]) -> list[str]:
    """Only what can be an id: the server would refuse the whole statement for one that cannot."""
    return [one for one in given if _ID.fullmatch(one)]


# --- from the server -----------------------------------------------------------------------------

_backoff = msgspec.json.Decoder(Backoff).decode

_STATES = {state.value: state for state in State}  # four times quicker than State(text)

# How a value that the driver gives becomes the value of a Job; the other fields need nothing.
_VALUES = {
    "state": "STATES[state]",
    "backoff": "backoff and decode_backoff(backoff)",
    "tags": "tuple(tags) if tags else ()",
    "cost_cents": "cost_cents or 0.0",
    "crashes": "crashes or 0",
    "snoozes": "snoozes or 0",
    "units": "units or 1",
}
_SCOPE = {"STATES": _STATES, "decode_backoff": _backoff, "instant": instant}


def _column(field: JobField) -> str:
    return field.name.removesuffix("_json")  # the views show a priority, not a rank


# In the order in which ``job`` reads them, which is that of Job itself.
JOB_COLUMNS = ", ".join(map(_column, JOB))
ID_PLACE = Job.__struct_fields__.index("id")
_BRIEF = {"payload_json": "'{}'::json", "output_json": "NULL"}
BRIEF_COLUMNS = ", ".join(_BRIEF.get(field.name) or _column(field) for field in JOB)
# A row of ``rota.reclaim``, which has the columns of rota.running, as a job.
_RECLAIMED = {"state": "'running'", "priority": "-rank", "output_json": "NULL", "finished_at": "NULL"}
RECLAIMED_COLUMNS = ", ".join(_RECLAIMED.get(field.name) or _column(field) for field in JOB)


job = job_reader(Job.__struct_fields__, _VALUES, _SCOPE)

# A job from a row of a turn: three columns of the turn itself, then those of ``rota.claim``, which leaves
# out what the claimer knows. Most jobs were due when they were made: one instant serves both.
_TURN_COLUMNS = ("_", "_", "_", "_", *CLAIMED_APART, *(field.name for field in CLAIMED))
_CLAIMED_VALUES = _VALUES | {
    "state": "RUNNING",
    "run_at": "(due_at := instant(run_at))",
    "created_at": "due_at if created_at == run_at else instant(created_at)",
    "priority": "-priority",
    "started_at": "now",
    "output_json": "None",
    "finished_at": "None",
}
claimed = job_reader(
    _TURN_COLUMNS, _CLAIMED_VALUES, _SCOPE | {"RUNNING": State.RUNNING}, "worker, lease_until, now"
)


def inserted(jobs: Sequence[NewJob], rows: Iterable[Sequence[Any]]) -> list[InsertResult]:
    """All created, but for the rows (ord, id, outcome, state) that say otherwise."""
    results = [InsertResult(id=job.id, outcome="created") for job in jobs]
    for ord, id, outcome, state in rows:
        results[ord - 1] = InsertResult(id=id, outcome=outcome, state=State(state))
    return results


def attempt(row: Row) -> Attempt:
    return Attempt(
        job=row[0],
        lease_token=row[1],
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
