"""Schedules: writing, reading, firing.

Owns the SQL of schedules and how a row becomes a Schedule. Must never know a rule's meaning: a row
that someone filled with nonsense is passed on as it is, for the scheduler to judge.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any

import msgspec

from ...errors import StoreError
from ...model import DueSchedules, Firing, Page, PageRequest, Schedule, ScheduleFilter
from .. import cursors
from .connections import Connections
from .driver_errors import is_data
from .rows import LATEST, NOW, Row, text

FIELDS = Schedule.__struct_fields__
COLUMNS = ", ".join(name.removesuffix("_json") for name in FIELDS)
_NAME = itemgetter(FIELDS.index("tenant"), FIELDS.index("name"))

_PUT = "SELECT ord, version FROM rota.put_schedules(CAST(%s AS json), %s)"
_DELETE = """
WITH found AS MATERIALIZED (
    SELECT id, tenant, name FROM rota.schedules WHERE id = ANY (%s::text[]) ORDER BY tenant, name FOR UPDATE
), counts AS (
    DELETE FROM rota.run_counts AS c USING found AS f WHERE c.tenant = f.tenant AND c.schedule = f.name
)
DELETE FROM rota.schedules WHERE id IN (SELECT id FROM found) RETURNING id
"""
# Also the time it is, which comes alone if there is no schedule.
_DUE = f"""
SELECT t.now, {COLUMNS}
  FROM (SELECT {NOW} AS now) AS t LEFT JOIN LATERAL rota.due_schedules(t.now, %s) ON true
"""
_FIRE = f"SELECT rota.fire(CAST(%s AS json), {NOW})"
_BUSY = "SELECT tenant, name FROM rota.busy(%s::text[], %s::text[])"


async def put(connections: Connections, schedules: Sequence[Schedule], now: datetime) -> list[int | None]:
    if not schedules:
        return []
    rows = await connections.rows(_PUT, (text(schedules), now), repeatable=False)
    return [version for _, version in sorted(rows, key=lambda row: row[0])]


async def delete(connections: Connections, ids: Sequence[str]) -> list[str]:
    return [row[0] for row in await connections.rows(_DELETE, (list(ids),))]


async def due(connections: Connections, now: datetime | None, limit: int) -> DueSchedules:
    """The server adds the first schedule whose time has not come: its time is when to look again."""
    rows = await connections.rows(_DUE, (now, limit))
    at: datetime = rows[0][0]
    found = [schedule(row[1:]) for row in rows if row[1] is not None]
    later = found.pop().check_at if found and (found[-1].check_at or at) > at else None
    return DueSchedules(at=at, schedules=found, next_check_at=later, busy=await _busy(connections, found))


async def _busy(connections: Connections, schedules: Sequence[Schedule]) -> frozenset[str]:
    """The ids of those that have a live job, if their runs must not overlap."""
    ids = {(one.tenant, one.name): one.id for one in schedules if one.overlap != "allow"}
    if not ids:
        return frozenset()
    tenants, names = [tenant for tenant, _ in ids], [name for _, name in ids]
    rows = await connections.rows(_BUSY, (tenants, names))
    return frozenset(ids[tenant, name] for tenant, name in rows)


async def fire(connections: Connections, firings: Sequence[Firing], now: datetime | None) -> frozenset[str]:
    if not firings:
        return frozenset()
    try:
        ((refused,),) = await connections.rows(_FIRE, (firings_text(firings), now))
    except StoreError as error:
        if len(firings) == 1 or not is_data(error.__cause__):
            raise
        return await _fire_apart(connections, firings, now)
    return frozenset(refused)


def firings_text(firings: Sequence[Firing]) -> str:
    """The schedule travels with the version it must still have."""
    return text(
        [{"s": msgspec.structs.replace(one.schedule, version=one.expected), "j": one.jobs} for one in firings]
    )


async def _fire_apart(
    connections: Connections, firings: Sequence[Firing], now: datetime | None
) -> frozenset[str]:
    """One of them cannot be stored: the others must not suffer."""
    middle = len(firings) // 2
    refused: frozenset[str] = frozenset()
    failure: StoreError | None = None
    for half in (firings[:middle], firings[middle:]):
        try:
            refused |= await fire(connections, half, now)
        except StoreError as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return refused


# --- pages ---------------------------------------------------------------------------------------


def page_statement(where: ScheduleFilter, ask: PageRequest) -> tuple[str, list[Any]]:
    """One row more than asked for, to know whether there is a next page."""
    clauses: list[str] = ["true"]
    params: list[Any] = []
    if where.ids is not None:
        clauses.append("id = ANY (%s::text[])")
        params.append(list(where.ids))
    for name in ("name", "tenant", "task", "enabled", "source", "owner"):
        if (value := getattr(where, name)) is not None:
            clauses.append(f"{name} = %s")
            params.append(value)
    if (place := cursors.read_pair(ask.cursor)) is not None:
        clauses.append("(tenant, name) > (%s, %s)")
        params += place
    condition = " AND ".join(clauses)
    statement = f"SELECT {COLUMNS} FROM rota.schedules WHERE {condition} ORDER BY tenant, name LIMIT %s"
    return statement, [*params, ask.limit + 1]


async def page(connections: Connections, where: ScheduleFilter, ask: PageRequest) -> Page[Schedule]:
    rows = await connections.rows(*page_statement(where, ask))
    return cursors.page(rows, ask.limit, schedule, lambda row: cursors.pair(*_NAME(row)))


def schedule(row: Row) -> Schedule:
    """Every column has a type, so every row can be read; a list of instants may still have holes."""
    values = dict(zip(FIELDS, row, strict=True))
    values["held"] = tuple(one for one in values["held"] if isinstance(one, datetime))
    if values["check_at"] == LATEST:  # how the table writes "not before it is edited"
        values["check_at"] = None
    return Schedule(**values)
