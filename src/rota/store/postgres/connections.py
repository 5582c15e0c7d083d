"""A few connections to the server, opened when needed and dropped when broken.

Owns opening, lending and discarding connections, how long an answer is waited for, and the retry of what
is safe to retry. A connection whose answer did not come in time is closed, never used again. Must never
keep session state that matters (a pooler in transaction mode may stand between): no session locks, and
a SET or a prepared statement only where the server itself is at the other end. The server's version is
checked whenever a connection is opened.
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
from ..forks import current_pid
from .driver_errors import TRANSIENT, ResponseTimeout, is_away, translated
from .rows import ADAPTERS
from .url import MOST_CONNECTIONS

Row = tuple[Any, ...]
Fetch = Callable[..., Awaitable[list[Row]]]

OLDEST_SERVER = 130000
TRIES = 5
# The seconds to wait for each answer of the server, and at most as long for a free connection. A stream
# counts as answered whenever the server takes more of it. Callers with less patience, such as a worker's
# turn, end the wait themselves.
PATIENCE_S = {
    "answer": 10.0,
    "retention": 120.0,  # deletes batches and whole days
    "migration": 3600.0,  # an index on a large table takes its time
}
IDLE_S = 10.0  # without use, after which a connection is given back, unless it is the last
_ABOUT = b"SELECT pg_backend_pid(), current_setting('default_transaction_isolation')"
_READ_COMMITTED = b"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED"
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
    patience_s = PATIENCE_S["answer"]
    idle_since = 0.0  # by the loop's clock
    _watching: asyncio.AbstractEventLoop | None = None
    _socket = -1
    _answered: asyncio.Future[None] | None = None
    _made_by = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._names: dict[tuple[bytes, Sequence[int] | None], bytes] = {}
        self._made_by = current_pid()

    def __del__(self, *args: Any) -> None:
        if self._made_by == current_pid():  # after a fork it is the other process's, and open for good reason
            super().__del__(*args)

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
            loop = asyncio.get_running_loop()
            self._answered = loop.create_future()
            patience = loop.call_later(self.patience_s, self._lose_patience)
            try:
                await self._answered
            finally:
                patience.cancel()
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

    def _lose_patience(self) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ResponseTimeout.after(self.patience_s))

    def _unwatch(self) -> None:
        """Before the socket is closed, or its number may be another's while we still watch it."""
        if self._watching is not None:
            if not self._watching.is_closed():
                self._watching.remove_reader(self._socket)
            self._watching = None

    def _give_up(self) -> None:
        self._unwatch()
        if self.pgconn.transaction_status == pq.TransactionStatus.ACTIVE:
            self.pgconn.finish()

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        self._unwatch()  # the driver watches in its own way
        limit = self.patience_s if timeout is None else timeout
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=limit)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self._give_up()
            raise
        except errors._WaitTimeout:
            if timeout is not None:
                raise
            self._give_up()
            raise ResponseTimeout.after(limit) from None

    async def close(self) -> None:
        self.end()
        await super().close()

    def end(self) -> None:
        """Close it without waiting; the server notices."""
        self._unwatch()
        self.pgconn.finish()


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
    ((process, isolation),) = await connection.ask(_ABOUT, ())
    connection.is_direct = process == connection.pgconn.backend_pid
    if connection.is_direct and isolation != "read committed":  # limits count what others have committed
        await connection.ask(_READ_COMMITTED, ())
    return connection


