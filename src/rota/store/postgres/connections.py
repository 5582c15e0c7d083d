"""A few connections to the server, opened when needed and dropped when broken.

Owns opening, lending and discarding connections, and the retry of what is safe to retry. Must never
keep session state (a pooler in transaction mode may stand between): no prepared statements, no SET,
no session locks. The server's version is checked whenever a connection is opened.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, pq, waiting
from psycopg.abc import RV, PQGen

from ...errors import StoreError, StoreUnavailable
from .faults import TRANSIENT, is_away, translated
from .rows import ADAPTERS

Row = tuple[Any, ...]
Fetch = Callable[..., Awaitable[list[Row]]]

OLDEST_SERVER = 130000
TRIES = 5
OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "application_name": "rota",
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class Connection(AsyncConnection[Row]):
    """A connection that is closed when its caller gives up in the middle of a statement.

    The driver would ask the server to cancel, for up to ten seconds: too long for a caller whose
    patience ended because the server does not answer.
    """

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except (asyncio.CancelledError, KeyboardInterrupt):
            if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
                self.pgconn.finish()
            raise


async def connect(conninfo: str, shown: str) -> Connection:
    """A fresh connection in autocommit mode; what the URL says comes before our defaults."""
    given = psycopg.conninfo.conninfo_to_dict(conninfo)
    options = {name: value for name, value in OPTIONS.items() if name not in given}
    try:
        connection = await Connection.connect(
            conninfo, autocommit=True, prepare_threshold=None, context=ADAPTERS, **options
        )
    except psycopg.Error as error:
        raise translated(error, shown) from error
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        await connection.close()
        raise StoreError(
            f"{shown} runs PostgreSQL {version // 10000}, but rota needs 13 or newer: upgrade the server"
        )
    return connection


class Connections:
    def __init__(self, conninfo: str, shown: str, most: int = 4) -> None:
        self._conninfo = conninfo
        self._shown = shown
        self._slots = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        await self._discard_idle()

    def reopen(self) -> None:
        self._closed = False

    async def rows(self, statement: str, params: Sequence[Any] = (), *, repeatable: bool = True) -> list[Row]:
        """Run one statement in its own transaction and fetch its rows.

        ``repeatable``: running it twice does no harm, so a connection that turns out dead is replaced
        without a word. Otherwise the caller must learn that the answer is unknown.
        """
        for attempt in range(TRIES):
            try:
                async with self.borrow() as connection:
                    cursor = await connection.execute(statement.encode(), params)
                    return await cursor.fetchall() if cursor.description else []
            except TRANSIENT as error:
                if attempt == TRIES - 1:
                    raise translated(error, self._shown) from error
            except psycopg.Error as error:
                if not (repeatable and attempt == 0 and is_away(error)):
                    raise translated(error, self._shown) from error
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Fetch]:
        """Several reads that all see the store as it was at one moment."""
        try:
            async with self.borrow() as connection, connection.transaction():
                await connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

                async def fetch(statement: str, params: Sequence[Any] = ()) -> list[Row]:
                    return await (await connection.execute(statement.encode(), params)).fetchall()

                yield fetch
        except psycopg.Error as error:
            raise translated(error, self._shown) from error

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[Connection]:
        """A connection for one unit of work; it comes back only if it is in good order."""
        async with self._slots:
            connection = await self._take()
            sound = False
            try:
                yield connection
                sound = True
            except psycopg.Error as error:
                sound = not is_away(error)
                if not sound:  # what broke this one broke the others: do not try them one by one
                    await self._discard_idle()
                raise
            finally:
                if sound and not self._closed and _is_idle(connection):
                    self._idle.append(connection)
                else:
                    await connection.close()

    async def _take(self) -> Connection:
        if self._closed:
            raise StoreUnavailable(f"{self._shown} is closed: open the store first")
        while self._idle:
            connection = self._idle.pop()
            if _is_quiet(connection):
                return connection
            await connection.close()
        return await connect(self._conninfo, self._shown)

    async def _discard_idle(self) -> None:
        while self._idle:
            await self._idle.pop().close()


def _is_idle(connection: Connection) -> bool:
    return connection.pgconn.transaction_status == pq.TransactionStatus.IDLE


def _is_quiet(connection: Connection) -> bool:
    """Whether an unused connection is still good: the server says nothing to it unless it is leaving."""
    if connection.closed:
        return False
    if not hasattr(select, "poll"):  # Windows: learn it the hard way
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return not poll.poll(0)
