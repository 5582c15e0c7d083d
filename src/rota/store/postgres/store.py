"""The PostgreSQL store: each method is one statement, most of them a function in the schema ``rota``.

Owns the methods. Must never decide anything about a job, nor keep anything that another process could
not replace: see ``store/protocol.py`` for what each method means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from ...core.jobs.order import claim_order
from ...errors import StoreError, StoreUnavailable
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
    State,
    TurnResult,
)
from ..hints import HintHub
from ..protocol import CallerStore, Waker
from ..sql import external, external_kinds
from ..sql.within import ScriptedStore
from . import audit_queries, claims, health_checks, job_counts, job_pages, schedule_queries, schema
from . import rules as stored_rules
from .caller_schema import CallerSchema
from .claims import ClaimCursors
from .connections import Connections
from .history import History
from .inserts import Inserter, function_for, script
from .listener import Listener
from .rows import NOW, RECLAIMED_COLUMNS, attempt, claimed, document, instant, job, text
from .rows import ids as possible_ids
from .segment_checks import SegmentChecks
from .url import parse
from .waker import HintPublisher, PostgresWaker
from .within import PUT, PostgresScripts

_HEARTBEAT = f"""
SELECT t.now, h.lost, h.cancel FROM (SELECT {NOW} AS now) AS t, LATERAL
       rota.heartbeat(%s, CAST(%s AS json), CAST(%s AS json), CAST(%s AS json), %s, t.now) AS h