class Connections:
    """At most as many as the URL allows; without use, all but one are given back."""

    def __init__(self, conninfo: str, shown: str, most: int = MOST_CONNECTIONS) -> None:
        self._conninfo = conninfo
        self._shown = shown
        self._slots = asyncio.Semaphore(most)
        self._idle: list[Connection] = []  # the one used last at the end, and taken first
        self._thrift: asyncio.TimerHandle | None = None
        self._in_use: set[Connection] = set()
        self._lent = 0
        self._waiting = 0
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        await self._discard_idle()

    def abandon(self) -> None:
        self._closed = True
        for connection in (*self._idle, *self._in_use):
            connection.end()
        self._idle.clear()

    def reopen(self) -> None:
        self._closed = False

    async def rows(
        self,
        statement: str,
        params: Sequence[Any] = (),
        *,
        repeatable: bool = True,
        often: bool = False,
        patience: str = "answer",
    ) -> list[Row]:
        """Run one statement in its own transaction and fetch its rows.

        ``repeatable``: running it twice does no harm, so a connection that turns out dead is replaced
        without a word. Otherwise the caller must learn that the answer is unknown.
        """
        for attempt in range(TRIES):
            try:
                async with self.borrow(patience) as connection:
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

    def borrow(self, patience: str = "answer") -> BorrowedConnection:
        """A connection for one unit of work; it comes back only if it is in good order."""
        return BorrowedConnection(self, PATIENCE_S[patience])

    def gauges(self) -> dict[str, float]:
        return {
            "connections_open": self._lent + len(self._idle),
            "connections_idle": len(self._idle),
            "connections_lent": self._lent,
            "connections_waiting": self._waiting,
        }

    async def lend(self) -> Connection:
        if self._slots.locked():
            await self._wait_for_slot()
        else:
            await self._slots.acquire()
        self._lent += 1
        try:
            connection = await self._take()
            self._in_use.add(connection)
            return connection
        except BaseException:
            self._free()
            raise

    async def _wait_for_slot(self) -> None:
        self._waiting += 1
        limit = PATIENCE_S["answer"]
        try:
            async with asyncio.timeout(limit):
                await self._slots.acquire()
        except TimeoutError:
            raise StoreUnavailable(
                f"{self._shown} is not available: all {self._lent} connections have been busy for {limit:g} s"
            ) from None
        finally:
            self._waiting -= 1

    async def take_back(self, connection: Connection, error: BaseException | None) -> None:
        self._in_use.discard(connection)
        try:
            is_lost = isinstance(error, psycopg.Error) and is_away(error)
            if is_lost:  # what broke this one broke the others: do not try them one by one
                await self._discard_idle()
            is_sound = error is None or (isinstance(error, psycopg.Error) and not is_lost)
            if is_sound and not self._closed and _is_idle(connection):
                self._keep(connection)
            else:
                await connection.close()
        finally:
            self._free()

    def _keep(self, connection: Connection) -> None:
        connection.idle_since = asyncio.get_running_loop().time()
        self._idle.append(connection)
        if self._thrift is None:
            self._give_back_unused()

    def _give_back_unused(self) -> None:
        """Close those without use for a while, but for one; look again when the next is due."""
        loop = asyncio.get_running_loop()
        while len(self._idle) > 1 and self._idle[0].idle_since <= loop.time() - IDLE_S:
            self._idle.pop(0).end()
        self._thrift = None
        if len(self._idle) > 1:
            self._thrift = loop.call_at(self._idle[0].idle_since + IDLE_S, self._give_back_unused)

    def _free(self) -> None:
        self._lent -= 1
        self._slots.release()

    async def _take(self) -> Connection:
        if self._closed:
            raise StoreUnavailable(f"{self._shown} is closed: open the store first", is_temporary=False)
        while self._idle:
            connection = self._idle.pop()
            if _is_quiet(connection):
                return connection
            await connection.close()
        return await connect(self._conninfo, self._shown)

    async def _discard_idle(self) -> None:
        if self._thrift is not None:
            self._thrift.cancel()
            self._thrift = None
        while self._idle:
            await self._idle.pop().close()


class BorrowedConnection:
    """``async with`` for a borrowed connection."""

    __slots__ = ("_connection", "_from", "_patience_s")

    def __init__(self, connections: Connections, patience_s: float) -> None:
        self._from = connections
        self._patience_s = patience_s

    async def __aenter__(self) -> Connection:
        self._connection = await self._from.lend()
        self._connection.patience_s = self._patience_s
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
