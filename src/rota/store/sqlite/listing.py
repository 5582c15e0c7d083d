"""What operators read: pages of jobs, attempts, the overview. Must never write."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ...model import LIVE, Attempt, Job, JobFilter, Page, PageAsk, State
from .rows import as_json, attempt, job
from .statements import JOB, statement

# A filter on one of these finds its few jobs by an index of its own.
NARROW = ("key", "parent", "schedule")
# Otherwise jobs are read in the order of their ids, from the smallest index that holds the state.
BY_STATE = {frozenset({State.FAILED}): "failed", frozenset({State.CANCELLED}): "cancelled"}


def matching(where: JobFilter, touches: frozenset[State] | None = None) -> tuple[str, list[Any]]:
    """``FROM … WHERE …`` with its parameters; ``touches`` narrows the states further."""
    states = _states(where, touches)
    terms, params = _terms(where)
    hint, term = _index(where, states)
    terms.append(term)
    if states is not None:
        # the plus keeps the planner away from indexes on state, which would sort all they find
        terms.append(f"+state IN ({', '.join(sorted(repr(state.value) for state in states))})")
    return f"FROM rota_jobs {hint} WHERE {' AND '.join(terms)}", params


def _states(where: JobFilter, touches: frozenset[State] | None) -> frozenset[State] | None:
    if where.states is None:
        return touches
    return frozenset(where.states) if touches is None else touches.intersection(where.states)


def _terms(where: JobFilter) -> tuple[list[str], list[Any]]:
    terms, params = ["1"], []
    for column in ("task", "queue", "tenant", *NARROW):
        if (value := getattr(where, column)) is not None:
            terms.append(f"{column} = ?")
            params.append(value)
    if where.ids is not None:
        terms.append("id IN (SELECT value FROM json_each(?))")
        params.append(as_json(where.ids))
    if where.scheduled:
        terms.append("schedule IS NOT NULL")
    if where.tag is not None:
        readable = "iif(json_valid(tags_json), tags_json, '[]')"
        terms.append(f"EXISTS (SELECT 1 FROM json_each({readable}) WHERE value = ?)")
        params.append(where.tag)
    return terms, params


def _index(where: JobFilter, states: frozenset[State] | None) -> tuple[str, str]:
    """The index to walk (none: as the planner likes), and the term that makes a partial one usable."""
    live = states is not None and states <= LIVE
    narrow = [name for name in NARROW if getattr(where, name) is not None]
    if where.ids is None and narrow == ["schedule"] and live:
        return "INDEXED BY rota_jobs_schedule_live", "finished_at IS NULL"
    if where.ids is not None or narrow:
        return "", "1"
    if live:
        return "INDEXED BY rota_jobs_live", "finished_at IS NULL"
    if states in BY_STATE:
        name = BY_STATE[states]
        return f"INDEXED BY rota_jobs_{name}", f"state = '{name}'"
    return f"INDEXED BY rota_jobs_{'scheduled' if where.scheduled else 'id'}", "id >= ''"


def jobs(connection: sqlite3.Connection, where: JobFilter, page: PageAsk) -> Page[Job]:
    """By id; the cursor is the last id seen."""
    text, params = matching(where)
    sign, order = ("<", "DESC") if page.newest_first else (">", "ASC")
    if page.cursor is not None:
        text += f" AND id {sign} ?"
        params.append(page.cursor)
    query = f"SELECT {JOB} {text} ORDER BY id {order} LIMIT ?"
    rows = connection.execute(query, (*params, page.limit + 1)).fetchall()
    items = [job(row) for row in rows[: page.limit]]
    return Page(items, items[-1].id if items and len(rows) > page.limit else None)


def attempts(connection: sqlite3.Connection, job: str) -> Sequence[Attempt]:
    return [attempt(row) for row in connection.execute(statement("attempts"), (job,))]


def has_ended(connection: sqlite3.Connection, job: str) -> bool:
    """True too if there is no such job (any more)."""
    rows = connection.execute(statement("states"), (as_json([job]),)).fetchall()
    return not rows or rows[0][1] not in LIVE
