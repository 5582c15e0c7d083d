"""Which connections of callers rota can write on, and what to pass instead of those it cannot.

Knows a connection by the name of its type, so that no library is imported. Must never commit, roll back
or close what belongs to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...errors import ConfigError
from .external import (
    AsyncDbApiConnection,
    AsyncpgConnection,
    AsyncSqlAlchemyConnection,
    DbApiConnection,
    DjangoConnection,
    ExternalConnection,
    SqlAlchemyConnection,
)

ACCEPTED = (
    "connections and cursors of sqlite3, aiosqlite, psycopg and psycopg2, asyncpg.Connection, SQLAlchemy "
    "Session, Connection, AsyncSession and AsyncConnection, Django's connection, and a Peewee database"
)
ANY_OTHER = (
    "from any other library, take the driver's connection; on PostgreSQL you can also call "
    "rota.enqueue(…) in SQL on any connection"
)


def caller(connection: Any, database: str, where: str) -> ExternalConnection:
    """How to write on the connection; ConfigError unless it leads to such a database, in a transaction."""
    found = _adapted(connection)
    if found.database != database:
        raise ConfigError(
            f"connection= leads to a database of the kind {found.database}, but the jobs of this app are in "
            f"{where}; pass a connection to that store, or leave connection= out"
        )
    return found


def _adapted(connection: Any) -> ExternalConnection:
    for kind in type(connection).__mro__:
        name = (kind.__module__.partition(".")[0], kind.__qualname__)
        if (adapt := _KINDS.get(name)) is not None:
            return adapt(connection)
        if (lead := _LEADS_TO.get(name)) is not None:
            return _adapted(lead(connection))
    raise ConfigError(_refusal(connection))


def _refusal(connection: Any) -> str:
    kind = type(connection)
    got = f"connection= got a value of type {kind.__module__}.{kind.__qualname__}"
    if isinstance(connection, str):
        return f"connection= got text: pass the open connection itself; rota accepts {ACCEPTED}"
    for base in kind.__mro__:
        way = _WAYS.get((base.__module__.partition(".")[0], base.__qualname__))
        if way is not None:
            return f"{got}, which has no transaction of its own: {way}"
    return f"{got}, which rota cannot write on; it accepts {ACCEPTED}; {ANY_OTHER}"


def _needs_transaction(is_open: bool, how: str) -> None:
    if not is_open:
        raise ConfigError(
            "connection= has no open transaction: in autocommit mode every statement would commit "
            f"by itself, before your own work does; {how} first"
        )


# --- one kind each -------------------------------------------------------------------------------


def _sqlite(connection: Any) -> ExternalConnection:
    _needs_transaction(
        connection.in_transaction or connection.isolation_level is not None, "execute BEGIN IMMEDIATE"
    )

    def execute(sql: str, params: Sequence[Any]) -> Any:
        cursor = connection.cursor()
        cursor.row_factory = None  # rows as tuples, whatever the caller has chosen for its own
        return cursor.execute(sql, params)

    return DbApiConnection("sqlite", execute, "qmark")


def _aiosqlite(connection: Any) -> ExternalConnection:
    _needs_transaction(
        connection.in_transaction or connection.isolation_level is not None, "execute BEGIN IMMEDIATE"
    )
    return AsyncDbApiConnection("sqlite", connection.execute, "qmark")


def _psycopg(connection: Any) -> ExternalConnection:
    _needs_transaction(_psycopg_has_transaction(connection), "use `with connection.transaction():`")
    return DbApiConnection("postgresql", _psycopg_execute(connection), "format")


def _psycopg_async(connection: Any) -> ExternalConnection:
    _needs_transaction(_psycopg_has_transaction(connection), "use `async with connection.transaction():`")
    return AsyncDbApiConnection("postgresql", _psycopg_execute(connection), "format")


def _psycopg_execute(connection: Any) -> Callable[..., Any]:
    """Rows as tuples, whatever the caller has chosen for the rows of its own statements."""
    from psycopg.rows import tuple_row

    return lambda sql, params: connection.cursor(row_factory=tuple_row).execute(sql, params)


def _psycopg_has_transaction(connection: Any) -> bool:
    return not connection.autocommit or connection.info.transaction_status.name != "IDLE"


def _psycopg2(connection: Any) -> ExternalConnection:
    from psycopg2.extensions import TRANSACTION_STATUS_IDLE, cursor

    if connection.async_:
        raise ConfigError("connection= got an asynchronous psycopg2 connection, which has no transactions")
    is_open = not connection.autocommit or connection.get_transaction_status() != TRANSACTION_STATUS_IDLE
    _needs_transaction(is_open, "set connection.autocommit = False")

    def execute(sql: str, params: Sequence[Any]) -> Any:
        own = connection.cursor(cursor_factory=cursor)  # rows as tuples
        own.execute(sql, params)
        return own

    return DbApiConnection("postgresql", execute, "format")


def _asyncpg(connection: Any) -> ExternalConnection:
    _needs_transaction(connection.is_in_transaction(), "use `async with connection.transaction():`")
    return AsyncpgConnection(connection)


def _peewee(database: Any) -> Any:
    """The driver's connection of this thread."""
    _needs_transaction(database.in_transaction(), "use `with database.atomic():`")
    return database.connection()


