"""The PostgreSQL store: each verb is one statement, most of them a function in the schema ``rota``.

Owns the verbs. Must never decide anything about a job, nor keep anything that another process could
not take over: see ``store/protocol.py`` for what each verb means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ...errors import StoreError
from ...model import (
    ActivityCount,
    Attempt,
    AuditEntry,
    AuditFilter,
    Capabilities,
    ClaimRequest,
    Document,
    DueSchedules,
    Edit,
    Finding,
    Firing,
    Heartbeat,
    HeartbeatReply,
    InsertResult,
    Job,
    JobFilter,
    JobId,
    NewJob,
    Overview,
    Page,
    PageRequest,
    QueueDepth,
    Schedule,
    ScheduleFilter,
    Settlement,
    State,
    TurnResult,
)
from ..protocol import Waker
from ..sql import external, migrations
from . import auditing, counting, health_checks, reading, scheduling, schema
from .claiming import ClaimCursors, asked
from .connections import Connections
from .history import History
from .inserting import Inserter, script
from .listener import Listener
from .rows import JOB_COLUMNS, attempt, claim_order, claimed, document, ended, ids, job, text
from .url import parse
from .waker import HintHub, HintPublisher, PostgresWaker

_TURN = (
    "SELECT * FROM rota.turn("
    "CAST(%s AS uuid[]), CAST(%s AS bigint[]), CAST(%s AS bigint[]), CAST(%s AS json), CAST(%s AS json), "
    "%s, %s, %s, CAST(%s AS text[]), CAST(%s AS text[]), CAST(%s AS text[]), CAST(%s AS text[]), "
    "CAST(%s AS json), %s)"
)
_BEAT = "SELECT lost, cancel FROM rota.beat(%s, CAST(%s AS json), CAST(%s AS json), CAST(%s AS json), %s, %s)"
_RECLAIM = (
    "SELECT "
    + JOB_COLUMNS.replace("state", "'running'")
    .replace("priority", "-rank")
    .replace("output", "NULL")
    .replace("finished_at", "NULL")
    + " FROM rota.reclaim(%s, %s, %s, %s)"
)
_ATTEMPTS = (
    "SELECT job, token, attempt, outcome, worker, started_at, finished_at, error, logs, cost_cents "
    "FROM rota.attempts WHERE job = ANY (%s::uuid[]) ORDER BY token"
)
_DOCUMENT = "SELECT kind, key, version, updated_at, body FROM rota.documents WHERE kind = %s"
_PUT_ANY = """
INSERT INTO rota.documents AS d (kind, key, version, updated_at, body)
VALUES (%s, %s, 1, %s, CAST(%s AS json))
ON CONFLICT (kind, key) DO UPDATE
   SET version = d.version + 1, updated_at = excluded.updated_at, body = excluded.body
RETURNING version
"""
_PUT_NEW = """
INSERT INTO rota.documents (kind, key, version, updated_at, body) VALUES (%s, %s, 1, %s, CAST(%s AS json))
ON CONFLICT DO NOTHING RETURNING version
"""
_PUT_OVER = """
UPDATE rota.documents SET version = version + 1, updated_at = %s, body = CAST(%s AS json)
 WHERE kind = %s AND key = %s AND version = %s RETURNING version
