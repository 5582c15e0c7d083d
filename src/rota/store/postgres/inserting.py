"""Storing jobs: singles that share a commit, batches that stream.

Owns which road an insert takes. Must never change what a job says, nor lose an answer: each caller
gets the outcomes of its own jobs, in its own order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec
import psycopg
from psycopg import errors

from ...errors import StoreError
from ...model import Inserted, NewJob
from ..sql.callers import Script
from .connections import Connections
from .faults import is_data, translated
from .rows import inserted, jobs_text, text

STREAM_FROM = 50  # jobs; fewer are quicker as one statement
TOGETHER = 1000  # jobs of waiting callers that share one statement
PLAIN = "insert_plain"

# The server answers only for jobs that were not simply created.
_INSERT = "SELECT ord, id, outcome, state FROM rota.{}(CAST(%s AS json), %s, %s, false)"
_INSERT_WITH = (
    "SELECT ord, CAST(id AS text), outcome, state FROM rota.{}("
    "CAST(CAST(? AS text) AS json), CAST(CAST(? AS text) AS timestamptz), false, true)"
)
_COPY = (
    "COPY rota.queued (id, created_at, run_at, rank, max_attempts, auto_remove, tenant, queue, task, origin, "
    "payload, timeout, scheduled_for, schedule, tags, parent, backoff, due) FROM STDIN"
)
# Walks the few running jobs rather than the many new ones.
_ALSO_RUNNING = """
SELECT 1 FROM rota.running AS r WHERE EXISTS (SELECT FROM rota.queued AS q WHERE q.id = r.id) LIMIT 1
"""


def script(jobs: Sequence[NewJob], now: datetime | None) -> Script[Sequence[Inserted]]:
    """The insert on a caller's own connection: one statement that every driver can send."""
    rows = yield _INSERT_WITH.format(_road(jobs)), (jobs_text(jobs), None if now is None else now.isoformat())
    return inserted(jobs, rows)


class _Waiting(msgspec.Struct, eq=False):
    jobs: Sequence[NewJob]
    now: datetime
    answer: asyncio.Future[Sequence[Inserted]]


class Inserter:
    def __init__(self, connections: Connections, shown: str) -> None:
        self._connections = connections
        self._shown = shown
        self._busy = False
        self._waiting: list[_Waiting] = []
        self._flushing: set[asyncio.Task[None]] = set()

    async def insert(self, jobs: Sequence[NewJob], now: datetime, again: bool) -> Sequence[Inserted]:
        if not jobs:
            return ()
        if again:
            return await self._statement(jobs, now, again)
        if len(jobs) > STREAM_FROM:
            return await self._batch(jobs, now)
        if self._busy:
            return await self._join(jobs, now)
        self._busy = True
        try:
            return await self._statement(jobs, now, again)
        finally:
            self._next()

    # --- one commit for many callers ---------------------------------------------------------

    async def _join(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[Inserted]:
        """Wait for the insert under way, then be stored together with all who wait as well."""
        waiting = _Waiting(jobs, now, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        return await waiting.answer

    def _next(self) -> None:
        group, size = [], 0
        while self._waiting and size < TOGETHER:
            one = self._waiting.pop(0)
            if not one.answer.done():  # a caller that gave up before anything was sent
                group.append(one)
                size += len(one.jobs)
        self._busy = bool(group)
        if group:
            task = asyncio.ensure_future(self._flush(group))
            self._flushing.add(task)
            task.add_done_callback(self._flushing.discard)

    async def _flush(self, group: Sequence[_Waiting]) -> None:
        try:
            await self._store(group)
        except BaseException as error:
            for one in group:
                _refuse(one, error)
            raise
        finally:
            self._next()

    async def _store(self, group: Sequence[_Waiting]) -> None:
        jobs = [job for one in group for job in one.jobs]
        try:
            told = await self._statement(jobs, max(one.now for one in group), False)
        except StoreError as error:
            if len(group) == 1 or error.__cause__ is None or not is_data(error.__cause__):
                for one in group:
                    _refuse(one, error)
                return
            for one in group:  # one of them is at fault; the others must not suffer
                await self._store([one])
            return
        at = 0
        for one in group:
            _answer(one, told[at : at + len(one.jobs)])
            at += len(one.jobs)

    async def _statement(self, jobs: Sequence[NewJob], now: datetime, again: bool) -> Sequence[Inserted]:
        statement = _INSERT.format(_road(jobs))
        rows = await self._connections.rows(statement, (jobs_text(jobs), now, again), repeatable=again)
        return inserted(jobs, rows)

    # --- batches -----------------------------------------------------------------------------

    async def _batch(self, jobs: Sequence[NewJob], now: datetime) -> Sequence[Inserted]:
        if _road(jobs) == PLAIN and await self._stream(jobs, now):
            return inserted(jobs, ())
        return await self._statement(jobs, now, False)

    async def _stream(self, jobs: Sequence[NewJob], now: datetime) -> bool:
        """False: some id is live already, and nothing has been stored."""
        try:
            async with self._connections.borrow() as connection, connection.transaction() as transaction:
                async with connection.cursor() as cursor:
                    async with cursor.copy(_COPY) as copy:
                        for job in jobs:
                            await copy.write_row(_copied(job, now))
                    found = await (await cursor.execute(_ALSO_RUNNING)).fetchone()
                if found is not None:
                    raise psycopg.Rollback(transaction)
                return True
            return False
        except errors.UniqueViolation:
            return False
        except psycopg.Error as error:
            raise translated(error, self._shown) from error


def _road(jobs: Sequence[NewJob]) -> str:
    """The function that stores them: keys cost only those who use them."""
    return PLAIN if all(job.key is None for job in jobs) else "insert_jobs"


def _answer(one: _Waiting, told: Sequence[Inserted]) -> None:
    if not one.answer.done():
        one.answer.set_result(told)


def _refuse(one: _Waiting, error: BaseException) -> None:
    if not one.answer.done():
        one.answer.set_exception(error)


def _copied(job: NewJob, now: datetime) -> tuple[object, ...]:
    run_at = job.run_at or now
    return (
        job.id,
        now,
        run_at,
        -job.priority,
        job.max_attempts,
        job.auto_remove,
        job.tenant,
        job.queue,
        job.task,
        job.origin,
        job.payload_json,
        job.timeout,
        job.scheduled_for,
        job.schedule,
        list(job.tags) if job.tags else None,
        job.parent,
        None if job.backoff is None else text(job.backoff),
        run_at <= now,
    )
