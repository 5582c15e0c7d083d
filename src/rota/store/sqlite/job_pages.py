"""What operators read: pages of jobs, how many there are, attempts. Must never write."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from ...errors import OptionError
from ...model import LIVE, Attempt, Job, JobFilter, Page, PageRequest, State
from .. import cursors
from ..sql import fields
from .rows import as_json, attempt, job, micros
from .statements import BRIEF, JOB, statement

_ID_PLACE = JOB.split(", ").index("id")
# A filter on one of these finds its few jobs by an index of its own.
NARROW = tuple(field.sqlite for field in fields.NARROW)
# Otherwise jobs are read in the order of their ids, from the smallest index that holds the state.
BY_STATE = {
    frozenset({State.FAILED}): "failed",
    frozenset({State.CANCELLED}): "cancelled",
    frozenset({State.RUNNING}): "running",  # has another order, but never many
}
READABLE_TAGS = "iif(json_valid(tags_json), tags_json, '[]')"
SEARCH_STEPS = 100_000_000  # of SQLite's machine: about two seconds
STEPS_AT_ONCE = 100_000
READABLE_PAYLOAD = "iif(json_valid(payload_json), payload_json, '{}')"
PAYLOAD_SAYS = (  # as text: true and false by their names, and not as 1 and 0
    f"CASE json_type({READABLE_PAYLOAD}, ?) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' "
    "WHEN 'object' THEN NULL WHEN 'array' THEN NULL "
    f"ELSE CAST(json_extract({READABLE_PAYLOAD}, ?) AS TEXT) END = ?"
)
UNWRITABLE = frozenset('"\\\0')  # in a key: a path cannot say them, and newer versions decode escapes
READABLE_ERROR = "iif(json_valid(error_json), error_json, '{}')"
ERROR_PARTS = ("type", "message")
# What a field of the filter asks of a job.
TERMS = {field.name: f"{field.sqlite} = ?" for field in fields.COMPARED} | {
    "after_id": "id > ?",
    "before_id": "id < ?",
    "units_above": "coalesce(units, 1) > ?",
    "tag": f"EXISTS (SELECT 1 FROM json_each({READABLE_TAGS}) WHERE value = ?)",
}
LISTS = {
    "not_tasks": "task NOT IN (SELECT value FROM json_each(?))",
    "not_queues": "queue NOT IN (SELECT value FROM json_each(?))",
}


def matching(where: JobFilter) -> tuple[str, list[Any]]:
    """``FROM … WHERE …`` with its parameters."""
    states = None if where.states is None else frozenset(where.states)
    terms, params = _terms(where)
    hint, term = _index(where, states)
    terms.append(term)
    if states is not None:
        # the plus keeps the planner away from indexes on state, which would sort all they find
        terms.append(f"+state IN ({', '.join(sorted(repr(state.value) for state in states))})")
    return f"FROM rota_jobs {hint} WHERE {' AND '.join(terms)}", params


def _terms(where: JobFilter) -> tuple[list[str], list[Any]]:
    terms, params = ["1"], []
    for field, term in TERMS.items():
        if (value := getattr(where, field)) is not None:
            terms.append(term)
            params.append(value)
    for field, term in LISTS.items():
        if value := getattr(where, field):
            terms.append(term)
            params.append(as_json(value))
    if where.ids is not None:
        terms.append("id IN (SELECT value FROM json_each(?))")
        params.append(as_json(where.ids))
    if where.from_schedule:
        terms.append("schedule IS NOT NULL")
    for path, text in where.payload:
        if any(UNWRITABLE & set(key) for key in path):  # SQLite would read another key
            terms.append("0")
            continue
        terms.append(PAYLOAD_SAYS)
        params += ["$" + "".join(f'."{key}"' for key in path)] * 2 + [text]
    if where.error is not None:
        said = [f"instr(lower(json_extract({READABLE_ERROR}, '$.{part}')), lower(?))" for part in ERROR_PARTS]
        terms.append(f"({' OR '.join(said)})")
        params += [where.error] * len(said)
    return terms, params


def _index(where: JobFilter, states: frozenset[State] | None) -> tuple[str, str]:
    """The index to walk (none: as the planner likes), and the term that makes a partial one usable."""
    if states is not None and not states:
        return "", "0"
    live = states is not None and states <= LIVE
    narrow = [name for name in NARROW if getattr(where, name) is not None]
    if where.ids is None and narrow == ["schedule"] and live:
        return "INDEXED BY rota_jobs_schedule_live", "finished_at IS NULL"
    if where.ids is not None or narrow:
        return "", "1"
    if states in BY_STATE:
        name = BY_STATE[states]
        return f"INDEXED BY rota_jobs_{name}", f"state = '{name}'"
    if live:
        return "INDEXED BY rota_jobs_live", "finished_at IS NULL"
    if where.error is not None:
        return "INDEXED BY rota_jobs_error", "error_json IS NOT NULL"
    return f"INDEXED BY rota_jobs_{'scheduled' if where.from_schedule else 'id'}", "id >= ''"


def jobs(connection: sqlite3.Connection, where: JobFilter, page: PageRequest) -> Page[Job]:
    """By id; the cursor is the last id seen."""
    text, params = matching(where)
    order, beyond = cursors.by_id(page)
    if page.cursor is not None:
        text += f" AND id {beyond} ?"
        params.append(page.cursor)
    query = f"SELECT {BRIEF if page.brief else JOB} {text} ORDER BY id {order} LIMIT ?"
    rows = _searched(connection, where, query, (*params, page.limit + 1))
    return cursors.page(rows, page.limit, job, itemgetter(_ID_PLACE))


def last_runs(connection: sqlite3.Connection, schedules: Sequence[tuple[str, str]]) -> list[Job]:
    """The newest job of each (tenant, schedule name) pair."""
    rows = connection.execute(statement("last_runs"), (as_json(schedules),))
    newest = tuple(id for (id,) in rows if id is not None)
    return list(jobs(connection, JobFilter(ids=newest), PageRequest(limit=max(len(newest), 1))).items)


def count(connection: sqlite3.Connection, where: JobFilter, most: int) -> int:
    text, params = matching(where)
    ((n,),) = _searched(connection, where, f"SELECT count(*) FROM (SELECT 1 {text} LIMIT ?)", (*params, most))
    return int(n)


def _searched(
    connection: sqlite3.Connection, where: JobFilter, query: str, params: Sequence[Any]
) -> list[tuple[Any, ...]]:
    """A text search has to read every row: its steps are limited, then the caller must narrow it."""
    if where.error is None and not where.payload:
        return connection.execute(query, params).fetchall()
    left = iter(range(SEARCH_STEPS // STEPS_AT_ONCE))
    connection.set_progress_handler(lambda: next(left, None) is None, STEPS_AT_ONCE)
    try:
        return connection.execute(query, params).fetchall()
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        raise OptionError(
            f"the search in {'payloads' if where.payload else 'errors'} reads too many jobs: "
            "narrow it by state, task, queue or time"
        ) from None
    finally:
        connection.set_progress_handler(None, 0)


def count_ahead(connection: sqlite3.Connection, job: Job, most: int) -> int:
    """Lane by lane, for each is in the order of a claim; jobs that are held do not count."""
    place, n = (-job.priority, micros(job.run_at), job.id), 0
    for queue, task, *_ in connection.execute(statement("lanes")).fetchall():
        if queue == job.queue and n < most:
            n += connection.execute(statement("ahead"), (queue, task, *place, most - n)).fetchone()[0]
    return n


def attempts(connection: sqlite3.Connection, job: str) -> Sequence[Attempt]:
    return [attempt(row) for row in connection.execute(statement("attempts"), (job,))]


def is_finished(connection: sqlite3.Connection, job: str) -> bool:
    """True too if there is no such job."""
    rows = connection.execute(statement("states"), (as_json([job]),)).fetchall()
    return not rows or rows[0][1] not in LIVE
