"""The verbs of the store on SQLite: each is one order to the writer or to a reader.

Owns the public face of the package. Must never hold policy, read a clock or let a ``sqlite3`` error
out. Any event loop of any thread may use one object.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import RotaError
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
from ..sql.external import caller, run
from ..sql.migrations import as_text
from . import (
    audit,
    claiming,
    counting,
    documents,
    editing,
    health_checks,
    inserting,
    listing,
    scheduling,
    settling,
)
from .connection import MIGRATIONS
from .engine import Engine
from .rows import instant, micros, some_instant, some_micros
from .statements import statement
from .url import parse, require_recent_sqlite
from .waker import SqliteWaker
from .writer import Transaction


class SqliteStore:
    """A store in one SQLite file, or in memory. Nothing is opened before the first use."""

    def __init__(self, url: str, *, engine: Engine | None = None) -> None:
        require_recent_sqlite()
        self._engine = engine or Engine(parse(url))
        self._url = url

    @property
    def can(self) -> Capabilities:
        shared = self._engine.address.path is not None
        return Capabilities(transactional=shared, push=True, shared=shared)

    @property
    def url(self) -> str:
        return self._url

    # --- life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._engine.enter(self)
        await self._engine.write(_nothing)

    async def close(self) -> None:
        await self._engine.leave(self)

    def beside(self) -> SqliteStore:
        return SqliteStore(self._url, engine=self._engine)

    def waker(self) -> SqliteWaker:
        return self._engine.waker()

    async def migrate(self) -> Sequence[str]:
        return await self._engine.migrate()

    async def pending(self) -> Sequence[str]:
        return await self._engine.pending()

    def migration_sql(self) -> str:
        return as_text(MIGRATIONS)

    async def clock(self) -> datetime:
        return instant(await self._engine.read(_clock))

    # --- the hot path ----------------------------------------------------------------------------

    async def insert(
        self, jobs: Sequence[NewJob], now: datetime, *, again: bool = False
    ) -> Sequence[InsertResult]:
        # live and final jobs share a table, so an id is never stored twice, again or not
        return await self._engine.write(inserting.Insertion(jobs, micros(now)))

    def insert_with(
        self, connection: Any, jobs: Sequence[NewJob], now: datetime | None
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        script = inserting.script_for_caller(jobs, some_micros(now), self._url)
        return run(script, caller(connection))

    async def turn(
        self, changes: Sequence[Settlement], want: ClaimRequest | None, now: datetime
    ) -> TurnResult:
        at = micros(now)

        def work(transaction: Transaction) -> TurnResult:
            refused = settling.settle(transaction, changes, at)
            jobs = () if want is None else claiming.claim(transaction, want, at)
            return TurnResult(
                refused=refused, jobs=jobs, next_due_at=some_instant(claiming.next_due(transaction))
            )

        # A claim alone need not outlive a power cut: whoever holds it does not, on the same machine.
        return await self._engine.write(work, durable=bool(changes))

    async def claim(self, want: ClaimRequest, now: datetime) -> Sequence[Job]:
        return (await self.turn((), want, now)).jobs

    async def settle(self, changes: Sequence[Settlement], now: datetime) -> frozenset[JobId]:
        return (await self.turn(changes, None, now)).refused

    async def beat(self, pulse: Heartbeat, now: datetime) -> HeartbeatReply:
        at = micros(now)
        return await self._engine.write(lambda transaction: settling.beat(transaction, pulse, at))

    async def reclaim(self, holder: str, lease_s: float, limit: int, now: datetime) -> Sequence[Job]:
        at = micros(now)
        return await self._engine.write(
            lambda transaction: claiming.reclaim(transaction, holder, lease_s, limit, at)
        )

    # --- schedules -------------------------------------------------------------------------------

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        at = micros(now)
        return await self._engine.write(lambda transaction: scheduling.put(transaction, schedules, at))

    async def drop_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        return await self._engine.write(lambda transaction: scheduling.drop(transaction, ids))

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        return await self._engine.read(lambda connection: scheduling.schedules(connection, where, page))

    async def due_schedules(self, now: datetime, limit: int) -> DueSchedules:
        at = micros(now)
        return await self._engine.read(lambda connection: scheduling.due(connection, at, limit))

    async def fire(self, firings: Sequence[Firing], now: datetime) -> frozenset[str]:
        at = micros(now)
        return await self._engine.write(lambda transaction: scheduling.fire(transaction, firings, at))

    async def busy(self, schedules: Sequence[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        return await self._engine.read(lambda connection: scheduling.busy(connection, schedules))

    async def last_runs(self, schedules: Sequence[tuple[str, str]]) -> Sequence[Job]:
        return await self._engine.read(lambda connection: listing.last_runs(connection, schedules))

    # --- operators -------------------------------------------------------------------------------

    async def edit(self, where: JobFilter, edit: Edit, limit: int, now: datetime) -> Sequence[JobId]:
        at = micros(now)
        return await self._engine.write(lambda transaction: editing.edit(transaction, where, edit, limit, at))

    async def jobs(self, where: JobFilter, page: PageRequest) -> Page[Job]:
        return await self._engine.read(lambda connection: listing.jobs(connection, where, page))

    async def attempts(self, job: JobId) -> Sequence[Attempt]:
        return await self._engine.read(lambda connection: listing.attempts(connection, job))

    async def overview(self, now: datetime, tenant: str | None = None) -> Overview:
        at = micros(now)
        if tenant is None:
            return await self._engine.read(lambda connection: counting.overview(connection, at))
        return await self._engine.read(lambda connection: counting.overview_of(connection, tenant, at))

    async def count(self, where: JobFilter, most: int) -> int:
        return await self._engine.read(lambda connection: listing.count(connection, where, most))

    async def ahead(self, job: Job, most: int) -> int:
        return await self._engine.read(lambda connection: listing.ahead(connection, job, most))

    async def tenants(self, now: datetime, most: int) -> Mapping[str, QueueDepth]:
        at = micros(now)
        return await self._engine.read(lambda connection: counting.tenants(connection, at, most))

    async def activity(self, since: datetime, until: datetime) -> Sequence[ActivityCount]:
        span = micros(since), micros(until)
        return await self._engine.read(lambda connection: counting.activity(connection, *span))

    async def prune(self, before: Mapping[State, datetime], limit: int, now: datetime) -> int:
        return await self._engine.write(lambda transaction: editing.prune(transaction, before, limit))

    async def upkeep(self, now: datetime) -> None:
        at = micros(now)
        await self._engine.write(lambda transaction: counting.fold(transaction, at))

    async def examine(self, now: datetime) -> Sequence[Finding]:
        address = self._engine.address
        schema = await health_checks.schema(self)
        try:
            found = await self._engine.read(lambda connection: health_checks.examine(connection, address))
        except RotaError as error:
            found = [health_checks.unreachable(error)]
        return [schema, *found]

    def gauges(self) -> Mapping[str, float]:
        return self._engine.backlogs()

    # --- the audit log ---------------------------------------------------------------------------

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._engine.write(lambda transaction: audit.append(transaction, entries))

    async def audit(self, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        return await self._engine.read(lambda connection: audit.audit(connection, where, page))

    async def prune_audit(self, before: datetime, limit: int) -> int:
        return await self._engine.write(lambda transaction: audit.prune(transaction, before, limit))

    # --- small versioned documents ---------------------------------------------------------------

    async def put(self, kind: str, key: str, body: str, expected: int | None, now: datetime) -> int | None:
        at = micros(now)
        return await self._engine.write(
            lambda transaction: documents.put(transaction, kind, key, body, expected, at)
        )

    async def get(self, kind: str, key: str) -> Document | None:
        return await self._engine.read(lambda connection: documents.get(connection, kind, key))

    async def find(self, kind: str) -> Sequence[Document]:
        return await self._engine.read(lambda connection: documents.find(connection, kind))

    async def drop(self, kind: str, key: str) -> bool:
        return await self._engine.write(lambda transaction: documents.drop(transaction, kind, key))


def _nothing(transaction: Transaction) -> None:
    """An order that only makes the writer connect."""


def _clock(connection: sqlite3.Connection) -> int:
    return int(connection.execute(statement("clock")).fetchone()[0])
