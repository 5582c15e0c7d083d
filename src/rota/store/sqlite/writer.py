"""The one thread that writes: group commit, and a look at what other processes have written.

Owns the write transaction. Everything ordered while one commit is on its way shares the next one. A
batch that fails is run again, order by order, so that one bad order harms no other; work may
therefore run twice and must touch nothing but its Transaction.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from queue import Empty
from typing import Any

from .connection import patiently, rollback
from .connection_threads import ConnectionThreads, LazyConnection, StoreCall
from .file_watch import FileWatch, watch
from .statements import statement
from .url import SqliteUrl
from .waker import SqliteHintHub

LARGEST_BATCH = 1000
# While someone waits for other processes: when there is a reason to look, look often at first, for a
# write is heard before its commit can be seen. Then rest: where writes are heard, one look in a while
# is for what was missed; where they are not, looking is all there is.
SOON_S, SLOWER, REST_S, WATCHED_REST_S = 0.0002, 1.1, 0.005, 0.05


class Transaction:
    """A write transaction as the verbs see it, and what it has to tell when it is committed."""

    __slots__ = ("_tally", "connection", "execute", "executemany", "finished", "ready")

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.execute: Callable[..., sqlite3.Cursor] = connection.execute
        self.executemany: Callable[..., sqlite3.Cursor] = connection.executemany
        self.ready: set[str] = set()  # queues that got a job
        self.finished: set[str] = set()  # jobs that ended
        self._tally: Counter[tuple[str, int, str, str]] = Counter()

    def tally(self, state: str, minute: int, queue: str, task: str, n: int = 1) -> None:
        self._tally[state, minute, queue, task] += n

    def write_tally(self) -> None:
        if self._tally:
            self.executemany(statement("count"), [(*what, n) for what, n in self._tally.items() if n])


class Writer(ConnectionThreads[Transaction]):
    def __init__(self, address: SqliteUrl, hub: SqliteHintHub) -> None:
        super().__init__("rota-sqlite-writer", address, threads=1)
        self.line = LazyConnection(address)
        self._hub = hub
        self._pause = SOON_S  # before the next look
        self._watch: FileWatch | None = None
        self._relaxed: sqlite3.Connection | None = None  # the one whose commits do not wait for the disk

    def nudge(self) -> None:
        """Someone began to wait: look now, and keep looking."""
        with self._lock:
            if not self._closed:
                self._start()
                self._orders.put(_LOOK)

    def _line(self) -> LazyConnection:
        return self.line

    # --- gathering -------------------------------------------------------------------------------

    def _next(self, line: LazyConnection) -> Sequence[StoreCall[Transaction]] | None:
        order = self._first(line)
        if order is None:
            return None
        orders = [order]
        while len(orders) < LARGEST_BATCH and not self._orders.empty():
            following = self._orders.get()
            if following is None:
                self._orders.put(None)  # to be found after this batch
                break
            if following is _LOOK:
                self._pause = SOON_S  # after this batch
            else:
                orders.append(following)
        return orders

    def _first(self, line: LazyConnection) -> StoreCall[Transaction] | None:
        while True:
            try:
                order = self._orders.get(timeout=self._pace())
            except Empty:
                pass
            else:
                if order is not _LOOK:
                    return order
                self._pause = SOON_S
            self._look(line)

    def _pace(self) -> float | None:
        if self.address.path is None or not self._hub.is_awaited:
            return None
        watched = self._is_watched()  # also between the eager looks: what is heard then begins them anew
        pause = self._pause
        if pause < REST_S:
            self._pause = pause * SLOWER
            return pause
        return WATCHED_REST_S if watched else REST_S

    def _is_watched(self) -> bool:
        """Hear of the next write to the log, if the system lets us."""
        if self._watch is None:
            self._watch = watch(f"{self.address.path}-wal", lambda: self._orders.put(_LOOK))
        elif not self._watch.arm():  # another log has taken its place
            self._watch.close()
            self._watch = None
        return self._watch is not None and self._watch.arm()

    def _look(self, line: LazyConnection) -> None:
        if self.address.path is None:
            return
        try:
            if line.attempt(self._hub.check_for_commits):
                self._pause = SOON_S
        except Exception:
            return  # a hint is missing; the next write will say what is wrong

    def _run(self) -> None:
        try:
            super()._run()
        finally:
            if self._watch is not None:
                self._watch.close()

    # --- writing ---------------------------------------------------------------------------------

    def _serve(self, line: LazyConnection, orders: Sequence[StoreCall[Transaction]]) -> None:
        durable = any(order.durable for order in orders)
        try:
            line.attempt(lambda connection: self._wait_for_disk(connection, durable))
            line.attempt(self._begin)
        except Exception as error:  # locked or gone: trying each order alone would only take longer
            for order in orders:
                order.error = error
            return
        self._write(line, orders)

    def _write(self, line: LazyConnection, orders: Sequence[StoreCall[Transaction]]) -> None:
        try:
            transaction, results = line.attempt(lambda connection: self._transact(connection, orders))
        except Exception as error:
            if len(orders) == 1:
                orders[0].error = error
                return
            for order in orders:
                self._write(line, (order,))
        else:
            for order, result in zip(orders, results, strict=True):
                order.result = result
            self._hub.publish(transaction.ready, transaction.finished)
            if transaction.ready:
                self._pause = SOON_S  # business: others will answer soon

    def _wait_for_disk(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Whether the next commits do. One that does takes those before it to the disk as well."""
        if self.address.synchronous == "full" and durable is (connection is self._relaxed):
            connection.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
            self._relaxed = None if durable else connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.address.patience_s)

    def _transact(
        self, connection: sqlite3.Connection, orders: Sequence[StoreCall[Transaction]]
    ) -> tuple[Transaction, list[Any]]:
        if not connection.in_transaction:
            self._begin(connection)
        try:
            transaction = Transaction(connection)
            results = [order.work(transaction) for order in orders]
            transaction.write_tally()
            connection.execute("COMMIT")
        except BaseException:
            rollback(connection)
            raise
        return transaction, results


class _ChangeCheck(StoreCall[Transaction]):
    """Not work: a reason to look at the file at once."""

    def __init__(self) -> None:
        pass


_LOOK = _ChangeCheck()
