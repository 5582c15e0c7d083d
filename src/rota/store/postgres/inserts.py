"""Storing jobs: singles that share a commit, batches that stream.

Owns which path an insert takes: jobs that differ in nothing but id and payload, as those of one task
do, have a quick one; any others, and all that meet a job already stored, have one that judges each.
Must never change what a job says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

import psycopg
from psycopg import errors

from ...errors import StoreError
from ...model import InsertResult, NewJob
from ..group_commit import GroupCommit, InsertCall
from ..sql.external import Script
from ..sql.fields import BACKOFF, FLAG, INSTANT, NEW, OPTIONS, REAL, TAGS, WHOLE, Kind
from .columns import LARGE, MANY_TENANTS, NEWEST_SEGMENT
from .connections import Connections
from .driver_errors import translated
from .rows import inserted, jobs_text, text, texts_array
from .waker import HintPublisher

STREAM_FROM = 50  # jobs; fewer are quicker as one statement
LINES_AT_ONCE = 500  # of a stream: the server works on them while we write the next
MOST_WRITES = 4  # of two to six the best for 32 callers

# The server answers only for jobs that were not simply created.
_INSERT = "SELECT ord, id, outcome, state FROM rota.{}(CAST(%s AS json), %s, %s, %s)"
_INSERT_WITH = (
    "SELECT ord, CAST(id AS text), outcome, state FROM rota.{}("
    "CAST(CAST(? AS text) AS json), CAST(CAST(? AS text) AS timestamptz), {}, true)"
)
# What jobs of one task may differ in, beside id and payload.
_LABELS = ("tenant", "concurrency_key")
# What follows is in the order of ``_shared``. No key: jobs with one are stored by rota.insert_jobs.
_OPTIONS = tuple(field for field in OPTIONS if field.name not in ("key", *_LABELS))
_SHARED = ("created_at", "run_at", "rank", "due", *(field.postgres for field in _OPTIONS))
_COLUMNS = ", ".join([*_LABELS, *_SHARED])
_MARKS = ", ".join(["%s"] * len(_COLUMNS.split(", ")))
_COPY = f"COPY rota.queued (id, payload, lane, {_COLUMNS}, segment) FROM STDIN"
_COPY_LARGE = "COPY rota.payloads (job, body) FROM STDIN"
_NAMED = ", ".join(f"{column} => %s" for column in ("ids", "payloads", *_LABELS, *_SHARED, "wake"))
_ALIKE = f"SELECT rota.insert_alike({_NAMED})"
# Ids are new here (one that may have been sent before is ``retrying``), so it is enough to check the
# running jobs once, before; insert_plain and insert_alike check after the insert as well.
_ONE = (
    f"INSERT INTO rota.queued (id, payload, segment, lane, {_COLUMNS}) "
    f"SELECT %s, %s, {NEWEST_SEGMENT}, CASE WHEN %s OR {MANY_TENANTS} THEN '' END, {_MARKS} "
    "WHERE NOT EXISTS (SELECT FROM rota.running AS r WHERE r.id = %s) ON CONFLICT DO NOTHING "
    "RETURNING CASE WHEN %s THEN pg_notify('rota_wake', rota.hint_of(queue)) END, "
    f"CASE WHEN %s AND NOT {MANY_TENANTS} THEN rota.note_tenants() END"
)
PLAIN = "insert_plain"
_BEFORE_COPY = (
    "SELECT rota.newest_segment(), pg_relation_size('rota.running'), "
    f"{MANY_TENANTS}, CASE WHEN %s AND NOT {MANY_TENANTS} THEN rota.note_tenants() END"
)
# Walks the few running jobs rather than the many new ones.
_ALSO_RUNNING = """
SELECT 1 FROM rota.running AS r WHERE EXISTS (SELECT FROM rota.queued AS q WHERE q.id = r.id) LIMIT 1
"""
# The other way round, where the table is full of rows that are gone but cannot be removed yet.
_ALSO_RUNNING_BY_ID = "SELECT 1 FROM rota.running AS r WHERE r.id = ANY (CAST(%s AS uuid[])) LIMIT 1"
LOOK_UP_BYTES = 4096  # of a table are walked in the time of one look-up


def script(jobs: Sequence[NewJob], now: datetime | None, retrying: bool) -> Script[Sequence[InsertResult]]:
    """The insert on a caller's own connection: one statement that every driver can send."""
    rows = yield (
        _INSERT_WITH.format(_choose_path(jobs), "true" if retrying else "false"),
        (jobs_text(jobs), None if now is None else now.isoformat()),
    )
    return inserted(jobs, rows)


