"""Threads that own a connection each and serve callers of any event loop.

Owns the way from an ``await`` to a connection and back: the answers of a batch reach each loop with
one call. Must never know what the work is about.
"""

from __future__ import annotations

import asyncio
import sqlite3
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from ...errors import StoreUnavailable
from ..native_threads import native_lock, native_queue, start_thread
from .connection import connect, decode_anything, is_broken, is_undecodable, patiently, translated
from .schema import migrate
from .url import SqliteUrl

T = TypeVar("T")
C = TypeVar("C")

# How long an answer is waited for, beyond the patience with a lock. A disk that hangs never answers, and
# the thread that waits for it cannot be interrupted.
ANSWER_S = 60.0


class StoreCall(Generic[C]):
    """One piece of work, and the future of the loop that waits for it."""

    __slots__ = ("durable", "error", "future", "loop", "result", "timer", "work")

    def __init__(self, work: Callable[[C], Any], durable: bool = True) -> None:
        self.work = work
        self.durable = durable  # its answer is a promise that a power cut must not break
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: Exception | None = None
        self.timer: asyncio.TimerHandle | None = None

    def limit(self, seconds: float, url: str) -> None:
        """Answer with an error if no answer has come by then."""
        self.timer = self.loop.call_later(seconds, self._lose_patience, seconds, url)

    def _lose_patience(self, seconds: float, url: str) -> None:
        if not self.future.done():
            message = f"{url} is not available: no answer within {seconds:g} s"
            self.future.set_exception(StoreUnavailable(message, is_temporary=False))

    def settle(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.future.done():  # the caller was cancelled meanwhile, or has lost its patience
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


def deliver(calls: Sequence[StoreCall[Any]]) -> None:
    """Answer the callers, with one call into each event loop."""
    loops: defaultdict[asyncio.AbstractEventLoop, list[StoreCall[Any]]] = defaultdict(list)
    for call in calls:
        loops[call.loop].append(call)
    for loop, answered in loops.items():
        with suppress(RuntimeError):  # the loop is closed, and its callers with it
            loop.call_soon_threadsafe(_settle, answered)


def _settle(calls: Sequence[StoreCall[Any]]) -> None:
    for call in calls:
        call.settle()


class LazyConnection:
    """A connection that is opened when needed, and again after it broke."""

    def __init__(self, address: SqliteUrl) -> None:
        self.address = address
        self.migrated: Sequence[str] = ()  # what the first connection had to apply
        self._connection: sqlite3.Connection | None = None

    @property
    def is_open(self) -> bool:
        return self._connection is not None

    def get(self) -> sqlite3.Connection:
        if self._connection is None:
            connection = connect(self.address)
            try:
                self.migrated = migrate(connection, self.address)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def attempt(self, act: Callable[[sqlite3.Connection], T]) -> T:
        """Act on the connection; errors of the driver become errors of rota."""
        try:
            return self._act(act)
        except sqlite3.Error as error:
            if is_broken(error) and self.address.path is not None:
                self.drop()
            raise translated(error, self.address) from error

    def _act(self, act: Callable[[sqlite3.Connection], T]) -> T:
        connection = self.get()
        try:
            return act(connection)
        except sqlite3.OperationalError as error:
            if not is_undecodable(error):
                raise
            decode_anything(connection)
            return act(connection)


class ConnectionThreads(ABC, Generic[C]):
    """A queue of calls and the threads that serve it."""

    def __init__(self, name: str, address: SqliteUrl, threads: int) -> None:
        self.address = address
        self._name = name
        self._calls: SimpleQueue[StoreCall[C] | None] = native_queue()
        self._lock = native_lock()
        self._threads: list[Future[None]] = []  # each is done when its thread has ended
        self._wanted = threads
        self._closed = False

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def backlog(self) -> int:
        return self._calls.qsize()

    def submit(self, call: StoreCall[C]) -> asyncio.Future[Any]:
        """Have a thread do the work of the call; its result, or its error."""
        with self._lock:
            if self._closed:
                message = f"{self.address.url} is closed; open it again first"
                raise StoreUnavailable(message, is_temporary=False)
            self._start()
            call.limit(ANSWER_S + self.address.patience_s, self.address.url)
            self._calls.put(call)
        return call.future

    def refuse(self) -> None:
        """Take no more calls; ``close`` ends the threads."""
        with self._lock:
            self._closed = True

    async def close(self) -> None:
        """Serve what was ordered before, then end the threads and close their connections."""
        with self._lock:
            self._closed = True
            threads, self._threads = self._threads, []
            for _ in threads:
                self._calls.put(None)
        if threads:  # one that a disk holds for longer ends with the process
            ended = [asyncio.wrap_future(thread) for thread in threads]
            await asyncio.wait(ended, timeout=ANSWER_S + self.address.patience_s)

    def _start(self) -> None:
        for number in range(len(self._threads), self._wanted):
            self._threads.append(start_thread(self._run, f"{self._name}-{number}"))

    def _run(self) -> None:
        lazy = self._new_connection()
        try:
            while (calls := self._next(lazy)) is not None:
                self._serve(lazy, [call for call in calls if not call.future.done()])
                deliver(calls)
                del calls  # a thread that waits must not keep answers alive
        finally:
            lazy.drop()

    def _new_connection(self) -> LazyConnection:
        return LazyConnection(self.address)

    @abstractmethod
    def _next(self, lazy: LazyConnection) -> Sequence[StoreCall[C]] | None:
        """The next batch, waiting for it; None to end."""

    @abstractmethod
    def _serve(self, lazy: LazyConnection, calls: Sequence[StoreCall[C]]) -> None:
        """Do the work of the batch; each call gets its result or its error. Must not raise."""


class Reader(ConnectionThreads[sqlite3.Connection]):
    """Reads each see one snapshot; they never wait for the writer, nor the writer for them."""

    def _next(self, lazy: LazyConnection) -> Sequence[StoreCall[sqlite3.Connection]] | None:
        call = self._calls.get()
        return None if call is None else (call,)

    def _serve(self, lazy: LazyConnection, calls: Sequence[StoreCall[sqlite3.Connection]]) -> None:
        for call in calls:
            try:
                call.result = lazy.attempt(partial(self._read, call.work))
            except Exception as error:
                call.error = error

    def _read(self, work: Callable[[sqlite3.Connection], T], connection: sqlite3.Connection) -> T:
        # readers meet a lock only while the log is recovered or tidied away
        return patiently(lambda: _snapshot(connection, work), self.address.patience_s)


def _snapshot(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], T]) -> T:
    connection.execute("BEGIN")
    try:
        return work(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
