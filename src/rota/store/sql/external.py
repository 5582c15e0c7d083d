"""The caller's own connection: how to run our SQL on it, whatever library made it.

Owns the recognition of connections (by the name of their type, so that no library is imported) and
the translation of placeholders. Must never commit, roll back or close what belongs to the caller.

SQL is written with ``?`` placeholders. A store writes its insert as a *script*: a generator that
yields ``(sql, params)`` and is sent the rows; ``run`` drives it on a caller, synchronous or not.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeVar

from ...errors import ConfigError

R = TypeVar("R")
Row = Sequence[Any]
Script = Generator[tuple[str, Sequence[Any]], Sequence[Row], R]

ACCEPTED = (
    "sqlite3.Connection, aiosqlite.Connection, psycopg.Connection, psycopg.AsyncConnection, "
    "asyncpg.Connection, SQLAlchemy Session, Connection, AsyncSession and AsyncConnection, "
    "and Django's connection"
)


class ExternalConnection(Protocol):
    """A connection of the caller. ``execute`` gives the rows, or an awaitable of them if ``is_async``."""

    @property
    def is_async(self) -> bool: ...

    def execute(self, sql: str, params: Sequence[Any]) -> Any: ...


def caller(connection: Any) -> ExternalConnection:
    """The Caller of a connection; ConfigError if its kind is unknown or it has no open transaction."""
    for kind in type(connection).__mro__:
        make = _KINDS.get((kind.__module__.partition(".")[0], kind.__qualname__))
        if make is not None:
            return make(connection)
    kind = type(connection)
    raise ConfigError(
        f"connection= got a {kind.__module__}.{kind.__qualname__}, which rota cannot write on; "
        f"it accepts {ACCEPTED}"
    )


def run(script: Script[R], on: ExternalConnection) -> R | Awaitable[R]:
    """Run the script to its end: at once, or as an awaitable if the caller is asynchronous."""
    return _run_async(script, on) if on.is_async else _run_sync(script, on)


def _run_sync(script: Script[R], on: ExternalConnection) -> R:
    try:
        step = next(script)
        while True:
            try:
                rows = on.execute(*step)
            except Exception as error:  # the script may have better words for it
                step = script.throw(error)
            else:
                step = script.send(rows)
    except StopIteration as end:
        result: R = end.value
        return result


async def _run_async(script: Script[R], on: ExternalConnection) -> R:
    try:
        step = next(script)
        while True:
            try:
                rows = await on.execute(*step)
            except Exception as error:
                step = script.throw(error)
            else:
                step = script.send(rows)
    except StopIteration as end:
        result: R = end.value
        return result


# --- placeholders --------------------------------------------------------------------------------

_MARK = re.compile(r"'[^']*'|\?")


@lru_cache(maxsize=256)
def translate(sql: str, paramstyle: str) -> str:
    """``?`` placeholders in the driver's own style; quoted text is left alone."""
    if paramstyle == "qmark":
        return sql
    if paramstyle in ("format", "pyformat"):
        return _MARK.sub(lambda found: "%s" if found[0] == "?" else found[0], sql.replace("%", "%%"))
    if paramstyle in ("numeric", "numeric_dollar"):
        sign = "$" if paramstyle == "numeric_dollar" else ":"
        count = 0

        def number(found: re.Match[str]) -> str:
            nonlocal count
            if found[0] != "?":
                return found[0]
            count += 1
            return f"{sign}{count}"

        return _MARK.sub(number, sql)
    raise ConfigError(f"connection= uses the paramstyle {paramstyle!r}, which rota cannot write")


# --- the kinds -----------------------------------------------------------------------------------


class _DbApiConnection:
    """sqlite3 and psycopg: to execute gives a cursor."""

    is_async = False

    def __init__(self, execute: Callable[..., Any], paramstyle: str) -> None:
        self._execute = execute
        self._paramstyle = paramstyle

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        cursor = self._execute(translate(sql, self._paramstyle), params)
        return list(cursor.fetchall()) if cursor.description else ()


class _AsyncDbApiConnection:
    """aiosqlite and psycopg's asynchronous connection."""

    is_async = True

    def __init__(self, execute: Callable[..., Any], paramstyle: str) -> None:
        self._execute = execute
        self._paramstyle = paramstyle

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        cursor = await self._execute(translate(sql, self._paramstyle), params)
        return list(await cursor.fetchall()) if cursor.description else ()