def function_for(jobs: Sequence[NewJob]) -> str:
    """The function that ``script`` calls, with the types that it takes."""
    return f"rota.{_choose_path(jobs)}(json,timestamptz,boolean,boolean)"


class Inserter:
    def __init__(self, connections: Connections, shown: str, publisher: HintPublisher) -> None:
        self._connections = connections
        self._shown = shown
        self._publisher = publisher
        self._group = GroupCommit(self._together, MOST_WRITES)

    async def insert(self, jobs: Sequence[NewJob], now: datetime, retrying: bool) -> Sequence[InsertResult]:
        if not jobs:
            return ()
        if retrying:
            return await self._statement(jobs, now, retrying)
        if len(jobs) > STREAM_FROM:
            return await self._batch(jobs, now)
        return await self._group.insert(jobs, now)

    async def _together(self, calls: Sequence[InsertCall]) -> Sequence[Sequence[InsertResult]]:
        if len(calls) == 1:
            return (await self._statement(calls[0].jobs, calls[0].now, False),)
        jobs = [job for call in calls for job in call.jobs]
        results = iter(await self._statement(jobs, max(call.now for call in calls), False))
        return [[next(results) for _ in call.jobs] for call in calls]

    async def _statement(
        self, jobs: Sequence[NewJob], now: datetime, retrying: bool
    ) -> Sequence[InsertResult]:
        wakes = self._publisher.may_ride_along()
        quick = not retrying and _are_alike(jobs) and not any(_is_large(job) for job in jobs)
        if not quick or not await self._all_new(jobs, now, wakes):
            params = (jobs_text(jobs), now, retrying, wakes)
            rows = await self._connections.rows(
                _INSERT.format(_choose_path(jobs)), params, repeatable=retrying
            )
            results = inserted(jobs, rows)
        else:
            results = inserted(jobs, ())
        self._publisher.publish({job.queue for job in jobs}, jobs=len(jobs), sent=wakes)
        return results

    async def _all_new(self, jobs: Sequence[NewJob], now: datetime, wakes: bool) -> bool:
        """Store jobs that are alike. False: some id is live already, and nothing has been stored."""
        if len(jobs) == 1:
            (job,) = jobs
            is_other = _is_other(job)
            given = (job.tenant, job.concurrency_key, *_shared(job, now))
            params = (job.id, job.payload_json, is_other, *given, job.id, wakes, is_other)
            return bool(await self._connections.rows(_ONE, params, repeatable=False, often=True))
        ids = ",".join([job.id for job in jobs])
        payloads = texts_array([job.payload_json for job in jobs])
        try:
            given = (jobs[0].tenant, jobs[0].concurrency_key, *_shared(jobs[0], now))
            many = (f"{{{ids}}}", payloads, *given, wakes)
            await self._connections.rows(_ALIKE, many, repeatable=False, often=True)
        except StoreError as error:
            if isinstance(error.__cause__, errors.UniqueViolation):
                return False
            raise
        return True

    # --- batches -----------------------------------------------------------------------------

    async def _batch(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[InsertResult]:
        if _choose_path(jobs) == PLAIN and await self._stream(jobs, now):
            self._publisher.publish({job.queue for job in jobs}, jobs=len(jobs))
            return inserted(jobs, ())
        return await self._statement(jobs, now, False)

    async def _stream(self, jobs: Sequence[NewJob], now: datetime) -> bool:
        """False: some id is live already, or the role may not stream, and nothing has been stored."""
        try:
            async with self._connections.borrow() as connection, connection.transaction() as transaction:
                async with connection.cursor() as cursor:
                    await cursor.execute(_BEFORE_COPY, (any(map(_is_other, jobs)),))
                    ((segment, running_bytes, has_tenants, _),) = await cursor.fetchall()
                    async with cursor.copy(_COPY) as copy:
                        for some in _lines(jobs, segment, has_tenants, now):
                            await copy.write(some)
                    if large := [job for job in jobs if _is_large(job)]:
                        async with cursor.copy(_COPY_LARGE) as copy:
                            for job in large:
                                await copy.write(f"{job.id}\t{_field(job.payload_json)}\n".encode())
                    if running_bytes < len(jobs) * LOOK_UP_BYTES:
                        await cursor.execute(_ALSO_RUNNING)
                    else:
                        await cursor.execute(_ALSO_RUNNING_BY_ID, ([job.id for job in jobs],))
                    found = await cursor.fetchone()
                if found is not None:
                    raise psycopg.Rollback(transaction)
                return True
            return False
        except (errors.UniqueViolation, errors.FeatureNotSupported):  # COPY knows no row-level security
            return False
        except psycopg.Error as error:
            raise translated(error, self._shown) from error


def _choose_path(jobs: Sequence[NewJob]) -> str:
    """The function that stores them: keys cost only those who use them."""
    return PLAIN if all(job.key is None for job in jobs) else "insert_jobs"


# --- jobs as text --------------------------------------------------------------------------------

# Everything but id and payload; and what a stream writes but once for neighbours that share it.
_shape = attrgetter(*(field.name for field in NEW if field.name not in ("id", "payload_json")))
_rest = attrgetter(*(field.name for field in NEW if field.name not in ("id", "payload_json", *_LABELS)))


def _is_other(job: NewJob) -> bool:
    """Whether it is of a tenant beside the default one: claims share between them."""
    return job.tenant != "default"


def _is_large(job: NewJob) -> bool:
    """Whether its payload is kept apart: as the server would say, or nearly so, which does no harm."""
    return len(job.payload_json) > LARGE


def _are_alike(jobs: Sequence[NewJob]) -> bool:
    """Whether they differ in nothing but id and payload, and no key is involved."""
    shape = _shape(jobs[0])
    return jobs[0].key is None and all(_shape(job) == shape for job in jobs[1:])


# How the server writes a value of a kind; texts stay as they are.
_WRITERS: dict[Kind, Callable[[Any], str]] = {
    FLAG: lambda value: "t" if value else "f",
    WHOLE: str,
    REAL: repr,
    INSTANT: lambda value: value.isoformat(),
    TAGS: texts_array,
    BACKOFF: text,
}
_WRITE = tuple(_WRITERS.get(field.kind) for field in _OPTIONS)
_options = attrgetter(*(field.name for field in _OPTIONS))


@lru_cache(maxsize=256)  # a program enqueues the same few kinds of jobs again and again
def _texts(options: tuple[Any, ...]) -> tuple[str | None, ...]:
    return tuple(
        None if value is None or value == () else value if write is None else write(value)
        for write, value in zip(_WRITE, options, strict=True)
    )


def _shared(job: NewJob, now: datetime) -> tuple[str | None, ...]:
    """What jobs that are alike have in common, in the server's own notation."""
    at = now.isoformat()
    run_at = at if job.run_at is None else job.run_at.isoformat()
    is_due = "t" if (job.run_at or now) <= now else "f"
    return at, run_at, str(-job.priority), is_due, *_texts(_options(job))


def _lines(jobs: Sequence[NewJob], segment: int, has_tenants: bool, now: datetime) -> Iterator[bytes]:
    """The jobs as lines of COPY, some at a time; what neighbours share is written out once."""
    rest, end = None, ""
    own, middle = None, ""
    for start in range(0, len(jobs), LINES_AT_ONCE):
        lines = []
        for job in jobs[start : start + LINES_AT_ONCE]:
            if (others := _rest(job)) != rest:
                rest, end = others, "\t".join(["", *map(_field, _shared(job, now)), f"{segment}\n"])
            if (mine := (job.tenant, job.concurrency_key)) != own:
                lane = "" if has_tenants or _is_other(job) else None
                own, middle = mine, "\t".join(map(_field, (lane, *mine)))
            payload = "\\N" if _is_large(job) else _field(job.payload_json)
            lines.append(f"{job.id}\t{payload}\t{middle}{end}")
        yield "".join(lines).encode()


def _field(value: str | None) -> str:
    if value is None:
        return "\\N"
    if value.isprintable() and "\\" not in value:  # most are
        return value
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
