"""Reading jobs: filters, pages, the overview.

Owns the SQL of a JobFilter. Must never write. Pages go by id, which each of the three tables has an
index for, so a page costs the same wherever it lies.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from ...model import FINAL, Job, JobFilter, JobId, Overview, Page, PageAsk, QueueDepth, State
from .connections import Connections
from .rows import JOB_COLUMNS, Row, ids, job

log = logging.getLogger("rota.store")

COUNT_AT_MOST = 100_000

_DEPTHS = """
SELECT queue, run_at <= %s AS due, count(*), min(run_at)
  FROM (SELECT queue, run_at FROM rota.queued LIMIT %s) AS q GROUP BY 1, 2
"""
_RUNNING = "SELECT queue, count(*) FROM (SELECT queue FROM rota.running LIMIT %s) AS r GROUP BY 1"
_ENDED = "SELECT state, sum(n)::bigint FROM rota.tally GROUP BY 1"
_ESTIMATE = "SELECT reltuples::bigint FROM pg_class WHERE oid = CAST(%s AS regclass)"


def conditions(where: JobFilter, states: Collection[State] | None) -> tuple[str, list[Any]]:
    """The WHERE clause over ``rota.jobs`` and its parameters."""
    clauses: list[str] = []
    params: list[Any] = []

    def add(clause: str, value: Any) -> None:
        clauses.append(clause)
        params.append(value)

    if where.ids is not None:
        add("id = ANY (%s::uuid[])", ids(where.ids))
    if states is not None:
        add("state = ANY (%s)", sorted(states))
    for name in ("task", "queue", "tenant", "key", "schedule"):
        if (value := getattr(where, name)) is not None:
            add(f"{name} = %s", value)
    if where.scheduled:
        clauses.append("schedule IS NOT NULL")
    if where.tag is not None:
        add("%s = ANY (tags)", where.tag)
    if where.parent is not None:
        add("parent = ANY (%s::uuid[])", ids((where.parent,)))
    return " AND ".join(clauses) or "true", params


async def matching(
    connections: Connections, where: JobFilter, touches: frozenset[State], limit: int
) -> tuple[list[JobId], list[State]]:
    """At most ``limit`` ids that the filter names, and the states in which they may be touched."""
    states = sorted(touches if where.states is None else touches & frozenset(where.states))
    condition, params = conditions(where, states)
    rows = await connections.rows(
        f"SELECT id FROM rota.jobs WHERE {condition} ORDER BY id LIMIT %s", [*params, limit]
    )
    return [row[0] for row in rows], states


def page_statement(where: JobFilter, ask: PageAsk) -> tuple[str, list[Any]]:
    """One row more than asked for, to know whether there is a next page."""
    condition, params = conditions(where, where.states)
    order, beyond = ("DESC", "<") if ask.newest_first else ("ASC", ">")
    if ask.cursor is not None and ids((ask.cursor,)):
        condition += f" AND id {beyond} %s::uuid"
        params.append(ask.cursor)
    statement = f"SELECT {JOB_COLUMNS} FROM rota.jobs WHERE {condition} ORDER BY id {order} LIMIT %s"
    return statement, [*params, ask.limit + 1]


async def page(connections: Connections, where: JobFilter, ask: PageAsk) -> Page[Job]:
    rows = await connections.rows(*page_statement(where, ask))
    more = len(rows) > ask.limit
    rows = rows[: ask.limit]
    return Page(items=_readable(rows), next=rows[-1][3] if more and rows else None)


def _readable(rows: Sequence[Row]) -> list[Job]:
    found = []
    for row in rows:
        try:
            found.append(job(row))
        except (ValueError, TypeError, LookupError) as error:
            log.warning("job %s cannot be read and is left out: %s", row[3], error)
    return found


# --- the overview --------------------------------------------------------------------------------


async def overview(connections: Connections, now: datetime) -> Overview:
    async with connections.snapshot() as fetch:  # or a job on the move could be seen in no state at all
        depths = await fetch(_DEPTHS, (now, COUNT_AT_MOST + 1))
        running = await fetch(_RUNNING, (COUNT_AT_MOST + 1,))
        ended: dict[str, int] = {row[0]: row[1] for row in await fetch(_ENDED)}
    estimated = set()
    scale = await _scale(connections, "rota.queued", sum(row[2] for row in depths))
    if scale > 1:
        estimated.add(State.QUEUED.value)
    if await _scale(connections, "rota.running", sum(row[1] for row in running)) > 1:
        estimated.add(State.RUNNING.value)
    queues = _queues(depths, running, scale, now)
    counts = {state.value: 0 for state in State}
    counts |= {state.value: max(ended.get(state.value, 0), 0) for state in FINAL}
    counts[State.QUEUED] = sum(depth.queued + depth.scheduled for depth in queues.values())
    counts[State.RUNNING] = sum(depth.running for depth in queues.values())
    oldest = max((d.oldest_due_s for d in queues.values() if d.oldest_due_s is not None), default=None)
    return Overview(counts=counts, oldest_due_s=oldest, queues=queues, estimated=frozenset(estimated))


async def _scale(connections: Connections, table: str, counted: int) -> float:
    """1 if everything was counted, else how much larger the table is than the part that was."""
    if counted <= COUNT_AT_MOST:
        return 1.0
    ((estimate,),) = await connections.rows(_ESTIMATE, (table,))
    return float(max(estimate, counted + 1)) / counted


def _queues(
    depths: Sequence[Row], running: Sequence[Row], scale: float, now: datetime
) -> dict[str, QueueDepth]:
    found: dict[str, dict[str, Any]] = {}
    for queue, due, count, oldest in depths:
        entry = found.setdefault(queue, {})
        entry["queued" if due else "scheduled"] = round(count * scale)
        if due:
            entry["oldest_due_s"] = (now - oldest).total_seconds()
    for queue, count in running:
        found.setdefault(queue, {})["running"] = count
    return {queue: QueueDepth(**entry) for queue, entry in sorted(found.items())}