"""
_RECLAIM = f"SELECT {RECLAIMED_COLUMNS} FROM rota.reclaim(%s, %s, %s, {NOW})"
_ATTEMPTS = (
    "SELECT job, lease_token, attempt, outcome, worker, started_at, finished_at, error, logs, cost_cents "
    "FROM rota.attempts WHERE job = ANY (%s::uuid[]) ORDER BY lease_token"
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
    def __init__(self, url: str) -> None:
        self._given = url
        self._address = parse(url)
        shown = self._address.shown
        self._connections = Connections(self._address.conninfo, shown, self._address.connections)
        self.schema = schema.PostgresSchema(self._connections, shown)
        self._history = History(self._connections, shown)
        self._segments = SegmentChecks(self._connections, shown)
        self._places = ClaimCursors()
        self._hub = HintHub()
        self._publisher = HintPublisher(self._connections, self._hub)
        self._inserter = Inserter(self._connections, shown, self._publisher)
        self._caller_schema = CallerSchema(shown)
        self._listener: Listener | None = None
        if self._address.listen is not None:
            self._listener = Listener(self._address.listen, shown, self._connections, self._hub)

    @property
    def url(self) -> str:
        return self._address.shown

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            transactional=True,
            shared=True,
            durable=True,
            atomic_batch=True,
            wakes="none" if self._listener is None else "queue",
            searches=True,
            precision_s=1e-6,
        )

    @property
    def gauges(self) -> Mapping[str, float]:
        gauges = self._connections.gauges()
        if self._listener is not None:
            gauges["connections_listening"] = float(self._listener.is_connected)
            if (silent_s := self._listener.silent_s) is not None:
                gauges["listener_silent_s"] = silent_s
        return gauges

    # --- life ------------------------------------------------------------------------------------

    async def open(self) -> None:
        self._connections.reopen()
        await self.schema.require_current()

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._publisher.close()
        await self._connections.close()

    def abandon(self) -> None:
        if self._listener is not None:
            self._listener.abandon()
        self._publisher.abandon()
        self._connections.abandon()

    def for_another_loop(self) -> PostgresStore:
        return PostgresStore(self._given)

    def waker(self) -> Waker:
        if self._listener is not None:
            self._listener.start()
        return PostgresWaker(self._connections, self._hub)

    async def clock(self) -> datetime:
        ((now,),) = await self._connections.rows("SELECT clock_timestamp()")
        read: datetime = now
        return read

    # --- the hot path ----------------------------------------------------------------------------

    async def insert(
        self, jobs: Sequence[NewJob], now: datetime, *, retrying: bool = False
    ) -> Sequence[InsertResult]:
        return await self._inserter.insert(jobs, now, retrying)

    def insert_with(
        self, connection: Any, jobs: Sequence[NewJob], now: datetime | None, *, retrying: bool = False
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        on = external_kinds.caller(connection, "postgresql", self._address.shown)
        return external.run(self._caller_schema.check(function_for(jobs), script(jobs, now, retrying)), on)

    def within(self, connection: Any) -> CallerStore:
        on = external_kinds.caller(connection, "postgresql", self._address.shown)
        return ScriptedStore(
            PostgresScripts(),
            lambda script: external.run(self._caller_schema.check(PUT, script), on),
            on.is_async,
        )

    async def turn(
        self, settlements: Sequence[Settlement], request: ClaimRequest | None, now: datetime | None
    ) -> TurnResult:
        if not settlements and request is None:
            return TurnResult()
        loop = asyncio.get_running_loop()
        began = loop.time()
        since = None
        if request is None:
            statement, params = claims.turn(settlements, None, now)
        else:
            since = self._places.since(request, began)
            state, recent = self._places.state(request), self._places.recent(request)
            statement, params = claims.turn(settlements, request, now, since, state, recent)
        # A lost answer may have claimed jobs, which the worker has to find: so never send it twice.
        try:
            rows = await self._connections.rows(statement, params, repeatable=False, often=True)
        except StoreUnavailable as error:
            self._segments.on_failed_turn(error)
            raise
        # where the claim is shared between tenants, its own row comes last
        is_shared = request is not None and claims.is_shared(rows[-1])
        first = rows.pop(-1 if is_shared else 0)
        refused, woken, slots, next_due_at = first[:4]
        at = instant(first[4])
        jobs: list[Job] = []
        if request is not None:
            lease_until = at + timedelta(seconds=request.lease_s)
            jobs = [claimed(row, request.worker, lease_until, at) for row in rows]
            jobs.sort(key=claim_order)
            ended = loop.time()
            if is_shared:
                said = first[claims.PLACES], first[claims.STATE]
                self._places.note_shared(request, jobs, said, began, ended, front=since is None)
            else:
                self._places.note(request, jobs, began, ended, front=since is None)
        if slots:  # others could use what was freed
            unseen = [one for one in slots if not claims.could_use(request, first, len(jobs), one)]
            woken = [*(woken or ()), *unseen]
        self._publish_turn(settlements, woken)
        return TurnResult(refused=frozenset(refused or ()), jobs=jobs, next_due_at=next_due_at, at=at)

    def _publish_turn(self, settlements: Sequence[Settlement], woken: Sequence[str] | None) -> None:
        follow_up = [job.queue for settlement in settlements for job in settlement.then]
        self._publisher.publish({*follow_up, *(woken or ())}, jobs=len(follow_up))
        self._hub.publish((), {one.id for one in settlements if one.state is not State.QUEUED})

    async def heartbeat(self, heartbeat: Heartbeat, now: datetime | None) -> HeartbeatReply:
        params = (
            now,
            heartbeat.worker,
            heartbeat.document,
            text(heartbeat.leases) if heartbeat.leases else None,
            text(heartbeat.notes) if heartbeat.notes else None,
            heartbeat.lease_s,
        )
        ((at, lost, cancel),) = await self._connections.rows(_HEARTBEAT, params)
        return HeartbeatReply(at=at, lost=frozenset(lost or ()), cancel=frozenset(cancel or ()))

    async def reclaim(self, holder: str, lease_s: float, limit: int, now: datetime | None) -> Sequence[Job]:
        params = (holder, lease_s, limit, now)
        jobs = [job(row) for row in await self._connections.rows(_RECLAIM, params, repeatable=False)]
        if not jobs:  # else they come first
            await self._segments.check()
        return jobs

    # --- schedules -------------------------------------------------------------------------------

    async def put_schedules(self, schedules: Sequence[Schedule], now: datetime) -> Sequence[int | None]:
        return await schedule_queries.put(self._connections, schedules, now)

    async def delete_schedules(self, ids: Sequence[str]) -> Sequence[str]:
        return await schedule_queries.delete(self._connections, ids)

    async def schedules(self, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
        return await schedule_queries.page(self._connections, where, page)

    async def due_schedules(self, now: datetime | None, limit: int) -> DueSchedules:
        return await schedule_queries.due(self._connections, now, limit)

    async def fire(self, firings: Sequence[Firing], now: datetime | None) -> frozenset[str]:
        refused = await schedule_queries.fire(self._connections, firings, now)
        fired = (firing for firing in firings if firing.schedule.id not in refused)
        queues = [job.queue for firing in fired for job in firing.jobs]
        self._publisher.publish(set(queues), jobs=len(queues))
        return refused

    # --- operators -------------------------------------------------------------------------------

    async def edit(self, ids: Sequence[JobId], edit: Edit, now: datetime) -> Sequence[JobId]:
        if not (known := possible_ids(sorted(set(ids)))):
            return ()
        statement, params = _edit(edit, known, sorted(edit.touches), now)
        ((changed,),) = await self._connections.rows(statement, params)
        await self._publish_edit(edit, changed)
        return list(changed)

    async def _publish_edit(self, edit: Edit, changed: Sequence[JobId]) -> None:
        if edit.verb in ("retry", "move") and changed:
            rows = await self._connections.rows(
                "SELECT DISTINCT queue FROM rota.queued WHERE id = ANY (%s::uuid[])", (changed,)
            )
            self._publisher.publish({row[0] for row in rows}, jobs=len(changed))
        self._hub.publish((), changed)

    async def jobs(self, where: JobFilter, page: PageRequest) -> Page[Job]:
        return await job_pages.page(self._connections, where, page)

    async def attempts(self, job: JobId) -> Sequence[Attempt]:
        return [attempt(row) for row in await self._connections.rows(_ATTEMPTS, (possible_ids((job,)),))]

    async def survey(self, question: Question[Answer]) -> Answer:
        return await job_counts.answer(self._connections, question)

    async def put_rules(self, rules: Sequence[Rule], now: datetime | None) -> Sequence[int | None]:
        versions = await stored_rules.put(self._connections, rules, now)
        if any(version is not None for version in versions):  # more may be admitted now
            queues = await stored_rules.concerned_queues(self._connections, rules)
            self._publisher.publish(queues, jobs=stored_rules.WOKEN)
        return versions

    async def maintain(self, before: RetentionCutoffs, limit: int, now: datetime) -> PruneResult:
        jobs, entries = await self._history.prune(before.jobs, limit), 0
        if jobs < limit:
            jobs += await self._history.prune_kept(now, limit - jobs)
        if before.audit is not None:
            entries = await audit_queries.prune(self._connections, before.audit, limit)
        result = PruneResult(jobs=jobs, audit_entries=entries)
        if result.is_complete(limit):
            await self._history.upkeep(now)
            await stored_rules.prune(self._connections, now)
        return result

    async def check_health(self, now: datetime) -> Sequence[Finding]:
        return await health_checks.check_health(self._connections, self._address, now)

    # --- the audit log ---------------------------------------------------------------------------

    async def append_audit(self, entries: Sequence[AuditEntry]) -> None:
        await audit_queries.append(self._connections, entries)

    async def audit(self, where: AuditFilter, page: PageRequest) -> Page[AuditEntry]:
        return await audit_queries.page(self._connections, where, page)

    async def seal_audit(self, seal: AuditSeal, ids: Sequence[str]) -> bool:
        return await audit_queries.seal(self._connections, seal, ids)

    # --- small versioned documents ---------------------------------------------------------------

    async def put_document(
        self, kind: str, key: str, body: str, expected: int | None, now: datetime
    ) -> int | None:
        if expected:
            rows = await self._connections.rows(_PUT_OVER, (now, body, kind, key, expected), repeatable=False)
        else:
            statement = _PUT_ANY if expected is None else _PUT_NEW
            rows = await self._connections.rows(statement, (kind, key, now, body), repeatable=False)
        return rows[0][0] if rows else None

    async def documents(self, kind: str, key: str | None = None) -> Sequence[Document]:
        if key is None:
            rows = await self._connections.rows(f"{_DOCUMENT} ORDER BY key", (kind,))
        else:
            rows = await self._connections.rows(f"{_DOCUMENT} AND key = %s", (kind, key))
        return [document(row) for row in rows]

    async def delete_document(self, kind: str, key: str) -> bool:
        statement = "DELETE FROM rota.documents WHERE kind = %s AND key = %s RETURNING key"
        return bool(await self._connections.rows(statement, (kind, key)))


def _edit(edit: Edit, found: list[JobId], states: list[State], now: datetime) -> tuple[str, list[Any]]:
    """The statement of an edit and its parameters."""
    match edit.verb:
        case "cancel":
            statement = "SELECT rota.cancel_jobs(%s::uuid[], %s::text[], %s::json, %s, %s)"
            return statement, [found, states, edit.error_json, edit.expired_by, now]
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
