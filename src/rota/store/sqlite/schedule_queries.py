"""Schedules: written by version, read in pages, fired together with their jobs."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from ...model import DueSchedules, Firing, NewJob, Page, PageRequest, Schedule, ScheduleFilter
from .. import cursors
from .inserts import insert
from .rows import Row, as_json, instant, readable_instant
from .schedule_rows import columns, schedule
from .statements import SCHEDULE, statement
from .writer import Transaction

_NAME = itemgetter(SCHEDULE.index("tenant"), SCHEDULE.index("name"))


def put(transaction: Transaction, schedules: Sequence[Schedule], now: int) -> Sequence[int | None]:
    """Write each one whose version is the stored one (0: absent); new versions, None if refused."""
    transaction.schedules = True
    return [_put(transaction, schedule, now) for schedule in schedules]


def _put(transaction: Transaction, schedule: Schedule, now: int) -> int | None:
    following = schedule.version + 1
    if schedule.version == 0:
        written = transaction.execute(statement("put_schedule"), columns(schedule, following, now)).rowcount
    else:
        written = _rewrite(transaction, "rewrite_schedule", schedule, schedule.version, now)
    return following if written else None


def _rewrite(transaction: Transaction, name: str, schedule: Schedule, expected: int, now: int) -> int:
    """How many rows were written: none if the version has moved, or the name is another's."""
    params = (*columns(schedule, expected + 1, now), schedule.id, expected)
    return transaction.execute(statement(name), params).rowcount


def delete(transaction: Transaction, ids: Sequence[str]) -> Sequence[str]:
    transaction.execute(statement("drop_run_counts"), (as_json(ids),))
    return [row[0] for row in transaction.execute(statement("drop_schedules"), (as_json(ids),)).fetchall()]


def fire(transaction: Transaction, firings: Sequence[Firing], now: int) -> frozenset[str]:
    """Move the schedules that are still as expected and make their jobs; the ids of the others."""
    refused: set[str] = set()
    jobs: list[NewJob] = []
    for firing in firings:
        if _rewrite(transaction, "fire_schedule", firing.schedule, firing.expected, now):
            jobs += firing.jobs
        else:
            refused.add(firing.schedule.id)
    if jobs:
        insert(transaction, jobs, now)
    return frozenset(refused)


# --- reading -------------------------------------------------------------------------------------


def due(connection: sqlite3.Connection, now: int, limit: int) -> DueSchedules:
    rows = connection.execute(statement("due_schedules"), (now, limit)).fetchall()
    following = connection.execute(statement("next_check"), (now,)).fetchone()[0]
    found = [schedule(row) for row in rows]
    return DueSchedules(
        at=instant(now),
        schedules=found,
        next_check_at=readable_instant(following),
        busy=_busy(connection, found),
    )


def _busy(connection: sqlite3.Connection, schedules: Sequence[Schedule]) -> frozenset[str]:
    """The ids of those that have a live job, if their runs must not overlap."""
    ids = {(one.tenant, one.name): one.id for one in schedules if one.overlap != "allow"}
    if not ids:
        return frozenset()
    rows = connection.execute(statement("busy"), (as_json(list(ids)),))
    return frozenset(ids[tenant, name] for tenant, name in rows)


def schedules(connection: sqlite3.Connection, where: ScheduleFilter, page: PageRequest) -> Page[Schedule]:
    """By tenant and name; the cursor is the last pair seen."""
    return page_of(connection.execute(*page_query(where, page)).fetchall(), page)


def page_of(rows: Sequence[Row], page: PageRequest) -> Page[Schedule]:
    return cursors.page(rows, page.limit, schedule, lambda row: cursors.pair(*map(str, _NAME(row))))


def page_query(where: ScheduleFilter, page: PageRequest) -> tuple[str, Sequence[Any]]:
    """The page and one more, which tells whether another follows."""
    terms, params = _terms(where)
    if (seen := cursors.read_pair(page.cursor)) is not None:
        tenant, name = seen
        if where.tenant is None:
            terms.append("(tenant, name) > (?, ?)")
            params += (tenant, name)
        else:  # the pair would make the planner sort
            terms.append("name > ?")
            params.append(name)
    query = f"SELECT {', '.join(SCHEDULE)} FROM rota_schedules WHERE {' AND '.join(terms)}"
    return f"{query} ORDER BY tenant, name LIMIT ?", (*params, page.limit + 1)


def _terms(where: ScheduleFilter) -> tuple[list[str], list[Any]]:
    terms, params = ["1"], []
    for column in ("name", "tenant", "task", "enabled", "source", "owner"):
        if (value := getattr(where, column)) is not None:
            terms.append(f"{column} = ?")
            params.append(value)
    if where.ids is not None:
        terms.append("id IN (SELECT value FROM json_each(?))")
        params.append(as_json(where.ids))
    return terms, params