_KINDS: dict[tuple[str, str], Callable[[Any], ExternalConnection]] = {
    ("sqlite3", "Connection"): _sqlite,
    ("aiosqlite", "Connection"): _aiosqlite,
    ("psycopg", "Connection"): _psycopg,
    ("psycopg", "AsyncConnection"): _psycopg_async,
    ("psycopg2", "connection"): _psycopg2,
    ("asyncpg", "Connection"): _asyncpg,
    ("asyncpg", "PoolConnectionProxy"): _asyncpg,
    ("sqlalchemy", "Session"): lambda source: SqlAlchemyConnection(source, True),
    ("sqlalchemy", "scoped_session"): lambda source: SqlAlchemyConnection(source, True),
    ("sqlalchemy", "Connection"): lambda source: SqlAlchemyConnection(source, False),
    ("sqlalchemy", "AsyncSession"): lambda source: AsyncSqlAlchemyConnection(source, True),
    ("sqlalchemy", "async_scoped_session"): lambda source: AsyncSqlAlchemyConnection(source, True),
    ("sqlalchemy", "AsyncConnection"): lambda source: AsyncSqlAlchemyConnection(source, False),
    ("django", "BaseDatabaseWrapper"): DjangoConnection,
    ("django", "ConnectionProxy"): DjangoConnection,
}
# Cursors and wrappers: the connection they belong to.
_LEADS_TO: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("sqlite3", "Cursor"): lambda cursor: cursor.connection,
    ("aiosqlite", "Cursor"): lambda cursor: cursor._conn,
    ("psycopg", "BaseCursor"): lambda cursor: cursor.connection,
    ("psycopg2", "cursor"): lambda cursor: cursor.connection,
    ("sqlalchemy", "_ConnectionFairy"): lambda pooled: pooled.driver_connection,
    ("django", "CursorWrapper"): lambda cursor: cursor.db,
    ("peewee", "Database"): _peewee,
    ("peewee", "Proxy"): lambda proxy: proxy.obj,
}
# What people have at hand that leads to no one connection, and what to pass instead.
_WAYS = {
    (
        "sqlalchemy",
        "Engine",
    ): "pass a session or connection of it, as in `with engine.begin() as connection:`",
    ("sqlalchemy", "AsyncEngine"): "pass a session or connection of it, as in "
    "`async with engine.begin() as connection:`",
    ("sqlalchemy", "sessionmaker"): "pass a session of it, as in `with Session.begin() as session:`",
    (
        "sqlalchemy",
        "async_sessionmaker",
    ): "pass a session of it, as in `async with Session.begin() as session:`",
    ("flask_sqlalchemy", "SQLAlchemy"): "pass db.session",
    ("psycopg_pool", "BasePool"): "pass a connection of it, as in `with pool.connection() as connection:`",
    ("psycopg2", "AbstractConnectionPool"): "pass a connection of it, from pool.getconn()",
    ("asyncpg", "Pool"): "pass a connection of it, as in `async with pool.acquire() as connection:`",
    ("django", "ConnectionHandler"): 'pass one of them, as in connections["default"]',
    ("peewee", "_atomic"): "pass the database itself",
}
