"""Reading jobs: filters, pages, how many match.

Owns the SQL of a JobFilter. Must never write. Pages go by id, which each of the three tables has an
index for, so a page costs the same wherever it lies.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

from psycopg import errors

from ...core.jobs.order import claim_order
from ...errors import OptionError
from ...model import FINAL, Job, JobFilter, Page, PageRequest, State
from .. import cursors
from ..sql.fields import COMPARED, ID
from .connections import Connections
from .rows import BRIEF_COLUMNS, ID_PLACE, JOB_COLUMNS, Row, ids, job

SEARCH_WITHIN_MS = 2000  # no index serves a search in errors

# A NUL, which JSON can write but the server cannot decode, must not spoil the search for the others.
_ERROR = r"replace(error::text, '\u0000', '\ufffd')::json"
_SAYS = f"strpos(lower(concat_ws(chr(10), {_ERROR}->>'type', {_ERROR}->>'message')), lower(%s)) > 0"


# A probe of each table per schedule, by its index on schedules.
_LAST_RUNS = f"""
SELECT {JOB_COLUMNS} FROM unnest(%s::text[], %s::text[]) AS wanted (wanted_tenant, wanted_name)
 CROSS JOIN LATERAL (
    SELECT * FROM rota.jobs WHERE schedule = wanted_name AND tenant = wanted_tenant ORDER BY id DESC LIMIT 1
 ) AS newest
"""


_EXPIRED = f"""
SELECT {JOB_COLUMNS} FROM rota.live WHERE state = 'queued' AND id = ANY (ARRAY(
    SELECT id FROM rota.queued WHERE expires_at <= %s ORDER BY expires_at LIMIT %s))
"""


_RETRIES = f"""
SELECT {JOB_COLUMNS} FROM rota.live WHERE state = 'queued' AND id = ANY (ARRAY(
    SELECT id FROM rota.queued WHERE concurrency_key = %s AND (attempt > 0 OR crashes > 0)
     ORDER BY rank, run_at, id LIMIT %s))
"""


def _among(states: Collection[State] | None) -> str:
    """Where to look: a question about live jobs must not walk through millions that have ended."""
    if states is None or (not FINAL.isdisjoint(states) and not FINAL.issuperset(states)):
        return "rota.jobs"
    return "rota.ended" if FINAL.issuperset(states) else "rota.live"


def conditions(where: JobFilter, states: Collection[State] | None) -> tuple[str, list[Any]]:
    """The WHERE clause over jobs and its parameters."""
    clauses: list[str] = []
    params: list[Any] = []

    def add(clause: str, value: Any) -> None:
        clauses.append(clause)
        params.append(value)

    if where.ids is not None:
        add("id = ANY (%s::uuid[])", ids(where.ids))
    if states is not None:
        add("state = ANY (%s)", sorted(states))
    for field in COMPARED:
        if (value := getattr(where, field.name)) is not None:
            if field.kind is ID:
                add(f"{field.postgres} = ANY (%s::uuid[])", ids((value,)))
            else:
                add(f"{field.postgres} = %s", value)
    if where.from_schedule:
        clauses.append("schedule IS NOT NULL")
    if where.tag is not None:
        add("%s = ANY (tags)", where.tag)
    if where.units_above is not None:
        add("coalesce(units, 1) > %s", where.units_above)
    if where.not_tasks:
        add("NOT task = ANY (%s::text[])", list(where.not_tasks))
    if where.not_queues:
        add("NOT queue = ANY (%s::text[])", list(where.not_queues))
    for bound, beyond in ((where.after_id, ">"), (where.before_id, "<")):
        if bound is not None:
            add(f"id {beyond} %s::uuid", *ids((bound,)) or (None,))  # beyond what is no id lies nothing
    for path, said in where.payload:
        # only what is no object and no list: a whole would confirm the secrets inside it
        clauses.append(
            "json_typeof(payload #> %s::text[]) NOT IN ('object', 'array') AND payload #>> %s::text[] = %s"
        )
        params += [list(path), list(path), said]
    if where.error is not None:
        clauses.append("error IS NOT NULL")
        add(_SAYS, where.error)
    return " AND ".join(clauses) or "true", params


def page_statement(where: JobFilter, ask: PageRequest) -> tuple[str, list[Any]]:
    """One row more than asked for, to know whether there is a next page."""
    condition, params = conditions(where, where.states)
    order, beyond = cursors.by_id(ask)
    if ask.cursor is not None and ids((ask.cursor,)):
        condition += f" AND id {beyond} %s::uuid"
        params.append(ask.cursor)
    columns = BRIEF_COLUMNS if ask.brief else JOB_COLUMNS
    among = _among(where.states)
    statement = f"SELECT {columns} FROM {among} WHERE {condition} ORDER BY id {order} LIMIT %s"
    return statement, [*params, ask.limit + 1]


def count_statement(where: JobFilter, most: int) -> tuple[str, list[Any]]:
    condition, params = conditions(where, where.states)
    statement = f"SELECT count(*) FROM (SELECT FROM {_among(where.states)} WHERE {condition} LIMIT %s) AS j"
    return statement, [*params, most]


async def count(connections: Connections, where: JobFilter, most: int) -> int:
    ((found,),) = await _rows(connections, where, *count_statement(where, most))
    return int(found)


async def page(connections: Connections, where: JobFilter, ask: PageRequest) -> Page[Job]:
    rows = await _rows(connections, where, *page_statement(where, ask))
    return cursors.page(rows, ask.limit, job, itemgetter(ID_PLACE))


async def last_runs(connections: Connections, schedules: Sequence[tuple[str, str]]) -> list[Job]:
    """The newest job of each (tenant, schedule name) pair."""
    tenants, names = [tenant for tenant, _ in schedules], [name for _, name in schedules]
    rows = await connections.rows(_LAST_RUNS, (tenants, names))
    return list(cursors.page(rows, len(rows), job, itemgetter(ID_PLACE)).items)


async def expired(connections: Connections, now: datetime, most: int) -> list[Job]:
    rows = await connections.rows(_EXPIRED, (now, most))
    return sorted(map(job, rows), key=lambda one: (one.expires_at or now, one.id))


async def waiting_retries(connections: Connections, key: str, most: int) -> list[Job]:
    rows = await connections.rows(_RETRIES, (key, most))
    return sorted(map(job, rows), key=claim_order)


async def _rows(connections: Connections, where: JobFilter, statement: str, params: list[Any]) -> list[Row]:
    """A search in texts has to read them all: it gets a while, then the caller must narrow it."""
    if where.error is None and not where.payload:
        return await connections.rows(statement, params)
    async with connections.snapshot() as fetch:
        await fetch("SELECT set_config('statement_timeout', %s, true)", (str(SEARCH_WITHIN_MS),))
        try:
            return await fetch(statement, params)
        except errors.QueryCanceled:
            raise OptionError(
                f"the search in {'payloads' if where.payload else 'errors'} took longer than "
                f"{SEARCH_WITHIN_MS / 1000:g} s: narrow it by state, task, queue or time"
            ) from None
