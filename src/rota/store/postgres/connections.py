"""A few connections to the server, opened when needed and dropped when broken.

Owns opening, lending and discarding connections, and the retry of what is safe to retry. Must never
keep session state that matters (a pooler in transaction mode may stand between): no SET, no session
locks, and prepared statements only where the server itself is at the other end. The server's version
is checked whenever a connection is opened.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import AsyncConnection, errors, generators, pq, waiting
from psycopg.abc import RV, PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq.abc import PGresult

from ...errors import StoreError, StoreUnavailable
from .driver_errors import TRANSIENT, is_away, translated
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
    """A connection with a short way for single statements.

    ``ask`` goes past the driver's cursors, which cost more than most of our statements do: parameters
    and rows are adapted by the driver as usual, but the socket is registered once instead of again for
    each answer.

    It is closed when its caller gives up in the middle of a statement. The driver would ask the
    server to cancel, for up to ten seconds: too long for a caller whose patience ended because the
    server does not answer.
    """

    is_direct = False
    _watching: asyncio.AbstractEventLoop | None = None
    _socket = -1
    _answered: asyncio.Future[None] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names: dict[tuple[bytes, Sequence[int] | None], bytes] = {}

    async def ask(self, statement: bytes, params: Sequence[Any], often: bool = False) -> list[Row]:
        """The rows of one statement, its parameters written as $1, $2 …, in a transaction of its own.

        ``often``: let the server keep it, if there is no pooler in between.
        """
        adapt = Transformer(self)
        values = adapt.dump_sequence(params, [PyFormat.AUTO] * len(params))
        if often and self.is_direct:
            name = await self._kept(statement, adapt.types)
            self.pgconn.send_query_prepared(name, values, param_formats=adapt.formats)
        else:
            self.pgconn.send_query_params(
                statement, values, param_types=adapt.types, param_formats=adapt.formats
            )
        result = await self._result()
        if result.status == pq.ExecStatus.TUPLES_OK:
            adapt.set_pgresult(result)
            return adapt.load_rows(0, result.ntuples, tuple)
        if result.status == pq.ExecStatus.COMMAND_OK:
            return []
        raise errors.error_from_result(result, self.info.encoding)

    async def _kept(self, statement: bytes, types: Sequence[int] | None) -> bytes:
        name = self._names.get((statement, types))
        if name is None:
            name = b"rota_%d" % len(self._names)
            self.pgconn.send_prepare(name, statement, param_types=types)
            result = await self._result()
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise errors.error_from_result(result, self.info.encoding)
            self._names[statement, types] = name
        return name

    async def _result(self) -> PGresult:
        if self.pgconn.flush():  # more than the socket takes at once
            results: list[PGresult] = await self.wait(generators.execute(self.pgconn))
            return results[-1]
        try:
            last = None
            while (result := await self._next_result()) is not None:
                last = result
        except BaseException:
            self._give_up()
            raise
        if last is None:
            raise psycopg.OperationalError("the server did not answer")
        return last

    async def _next_result(self) -> PGresult | None:
        if self.pgconn.is_busy():
            if self._watching is None:
                self._watching = asyncio.get_running_loop()
                self._socket = self.pgconn.socket
                self._watching.add_reader(self._socket, self._on_readable)
            self._answered = asyncio.get_running_loop().create_future()
            await self._answered
        return self.pgconn.get_result()

    def _on_readable(self) -> None:
        """Take in what came; to an idle connection the server speaks only when it is leaving."""
        asked = self._answered if self._answered is not None and not self._answered.done() else None
        try:
            self.pgconn.consume_input()
            # A large answer comes in many pieces: a busy loop would take one per round.
            while asked is not None and self.pgconn.is_busy() and not _is_quiet(self):
                self.pgconn.consume_input()
        except psycopg.Error as error:
            self._unwatch()
            if asked is not None:
                asked.set_exception(error)
            return
        if asked is not None and not self.pgconn.is_busy():
            asked.set_result(None)

    def _unwatch(self) -> None:
        """Before the socket is closed, or its number may be another's while we still watch it."""
        if self._watching is not None:
            self._watching.remove_reader(self._socket)
            self._watching = None

    def _give_up(self) -> None:
        self._unwatch()
        if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
            self.pgconn.finish()

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        self._unwatch()  # the driver watches in its own way
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._give_up()
            raise

    async def close(self) -> None:
        self._unwatch()
        await super().close()


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
    # A pooler hides the process it speaks to; there a prepared statement may meet another process.
    ((process,),) = await connection.ask(b"SELECT pg_backend_pid()", ())
    connection.is_direct = process == connection.pgconn.backend_pid
    return connection


class Connections:
    def __init__(self, conninfo: str, shown: str, most: int = 4) -> None:
        self._conninfo = conninfo
        self._shown = shown
        self._slots = asyncio.Semaphore(most)
        self._idle: list[Connection] = []
        self._lent = 0
        self._waiting = 0
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        await self._discard_idle()

    def reopen(self) -> None:
        self._closed = False

    async def rows(
        self, statement: str, params: Sequence[Any] = (), *, repeatable: bool = True, often: bool = False
    ) -> list[Row]:
        """Run one statement in its own transaction and fetch its rows.

        ``repeatable``: running it twice does no harm, so a connection that turns out dead is replaced
        without a word. Otherwise the caller must learn that the answer is unknown.
        """
        for attempt in range(TRIES):
            try:
                async with self.borrow() as connection:
                    return await connection.ask(numbered(statement), params, often)
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

    def borrow(self) -> BorrowedConnection:
        """A connection for one unit of work; it comes back only if it is in good order."""
        return BorrowedConnection(self)

    def gauges(self) -> dict[str, float]:
        return {
            "connections_open": self._lent + len(self._idle),
            "connections_idle": len(self._idle),
            "connections_lent": self._lent,
            "connections_waiting": self._waiting,
        }

    async def lend(self) -> Connection:
        self._waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self._waiting -= 1
        self._lent += 1
        try:
            return await self._take()
        except BaseException:
            self._free()
            raise

    async def take_back(self, connection: Connection, error: BaseException | None) -> None:
        try:
            is_lost = isinstance(error, psycopg.Error) and is_away(error)
            if is_lost:  # what broke this one broke the others: do not try them one by one
                await self._discard_idle()
            is_sound = error is None or (isinstance(error, psycopg.Error) and not is_lost)
            if is_sound and not self._closed and _is_idle(connection):
                self._idle.append(connection)
            else:
                await connection.close()
        finally:
            self._free()

    def _free(self) -> None:
        self._lent -= 1
        self._slots.release()

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


class BorrowedConnection:
    """``async with`` for a borrowed connection."""

    __slots__ = ("_connection", "_from")

    def __init__(self, connections: Connections) -> None:
        self._from = connections

    async def __aenter__(self) -> Connection:
        self._connection = await self._from.lend()
        return self._connection

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self._from.take_back(self._connection, error)


@lru_cache(maxsize=256)
def numbered(statement: str) -> bytes:
    """The statement as the server reads it: ``%s`` becomes $1, $2 …"""
    first, *others = statement.split("%s")
    return "".join([first, *(f"${n}{text}" for n, text in enumerate(others, 1))]).encode()


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