"""


class PostgresStore:
    can = Capabilities(transactional=True, push=True, shared=True)

    def __init__(self, url: str) -> None:
        self._given = url
        self._address = parse(url)
        shown = self._address.shown
        self._connections = Connections(self._address.conninfo, shown)
        self._history = History(self._connections, shown)
        self._places = ClaimCursors()
        self._board = HintHub()
        self._herald = HintPublisher(self._connections, self._board)
        self._inserter = Inserter(self._connections, shown, self._herald)
        self._listener: Listener | None = None
        if self._address.listen is not None:
            self._listener = Listener(self._address.listen, shown, self._connections, self._board)

    @property
    def url(self) -> str:
        return self._address.shown

    # --- life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._connections.reopen()
        version = await schema.version(self._connections)
        migrations.require_current(schema.MIGRATIONS, version, self.url)

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._herald.close()
        await self._connections.close()

    def beside(self) -> PostgresStore:
        return PostgresStore(self._given)

    def waker(self) -> Waker:
        if self._listener is not None:
            self._listener.start()
        return PostgresWaker(self._connections, self._board)

    async def migrate(self) -> Sequence[str]:
        return await schema.migrate(self._connections, self.url)

    async def pending(self) -> Sequence[str]:
        version = await schema.version(self._connections)
        return [one.name for one in migrations.pending(schema.MIGRATIONS, version, self.url)]

    def migration_sql(self) -> str:
        return migrations.as_text(schema.MIGRATIONS)

    async def clock(self) -> datetime:
        ((now,),) = await self._connections.rows("SELECT clock_timestamp()")
        instant: datetime = now
        return instant

    # --- the hot path ----------------------------------------------------------------------------

    async def insert(
        self, jobs: Sequence[NewJob], now: datetime, *, again: bool = False
    ) -> Sequence[InsertResult]:
        return await self._inserter.insert(jobs, now, again)

    def insert_with(
        self, connection: Any, jobs: Sequence[NewJob], now: datetime | None
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        return external.run(script(jobs, now), external.caller(connection))

    async def turn(
        self, changes: Sequence[Settlement], want: ClaimRequest | None, now: datetime
    ) -> TurnResult:
        if not changes and want is None:
            return TurnResult()
        loop = asyncio.get_running_loop()
        began = loop.time()
        since = None if want is None else self._places.since(want, began)
        # A lost answer may have claimed jobs: those wait for their lease to run out, so never send it twice.
        told, *rows = await self._connections.rows(
            _TURN, (*ended(changes, now), *asked(want, now, since), now), repeatable=False, often=True
        )
        refused, woken, next_due_at = told[:3]
        self._tell(changes, woken)
        jobs: list[Job] = []
        if want is not None:
            lease_until = now + timedelta(seconds=want.lease_s)
            jobs = [claimed(row, want.worker, lease_until, now) for row in rows]
            jobs.sort(key=claim_order)
            self._places.note(want, jobs, began, loop.time(), front=since is None)
        return TurnResult(refused=frozenset(refused or ()), jobs=jobs, next_due_at=next_due_at)

    def _tell(self, changes: Sequence[Settlement], woken: Sequence[str] | None) -> None:
        queues = {job.queue for change in changes for job in change.then}
        queues.update(woken or ())
        self._herald.tell(queues)
        for change in changes:
            if change.state is not State.QUEUED:
                self._board.heard_end(change.id)

    async def claim(self, want: ClaimRequest, now: datetime) -> Sequence[Job]:
        return (await self.turn((), want, now)).jobs

    async def settle(self, changes: Sequence[Settlement], now: datetime) -> frozenset[JobId]:
        return (await self.turn(changes, None, now)).refused

    async def beat(self, pulse: Heartbeat, now: datetime) -> HeartbeatReply:
        params = (
            pulse.worker,
            pulse.document,
            text(pulse.leases) if pulse.leases else None,
            text(pulse.notes) if pulse.notes else None,
            now + timedelta(seconds=pulse.lease_s),
            now,
        )
        ((lost, cancel),) = await self._connections.rows(_BEAT, params)
        return HeartbeatReply(lost=frozenset(lost or ()), cancel=frozenset(cancel or ()))

    async def reclaim(self, holder: str, lease_s: float, limit: int, now: datetime) -> Sequence[Job]:
        params = (holder, now + timedelta(seconds=lease_s), limit, now)
        return [job(row) for row in await self._connections.rows(_RECLAIM, params, repeatable=False)]

    # --- schedules -------------------------------------------------------------------------------

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        return await scheduling.put(self._connections, schedules, now)

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        return await scheduling.drop(self._connections, ids)

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        return await scheduling.page(self._connections, where, page)

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        return await scheduling.due(self._connections, now, limit)

    async def fire(self, firings: Sequence[Firing], now: datetime) -> frozenset[str]:
        refused = await scheduling.fire(self._connections, firings, now)
        fired = (firing for firing in firings if firing.schedule.id not in refused)
        self._herald.tell({job.queue for firing in fired for job in firing.jobs})
        return refused

    async def busy(self, schedules: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        return await scheduling.busy(self._connections, schedules)

    async def last_runs(self, schedules: Sequence[tuple[str, str]]) -> Sequence[Job]:
        return await reading.last_runs(self._connections, schedules)

    # --- operators -------------------------------------------------------------------------------

    async def edit(self, where: JobFilter, edit: Edit, limit: int, now: datetime) -> Sequence[JobId]:
        found, states = await reading.matching(self._connections, where, edit.touches, limit)
        if not found:
            return ()
        statement, params = _edit(edit, found, states, now)
        ((touched,),) = await self._connections.rows(statement, params)
        await self._told_of_edit(edit, touched)
        return list(touched)

    async def _told_of_edit(self, edit: Edit, touched: Sequence[JobId]) -> None:
        if edit.verb in ("retry", "move") and touched:
            rows = await self._connections.rows(
                "SELECT DISTINCT queue FROM rota.queued WHERE id = ANY (%s::uuid[])", (touched,)
            )
            self._herald.tell(row[0] for row in rows)
        for one in touched:
            self._board.heard_end(one)

    async def jobs(self, where: JobFilter, page: PageRequest) -> Page[Job]:
        return await reading.page(self._connections, where, page)

    async def attempts(self, job: JobId) -> Sequence[Attempt]:
        return [attempt(row) for row in await self._connections.rows(_ATTEMPTS, (ids((job,)),))]

    async def overview(self, now: datetime, tenant: str | None = None) -> Overview:
        return await counting.overview(self._connections, now, tenant)

    async def count(self, where: JobFilter, most: int) -> int:
        return await reading.count(self._connections, where, most)

    async def ahead(self, job: Job, most: int) -> int:
        return await counting.ahead(self._connections, job, most)

    async def tenants(self, now: datetime, most: int) -> Mapping[str, QueueDepth]:
        return await counting.tenants(self._connections, now, most)

    async def activity(self, since: datetime, until: datetime) -> Sequence[ActivityCount]:
        return await counting.activity(self._connections, since, until)

    async def prune(self, before: Mapping[State, datetime], limit: int, now: datetime) -> int:
        return await self._history.prune(before, limit)

    async def upkeep(self, now: datetime) -> None:
        await self._history.upkeep(now)

    async def examine(self, now: datetime) -> Sequence[Finding]:
        return await health_checks.examine(self._connections, self._address, now)

    def gauges(self) -> Mapping[str, float]:
        return self._connections.gauges()

    # --- the audit log ---------------------------------------------------------------------------

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        await auditing.append(self._connections, entries)

    async def audit(self, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        return await auditing.page(self._connections, where, page)

    async def prune_audit(self, before: datetime, limit: int) -> int:
        return await auditing.prune(self._connections, before, limit)

    # --- small versioned documents ---------------------------------------------------------------

    async def put(self, kind: str, key: str, body: str, expected: int | None, now: datetime) -> int | None:
        if expected:
            rows = await self._connections.rows(_PUT_OVER, (now, body, kind, key, expected), repeatable=False)
        else:
            statement = _PUT_ANY if expected is None else _PUT_NEW
            rows = await self._connections.rows(statement, (kind, key, now, body), repeatable=False)
        return rows[0][0] if rows else None

    async def get(self, kind: str, key: str) -> Document | None:
        rows = await self._connections.rows(f"{_DOCUMENT} AND key = %s", (kind, key))
        return document(rows[0]) if rows else None

    async def find(self, kind: str) -> Sequence[Document]:
        return [document(row) for row in await self._connections.rows(f"{_DOCUMENT} ORDER BY key", (kind,))]

    async def drop(self, kind: str, key: str) -> bool:
        statement = "DELETE FROM rota.documents WHERE kind = %s AND key = %s RETURNING key"
        return bool(await self._connections.rows(statement, (kind, key)))


def _edit(edit: Edit, found: list[JobId], states: list[State], now: datetime) -> tuple[str, list[Any]]:
    """The statement of an edit and its parameters."""
    match edit.verb:
        case "cancel":
            statement = "SELECT rota.cancel_jobs(%s::uuid[], %s::text[], %s::json, %s)"
            return statement, [found, states, edit.error_json, now]
        case "retry":
            statement = "SELECT rota.retry_jobs(%s::uuid[], %s::text[], %s, %s)"
            return statement, [found, states, edit.run_at, now]
        case "move":
            rank = None if edit.priority is None else -edit.priority
            statement = "SELECT rota.move_jobs(%s::uuid[], %s, %s, %s, %s)"
            return statement, [found, edit.run_at, rank, edit.queue, now]
        case "delete":
            return "SELECT rota.delete_jobs(%s::uuid[], %s::text[])", [found, states]
    raise StoreError(f"unknown edit {edit.verb!r}: use one made in core/lifecycle.py")