class _AsyncpgConnection:
    is_async = True

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        rows = await self._connection.fetch(translate(sql, "numeric_dollar"), *params)
        return [tuple(row) for row in rows]


class _SqlAlchemyConnection:
    """A SQLAlchemy Connection; a Session leads to its Connection with the first statement."""

    is_async = False

    def __init__(self, source: Any, is_session: bool) -> None:
        self._source = source
        self._is_session = is_session

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        connection = self._source.connection() if self._is_session else self._source
        result = connection.exec_driver_sql(translate(sql, connection.dialect.paramstyle), tuple(params))
        return [tuple(row) for row in result] if result.returns_rows else ()


class _AsyncSqlAlchemyConnection:
    is_async = True

    def __init__(self, source: Any, is_session: bool) -> None:
        self._source = source
        self._is_session = is_session

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        connection = await self._source.connection() if self._is_session else self._source
        style = connection.dialect.paramstyle
        result = await connection.exec_driver_sql(translate(sql, style), tuple(params))
        return [tuple(row) for row in result] if result.returns_rows else ()


class _DjangoConnection:
    """Outside ``atomic()`` Django itself commits each statement; that is the caller's choice."""

    is_async = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(translate(sql, "format"), tuple(params))
            return list(cursor.fetchall()) if cursor.description else ()


def _needs_transaction(is_open: bool, how: str) -> None:
    if not is_open:
        raise ConfigError(
            "connection= has no open transaction: in autocommit mode every statement would commit "
            f"by itself, before your own work does; {how} first"
        )


def _sqlite(connection: Any) -> ExternalConnection:
    _needs_transaction(
        connection.in_transaction or connection.isolation_level is not None, "execute BEGIN IMMEDIATE"
    )

    def execute(sql: str, params: Sequence[Any]) -> Any:
        cursor = connection.cursor()
        cursor.row_factory = None  # rows as tuples, whatever the caller has chosen for its own
        return cursor.execute(sql, params)

    return _DbApiConnection(execute, "qmark")


def _aiosqlite(connection: Any) -> ExternalConnection:
    _needs_transaction(
        connection.in_transaction or connection.isolation_level is not None, "execute BEGIN IMMEDIATE"
    )
    return _AsyncDbApiConnection(connection.execute, "qmark")


def _psycopg(connection: Any) -> ExternalConnection:
    _needs_transaction(_psycopg_has_transaction(connection), "use `with connection.transaction():`")
    return _DbApiConnection(_psycopg_execute(connection), "format")


def _psycopg_async(connection: Any) -> ExternalConnection:
    _needs_transaction(_psycopg_has_transaction(connection), "use `async with connection.transaction():`")
    return _AsyncDbApiConnection(_psycopg_execute(connection), "format")


def _psycopg_execute(connection: Any) -> Callable[..., Any]:
    """Rows as tuples, whatever the caller has chosen for the rows of its own statements."""
    from psycopg.rows import tuple_row

    return lambda sql, params: connection.cursor(row_factory=tuple_row).execute(sql, params)


def _psycopg_has_transaction(connection: Any) -> bool:
    return not connection.autocommit or connection.info.transaction_status.name != "IDLE"


def _asyncpg(connection: Any) -> ExternalConnection:
    _needs_transaction(connection.is_in_transaction(), "use `async with connection.transaction():`")
    return _AsyncpgConnection(connection)


_KINDS: dict[tuple[str, str], Callable[[Any], ExternalConnection]] = {
    ("sqlite3", "Connection"): _sqlite,
    ("aiosqlite", "Connection"): _aiosqlite,
    ("psycopg", "Connection"): _psycopg,
    ("psycopg", "AsyncConnection"): _psycopg_async,
    ("asyncpg", "Connection"): _asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _asyncpg,
    ("sqlalchemy", "Session"): lambda source: _SqlAlchemyConnection(source, True),
    ("sqlalchemy", "scoped_session"): lambda source: _SqlAlchemyConnection(source, True),
    ("sqlalchemy", "Connection"): lambda source: _SqlAlchemyConnection(source, False),
    ("sqlalchemy", "AsyncSession"): lambda source: _AsyncSqlAlchemyConnection(source, True),
    ("sqlalchemy", "async_scoped_session"): lambda source: _AsyncSqlAlchemyConnection(source, True),
    ("sqlalchemy", "AsyncConnection"): lambda source: _AsyncSqlAlchemyConnection(source, False),
    ("django", "BaseDatabaseWrapper"): _DjangoConnection,
    ("django", "ConnectionProxy"): _DjangoConnection,
}
