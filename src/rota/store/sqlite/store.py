"""The methods of the store on SQLite: each is one call to the writer or to a reader.

Owns the public face of the package. Must never hold policy or let a ``sqlite3`` error out. Any
event loop of any thread may use one object.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Any

from ...errors import ConfigError, RotaError
from ...model import (
    Answer,
    Attempt,
    AuditEntry,
    AuditFilter,
    AuditSeal,
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
    Page,
    PageRequest,
    PruneResult,
    Question,
    RetentionCutoffs,
    Rule,
    Schedule,
    ScheduleFilter,
    Settlement,
    TurnResult,
)
from ..protocol import CallerStore
from ..sql.external import ExternalConnection, run
from ..sql.external_kinds import caller
from ..sql.within import ScriptedStore
from . import (
    audit,
    claims,
    documents,
    expenses,
    health_checks,
    inserts,
    job_counts,
    job_edits,
    job_pages,
    schedule_queries,
    settlement_writes,
)
from . import rules as stored_rules
from .engine import Engine, SqliteSchema
from .machine_clock import decided, machine_micros
from .rows import instant, micros, some_instant, some_micros
from .url import parse, require_recent_sqlite
from .waker import SqliteWaker
from .within import SqliteScripts
from .writer import Transaction


class SqliteStore:
    """A store in one SQLite file, or in memory. Nothing is opened before the first use."""

    def __init__(self, url: str, *, engine: Engine | None = None) -> None:
        require_recent_sqlite()
        self._engine = engine or Engine(parse(url))
        self._url = url

    @property
    def url(self) -> str:
        return self._url

    @property
    def capabilities(self) -> Capabilities:
        address = self._engine.address
        shared = address.path is not None
        return Capabilities(
            transactional=shared,
            shared=shared,
            durable=shared and address.synchronous == "full",
            atomic_batch=True,
            wakes="queue" if shared else "none",
            searches=True,
            precision_s=1e-6,
        )

    @property
    def schema(self) -> SqliteSchema:
        return self._engine.schema

    @property
    def gauges(self) -> Mapping[str, float]:
        return self._engine.backlogs()

    # --- life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._engine.enter(self)
        await self._engine.write(_nothing)

    async def close(self) -> None:
        await self._engine.leave(self)

    def abandon(self) -> None:
        self._engine.abandon(self)

    def for_another_loop(self) -> SqliteStore:
        return SqliteStore(self._url, engine=self._engine)

    def waker(self) -> SqliteWaker:
        return self._engine.waker()

    async def clock(self) -> datetime:
        return instant(await self._engine.read(_clock))

    # --- the hot path ----------------------------------------------------------------------------

    async def insert(
        self, jobs: Sequence[NewJob], now: datetime, *, retrying: bool = False
    ) -> Sequence[InsertResult]:
        # live and final jobs share a table, so an id is never stored twice, retrying or not
        return await self._engine.insert(jobs, micros(now))

    def insert_with(
        self, connection: Any, jobs: Sequence[NewJob], now: datetime | None, *, retrying: bool = False
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        script = inserts.script_for_caller(jobs, some_micros(now), self._url)
        return run(script, self._caller(connection))

    def within(self, connection: Any) -> CallerStore:
        scripts, on = SqliteScripts(self._url), self._caller(connection)
        return ScriptedStore(scripts, lambda script: run(scripts.check(script), on), on.is_async)

    def _caller(self, connection: Any) -> ExternalConnection:
        found = caller(connection, "sqlite", self._url)
        if self._engine.address.path is None:  # the job would be stored, but in another database
            raise ConfigError(
                f"connection= leads to another database than {self._url}, where the jobs of this app are: "
                "no connection of yours can lead into memory; give the app the file that you connect to, "
                'in tests with override(app, "sqlite:///test.db"), in Django\'s with "TEST": {"NAME": …}'
            )
        return found

    async def turn(
        self, settlements: Sequence[Settlement], request: ClaimRequest | None, now: datetime | None
    ) -> TurnResult:
        def work(transaction: Transaction) -> TurnResult:
            at, memory = decided(now), self._engine.memory
            freed = claims.freed_by(transaction, settlements, memory)
            refused = settlement_writes.settle(transaction, settlements, at)
            if request is None:
                claimed = claims.Claimed()
                if memory.is_holding or memory.is_ruled:  # someone else may have what a slot is free for now
                    transaction.ready.update([one.queue for one in settlements])
            else:
                claimed = claims.claim(transaction, request, at, memory, freed)
            next_due_at = some_instant(claims.next_due(transaction, claimed))
            return TurnResult(refused=refused, jobs=claimed.jobs, next_due_at=next_due_at, at=instant(at))

        # A claim alone need not survive a power cut: its holder, on the same machine, does not.
        return await self._engine.write(work, durable=bool(settlements))

    async def heartbeat(self, heartbeat: Heartbeat, now: datetime | None) -> HeartbeatReply:
        return await self._engine.write(
            lambda transaction: settlement_writes.beat(transaction, heartbeat, decided(now))
        )

    async def reclaim(self, holder: str, lease_s: float, limit: int, now: datetime | None) -> Sequence[Job]:
        def work(transaction: Transaction) -> Sequence[Job]:
            if self._engine.passes_rescue_over():
                return ()
            return claims.reclaim(transaction, holder, lease_s, limit, decided(now))

        return await self._engine.write(work)

    # --- schedules -------------------------------------------------------------------------------

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        at = micros(now)
        return await self._engine.write(lambda transaction: schedule_queries.put(transaction, schedules, at))

    async def delete_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        return await self._engine.write(lambda transaction: schedule_queries.delete(transaction, ids))

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        return await self._engine.read(lambda connection: schedule_queries.schedules(connection, where, page))

    async def due_schedules(self, now: datetime | None, limit: int) -> DueSchedules:
        return await self._engine.read(
            lambda connection: schedule_queries.due(connection, decided(now), limit)
        )

    async def fire(self, firings: Sequence[Firing], now: datetime | None) -> frozenset[str]:
        return await self._engine.write(
            lambda transaction: schedule_queries.fire(transaction, firings, decided(now))
        )

    # --- operators -------------------------------------------------------------------------------

    async def edit(self, ids: Sequence[JobId], edit: Edit, now: datetime) -> Sequence[JobId]:
        at = micros(now)
        return await self._engine.write(lambda transaction: job_edits.edit(transaction, ids, edit, at))

    async def jobs(self, where: JobFilter, page: PageRequest) -> Page[Job]:
        return await self._engine.read(lambda connection: job_pages.jobs(connection, where, page))

    async def attempts(self, job: JobId) -> Sequence[Attempt]:
        return await self._engine.read(lambda connection: job_pages.attempts(connection, job))

    async def survey(self, question: Question[Answer]) -> Answer:
        return await self._engine.read(lambda connection: job_counts.answer(connection, question))

    async def put_rules(self, rules: Sequence[Rule], now: datetime | None) -> Sequence[int | None]:
        return await self._engine.write(
            lambda transaction: stored_rules.put(transaction, rules, decided(now))
        )

    async def maintain(self, before: RetentionCutoffs, limit: int, now: datetime) -> PruneResult:
        at = micros(now)
        jobs = await self._engine.write(lambda transaction: job_edits.prune(transaction, before.jobs, limit))
        if left := limit - jobs:
            jobs += await self._engine.write(lambda one: job_edits.prune_kept(one, at, left))
        cutoff, entries = before.audit, 0
        if cutoff is not None:
            entries = await self._engine.write(
                lambda transaction: audit.prune(transaction, cutoff, limit, now)
            )
        result = PruneResult(jobs=jobs, audit_entries=entries)
        if result.is_complete(limit):
            await self._engine.write(lambda transaction: job_edits.prune_keys(transaction, at))
            await self._engine.write(lambda transaction: stored_rules.prune(transaction, at))
            await self._engine.write(lambda transaction: job_counts.fold(transaction, at))
            await self._engine.write(lambda transaction: expenses.prune(transaction, at))
        return result

    async def check_health(self, now: datetime) -> Sequence[Finding]:
        address = self._engine.address
        schema_finding = await health_checks.check_schema(self.schema)
        try:
            found = await self._engine.read(
                lambda connection: health_checks.check_health(connection, address)
            )
        except RotaError as error:
            found = [health_checks.unreachable(error)]
        return [schema_finding, *found]

    # --- the audit log ---------------------------------------------------------------------------

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        await self._engine.write(lambda transaction: audit.append(transaction, entries))

    async def audit(self, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        return await self._engine.read(lambda connection: audit.audit(connection, where, page))

    async def seal_audit(self, seal: AuditSeal, ids: Sequence[str]) -> bool:
        return await self._engine.write(lambda transaction: audit.seal(transaction, seal, ids))

    # --- small versioned documents ---------------------------------------------------------------

    async def put_document(
        self, kind: str, key: str, body: str, expected: int | None, now: datetime
    ) -> int | None:
        at = micros(now)
        return await self._engine.write(
            lambda transaction: documents.put(transaction, kind, key, body, expected, at)
        )

    async def documents(self, kind: str, key: str | None = None) -> Sequence[Document]:
        return await self._engine.read(lambda connection: documents.find(connection, kind, key))

    async def delete_document(self, kind: str, key: str) -> bool:
        return await self._engine.write(lambda transaction: documents.delete(transaction, kind, key))


def _nothing(transaction: Transaction) -> None:
    """Work that only makes the writer connect."""


def _clock(connection: sqlite3.Connection) -> int:
    return machine_micros()
