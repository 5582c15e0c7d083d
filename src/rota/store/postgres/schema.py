"""What a database has of rota's schema, compared with what it should have, and how to repair it.

Owns the table ``rota.migrations``, and the reading of the server's catalog: what counts is what is
really there, not what was noted about it. Must never run two migrations at once: a lock that lives only
as long as its transaction makes every other process wait, then find the work done.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import errors

from ..sql.migrations import Applied, Migration, column_differences, damaged, not_there, out_of_date, pending
from .connections import Connection, Connections
from .definitions import (
    COLUMNS,
    FIRST_DAYS,
    FIRST_FUNCTIONS,
    FUNCTIONS,
    MIGRATIONS,
    PREAMBLE,
    VIEWS,
    DatabaseView,
    Function,
    as_text,
)
from .driver_errors import translated

__all__ = ["MIGRATIONS", "as_text", "differences", "migrate", "require_current"]

LOCK = 7_466_561  # any constant will do, as long as it is ours
START_AGAIN = "remove it with all its jobs (DROP SCHEMA rota CASCADE)"

# Every function of the schema with a digest of its definition, every table and view with its columns.
_FACTS = """
SELECT 'function', p.proname || '(' || replace(pg_get_function_identity_arguments(p.oid), 'rota.', '') || ')',
       encode(sha256(convert_to(replace(concat_ws(E'\\n',
           replace(pg_get_function_arguments(p.oid), 'rota.', ''),
           replace(pg_get_function_result(p.oid), 'rota.', ''), l.lanname, p.provolatile, p.proparallel,
           array_to_string(p.proconfig, ','), coalesce(obj_description(p.oid, 'pg_proc'), '')), '"', '')
           || E'\\n' || p.prosrc || CASE WHEN p.prosecdef OR p.proisstrict THEN '!' ELSE '' END,
           'UTF8')), 'hex')
  FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
 WHERE p.pronamespace = to_regnamespace('rota') AND p.prokind = 'f'
   AND NOT EXISTS (SELECT FROM pg_depend AS d
                    WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
UNION ALL
SELECT 'columns', c.relname,
       string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
  FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
 WHERE c.relnamespace = to_regnamespace('rota') AND c.relkind IN ('r', 'p', 'v') AND NOT c.relispartition
   AND a.attnum > 0 AND NOT a.attisdropped
 GROUP BY c.relname
"""
_APPLIED = "SELECT version, name FROM rota.migrations ORDER BY version"
_DROP = """
SELECT 'DROP FUNCTION ' || p.oid::regprocedure FROM pg_proc AS p
 WHERE p.pronamespace = to_regnamespace('rota') AND p.prokind = 'f'
   AND p.proname || '('
       || replace(replace(pg_get_function_identity_arguments(p.oid), 'rota.', ''), '"', '') || ')' = %s
"""
_VIEW_DEFINITIONS = "SELECT pg_get_viewdef(to_regclass(%s)), pg_get_viewdef(to_regclass(%s))"


class PostgresSchema:
    """The schema ``rota`` of one database."""

    def __init__(self, connections: Connections, shown: str) -> None:
        self._connections = connections
        self._shown = shown

    @property
    def text(self) -> str:
        return as_text()

    async def pending(self) -> Sequence[str]:
        return await differences(self._connections, self._shown)

    async def migrate(self, *, fresh: bool = False) -> Sequence[str]:
        return await migrate(self._connections, self._shown, fresh)

    async def require_current(self) -> None:
        await require_current(self._connections, self._shown)


class _Found(NamedTuple):
    """What a database has."""

    applied: Applied
    functions: dict[str, str]  # digests
    columns: dict[str, str]


async def require_current(connections: Connections, shown: str) -> None:
    """SchemaMismatch unless the database is exactly what this program expects."""
    found = await _find(connections)
    if lacking := _differences(found, shown):
        raise out_of_date(shown, lacking) if found.applied else not_there(shown)


async def differences(connections: Connections, shown: str) -> Sequence[str]:
    """What ``migrate`` would change, views included; SchemaMismatch if it cannot help."""
    found = await _find(connections)
    lacking = _differences(found, shown)
    if any(view.name not in found.columns for view in VIEWS):
        return lacking
    try:
        async with connections.borrow() as connection:
            return lacking + [f"view rota.{name} differs" for name in await _edited_views(connection)]
    except psycopg.Error as error:
        raise translated(error, shown) from error


async def migrate(connections: Connections, shown: str, fresh: bool = False) -> Sequence[str]:
    """Bring the schema up to date in one transaction; the names of what was changed."""
    try:
        async with connections.borrow("migration") as connection, connection.transaction():
            # A process that waited for the lock must see what the one before it has written.
            await connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if fresh:
                await connection.execute("SET LOCAL client_min_messages = warning")  # no line per object
                await connection.execute("DROP SCHEMA IF EXISTS rota CASCADE")
            return await _migrate(connection, await _find_on(connection), shown)
    except psycopg.Error as error:
        raise translated(error, shown) from error


# --- what is there -------------------------------------------------------------------------------


async def _find(connections: Connections) -> _Found:
    facts = await connections.rows(_FACTS)
    return _found(facts, await connections.rows(_APPLIED) if _is_there(facts) else ())


async def _find_on(connection: Connection) -> _Found:
    facts = await (await connection.execute(_FACTS.encode())).fetchall()
    applied = await (await connection.execute(_APPLIED)).fetchall() if _is_there(facts) else ()
    return _found(facts, applied)


def _is_there(facts: Sequence[Sequence[Any]]) -> bool:
    return any(kind == "columns" and name == "migrations" for kind, name, _ in facts)


def _found(facts: Sequence[Sequence[Any]], applied: Sequence[Sequence[Any]]) -> _Found:
    return _Found(
        [(int(version), str(name)) for version, name in applied],
        {name.replace('"', ""): fact for kind, name, fact in facts if kind == "function"},
        {name: fact.replace('"', "") for kind, name, fact in facts if kind == "columns"},
    )


async def _edited_views(connection: Connection) -> list[str]:
    """Views whose definition is not ours, as the server itself writes both out."""
    edited = []
    try:
        async with connection.transaction(force_rollback=True):
            for view in VIEWS:
                await connection.execute(f"CREATE TEMP VIEW rota_{view.name} AS {view.query}".encode())
                names = (f"rota.{view.name}", f"pg_temp.rota_{view.name}")
                row = await (await connection.execute(_VIEW_DEFINITIONS, names)).fetchone()
                if row is None or row[0] != row[1]:
                    edited.append(view.name)
    except (errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction):  # no temporary views here
        return []
    return edited


# --- what differs --------------------------------------------------------------------------------


def _differences(found: _Found, shown: str) -> list[str]:
    """In words, in the order of repair; SchemaMismatch if the tables are not what their versions say."""
    lacking = [migration.name for migration in pending(MIGRATIONS, found.applied, shown, START_AGAIN)]
    _check_tables(found, shown)
    if not found.functions:
        return [*lacking, "functions"]
    lacking += [f"function {_short(f.name)} {_fault(f, found)}" for f in _wrong_functions(found)]
    lacking += [f"function {_short(name)} is left over" for name in _left_over(found)]
    lacking += [f"view rota.{view.name} {_fault(view, found)}" for view in _wrong_views(found)]
    return lacking


def _short(function: str) -> str:
    """Without the types of its arguments."""
    return f"rota.{function.partition('(')[0]}"


def _fault(one: Function | DatabaseView, found: _Found) -> str:
    is_there = one.name in (found.functions if isinstance(one, Function) else found.columns)
    return "differs" if is_there else "is missing"


def _wrong_functions(found: _Found) -> list[Function]:
    return [f for f in FUNCTIONS if found.functions.get(f.name) != f.digest]


def _left_over(found: _Found) -> list[str]:
    return sorted(found.functions.keys() - {function.name for function in FUNCTIONS})


def _wrong_views(found: _Found) -> list[DatabaseView]:
    return [
        v for v in VIEWS if found.columns.get(v.name) != COLUMNS.get(v.name, found.columns.get(v.name, ""))
    ]


def _check_tables(found: _Found, shown: str) -> None:
    """A table of an applied version has exactly the columns that its version gave it."""
    if len(found.applied) < len(MIGRATIONS):
        return
    views = {view.name for view in VIEWS}
    wrong = [
        column_differences(f"rota.{table}", found.columns.get(table), columns)
        for table, columns in COLUMNS.items()
        if table not in views and found.columns.get(table) != columns
    ]
    if wrong:
        raise damaged(shown, wrong, START_AGAIN)


# --- repair --------------------------------------------------------------------------------------


async def _migrate(connection: Connection, found: _Found, shown: str) -> list[str]:
    done = _differences(found, shown)
    if not found.columns.get("migrations"):
        await connection.execute(PREAMBLE.encode())
    missing = pending(MIGRATIONS, found.applied, shown, START_AGAIN)
    if missing:
        await _replace([f for f in _wrong_functions(found) if f in FIRST_FUNCTIONS], found, connection)
        await _apply(missing, connection)
    for name in _left_over(found):
        await _drop(name, connection)
    await _replace(_wrong_functions(found), found, connection)
    done += await _repair_views(connection, found)
    if missing:
        await connection.execute(FIRST_DAYS)
    return done


async def _apply(missing: Sequence[Migration], connection: Connection) -> None:
    for migration in missing:
        await connection.execute(migration.sql.encode())


async def _replace(functions: Sequence[Function], found: _Found, connection: Connection) -> None:
    """CREATE OR REPLACE, or drop first where the server cannot replace: its result or a name changed."""
    for function in functions:
        try:
            async with connection.transaction():
                await connection.execute(function.sql.encode())
        except errors.InvalidFunctionDefinition:
            await _drop(function.name, connection)
            await connection.execute(function.sql.encode())


async def _drop(function: str, connection: Connection) -> None:
    """Drop the function, by its name as the server quotes it."""
    for (statement,) in await (await connection.execute(_DROP, (function,))).fetchall():
        await connection.execute(statement.encode())


async def _repair_views(connection: Connection, found: _Found) -> list[str]:
    """Make the views whose columns differ, and those whose definition the server finds to differ."""
    wrong = _wrong_views(found)
    if wrong:
        names = ", ".join(f"rota.{view.name}" for view in reversed(VIEWS))
        await connection.execute(f"DROP VIEW IF EXISTS {names}".encode())
        for view in VIEWS:
            await connection.execute(view.sql.encode())
        return []
    edited = await _edited_views(connection)
    for view in (view for view in VIEWS if view.name in edited):
        await connection.execute(view.sql.encode())
    return [f"view rota.{name} differs" for name in edited]
