"""The caller's own connection: how to run our SQL on it, whatever library made it.

Owns the translation of placeholders and the adapters of libraries; ``external_kinds.py`` says which
connection needs which. Must never commit, roll back or close what belongs to the caller.

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


class ExternalConnection(Protocol):
    """A connection of the caller. ``execute`` gives the rows, or an awaitable of them if ``is_async``."""

    @property
    def is_async(self) -> bool: ...

    @property
    def database(self) -> str:
        """The kind of database it leads to: sqlite, postgresql, or one that rota does not know."""

    def execute(self, sql: str, params: Sequence[Any]) -> Any: ...


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


# --- adapters ------------------------------------------------------------------------------------


class DbApiConnection:
    """sqlite3, psycopg and psycopg2: ``execute`` gives a cursor."""

    is_async = False

    def __init__(self, database: str, execute: Callable[..., Any], paramstyle: str) -> None:
        self.database = database
        self._execute = execute
        self._paramstyle = paramstyle

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        cursor = self._execute(translate(sql, self._paramstyle), params)
        return list(cursor.fetchall()) if cursor.description else ()


class AsyncDbApiConnection:
    """aiosqlite and psycopg's asynchronous connection."""

    is_async = True

    def __init__(self, database: str, execute: Callable[..., Any], paramstyle: str) -> None:
        self.database = database
        self._execute = execute
        self._paramstyle = paramstyle

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        cursor = await self._execute(translate(sql, self._paramstyle), params)
        return list(await cursor.fetchall()) if cursor.description else ()


class AsyncpgConnection:
    is_async = True
    database = "postgresql"

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        rows = await self._connection.fetch(translate(sql, "numeric_dollar"), *params)
        return [tuple(row) for row in rows]


class SqlAlchemyConnection:
    """A SQLAlchemy Connection; a Session leads to its Connection with the first statement."""

    is_async = False

    def __init__(self, source: Any, is_session: bool) -> None:
        self._source = source
        self._is_session = is_session
        self.database: str = (source.get_bind() if is_session else source).dialect.name

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        connection = self._source.connection() if self._is_session else self._source
        result = connection.exec_driver_sql(translate(sql, connection.dialect.paramstyle), tuple(params))
        return [tuple(row) for row in result] if result.returns_rows else ()


class AsyncSqlAlchemyConnection:
    is_async = True

    def __init__(self, source: Any, is_session: bool) -> None:
        self._source = source
        self._is_session = is_session
        self.database: str = (source.get_bind() if is_session else source).dialect.name

    async def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        connection = await self._source.connection() if self._is_session else self._source
        style = connection.dialect.paramstyle
        result = await connection.exec_driver_sql(translate(sql, style), tuple(params))
        return [tuple(row) for row in result] if result.returns_rows else ()


class DjangoConnection:
    """Outside ``atomic()`` Django itself commits each statement; that is the caller's choice."""

    is_async = False

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.database: str = connection.vendor

    def execute(self, sql: str, params: Sequence[Any]) -> Sequence[Row]:
        with self._connection.cursor() as cursor:
            cursor.execute(translate(sql, "format"), tuple(params))
            return list(cursor.fetchall()) if cursor.description else ()


# --- errors --------------------------------------------------------------------------------------


def sqlstate(error: BaseException) -> str | None:
    """The code that PostgreSQL gave the error, under whatever wrapping of the caller's library."""
    found: BaseException | None = error
    for _ in range(5):
        if found is None:
            return None
        code = getattr(found, "sqlstate", None) or getattr(found, "pgcode", None)
        if code is not None:
            return str(code)
        found = getattr(found, "orig", None) or found.__cause__ or found.__context__
    return None
