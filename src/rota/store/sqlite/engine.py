"""What all objects on one file share: the writer, the readers, and the hub of those who wait.

Owns their life: started at first use, started again in a forked child, ended with the last user.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TypeVar

from ...errors import StoreUnavailable
from ...model import InsertResult, NewJob
from ..forks import current_pid
from ..native_threads import native_lock
from . import schema
from .connection import connect, translated
from .connection_threads import LazyConnection, Reader, StoreCall
from .inserts import insert_calls
from .job_pages import is_finished
from .lanes import ClaimMemory
from .url import SqliteUrl
from .waker import SqliteHintHub, SqliteWaker
from .writer import InsertStoreCall, Transaction, Writer

T = TypeVar("T")

READERS = 2  # a slow listing must not hold up the small reads
# Connections of a parent process: closing them in the child could harm the parent's locks.
_inherited: list[object] = []


class Engine:
    def __init__(self, address: SqliteUrl) -> None:
        self.address = address
        self.schema = SqliteSchema(self)
        self._start()

    def _start(self) -> None:
        self._pid = current_pid()
        self._lock = native_lock()
        self._users: set[object] = set()
        self._abandoned: object = None  # a user without a loop: what is in memory stays until it leaves
        self._hub = SqliteHintHub()
        self.memory = ClaimMemory()
        self._writer = Writer(self.address, self._hub, insert_calls, self._note)
        self._reader = Reader("rota-sqlite-reader", self.address, READERS)

    def _note(self, transaction: Transaction) -> None:
        if transaction.tenants:
            self.memory.note_tenants(transaction.tenants)

    def _follow_fork(self) -> None:
        """Threads do not survive a fork, and SQLite connections must not be carried through one."""
        if self._pid == current_pid():
            return
        if self.address.path is None:
            raise StoreUnavailable(
                f"{self.address.url} lives in the memory of process {self._pid}, and this is its forked "
                f"child {current_pid()}: use a database file to share jobs between processes",
                is_temporary=False,
            )
        _inherited.append((self._writer, self._reader, self._hub))
        self._start()

    # --- users -----------------------------------------------------------------------------------

    def enter(self, user: object) -> None:
        """Add the user; the first one after all had left starts the threads again."""
        self._follow_fork()
        with self._lock:
            self._start_threads()
            self._users.add(user)

    def start_threads(self) -> None:
        """Have threads that read and write, also after the last user has ended them."""
        self._follow_fork()
        with self._lock:
            self._start_threads()

    def _start_threads(self) -> None:
        if self._writer.is_closed:
            self._writer = Writer(self.address, self._hub, insert_calls, self._note)
            self._reader = Reader("rota-sqlite-reader", self.address, READERS)

    async def leave(self, user: object) -> None:
        """Remove the user; the last one ends the threads and closes the file."""
        if self._pid != current_pid():
            return
        with self._lock:
            self._users.discard(user)
            if self._users:
                return
            writer, reader = self._writer, self._reader
            writer.refuse()  # who comes from now on starts others
        await reader.close()  # first, so that the writer is the last and tidies the log away
        await writer.close()

    def abandon(self, user: object) -> None:
        """The user's loop has ended. The threads serve any loop, so they continue until it leaves."""
        if self._pid != current_pid():
            return
        with self._lock:
            if user in self._users and user is not self._abandoned:
                self._users.discard(self._abandoned)
                self._abandoned = user

    # --- work ------------------------------------------------------------------------------------

    async def insert(self, jobs: Sequence[NewJob], now: int) -> Sequence[InsertResult]:
        self._follow_fork()
        results: Sequence[InsertResult] = await self._writer.submit(InsertStoreCall(jobs, now))
        return results

    async def write(self, work: Callable[[Transaction], T], durable: bool = True) -> T:
        self._follow_fork()
        result: T = await self._writer.submit(StoreCall(work, durable))
        return result

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._follow_fork()
        if self.address.path is None:
            return await self.write(lambda transaction: work(transaction.connection))
        result: T = await self._reader.submit(StoreCall(work))
        return result

    def waker(self) -> SqliteWaker:
        self._follow_fork()
        return SqliteWaker(
            self._hub, lambda: self._writer.nudge(), lambda job: self.read(partial(is_finished, job=job))
        )

    def backlogs(self) -> Mapping[str, float]:
        """How many calls wait for each kind of thread."""
        return {"sqlite_writer_backlog": self._writer.backlog, "sqlite_reader_backlog": self._reader.backlog}

    def passes_rescue_over(self) -> bool:
        """Asked inside a transaction: whether others should renew their leases before any is taken over."""
        return self._writer.passes_rescue_over()

    @property
    def connection(self) -> LazyConnection:
        """The connection that writes."""
        return self._writer.connection


class SqliteSchema:
    """The tables of one file."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def text(self) -> str:
        return schema.as_text()

    async def migrate(self, *, fresh: bool = False) -> Sequence[str]:
        """A new connection migrates by itself: say what ours did, if it is new."""
        was_open = self._engine.connection.is_open
        where = self._engine.address.path or self._engine.address.url
        self._engine.start_threads()  # the store may be closed; closing it ends them
        if fresh:
            await self._engine.write(lambda transaction: schema.start_again(transaction.connection, where))
            return schema.names()
        await self._engine.write(lambda transaction: None)
        return () if was_open else self._engine.connection.migrated

    async def pending(self) -> Sequence[str]:
        """Reads with a connection of its own, since ours would migrate."""
        if self._engine.address.path is None:
            return () if self._engine.connection.is_open else schema.names()
        return await asyncio.get_running_loop().run_in_executor(None, self._pending)

    def _pending(self) -> Sequence[str]:
        address = self._engine.address
        path = address.path or ""
        if not os.path.exists(path):
            return schema.names()
        try:
            with closing(connect(address)) as connection:
                return schema.lacking(connection, path)
        except sqlite3.Error as error:
            raise translated(error, address) from error
