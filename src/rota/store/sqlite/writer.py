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

from .address import Address
from .connection import patiently, rollback
from .desk import Desk, Line, Order
from .statements import statement
from .waker import Hub

LARGEST_BATCH = 1000
# While someone waits for other processes: look often at first, then a little less often.
EAGER_S, PATIENT_S, EAGER_LOOKS = 0.002, 0.005, 1000


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


class Writer(Desk[Transaction]):
    def __init__(self, address: Address, hub: Hub) -> None:
        super().__init__("rota-sqlite-writer", address, threads=1)
        self.line = Line(address)
        self._hub = hub
        self._looks = 0  # since anything became ready

    def nudge(self) -> None:
        """Someone began to wait: look now, and keep looking."""
        with self._lock:
            if not self._closed:
                self._start()
                self._orders.put(_LOOK)

    def _line(self) -> Line:
        return self.line

    # --- gathering -------------------------------------------------------------------------------

    def _next(self, line: Line) -> Sequence[Order[Transaction]] | None:
        order = self._first(line)
        if order is None:
            return None
        orders = [order]
        while len(orders) < LARGEST_BATCH and not self._orders.empty():
            following = self._orders.get()
            if following is None:
                self._orders.put(None)  # to be found after this batch
                break
            if following is not _LOOK:
                orders.append(following)
        return orders

    def _first(self, line: Line) -> Order[Transaction] | None:
        while True:
            try:
                order = self._orders.get(timeout=self._pace())
            except Empty:
                order = _LOOK
            if order is not _LOOK:
                return order
            self._look(line)

    def _pace(self) -> float | None:
        if self.address.path is None or not self._hub.is_awaited:
            return None
        return EAGER_S if self._looks < EAGER_LOOKS else PATIENT_S

    def _look(self, line: Line) -> None:
        if self.address.path is None:
            return
        try:
            changed = line.attempt(self._hub.look)
        except Exception:
            return  # a hint is missing; the next write will say what is wrong
        self._looks = 0 if changed else self._looks + 1

    # --- writing ---------------------------------------------------------------------------------

    def _serve(self, line: Line, orders: Sequence[Order[Transaction]]) -> None:
        try:
            line.attempt(self._begin)
        except Exception as error:  # locked or gone: trying each order alone would only take longer
            for order in orders:
                order.error = error
            return
        self._write(line, orders)

    def _write(self, line: Line, orders: Sequence[Order[Transaction]]) -> None:
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
            self._hub.tell(transaction.ready, transaction.finished)
            if transaction.ready:
                self._looks = 0  # business: others will answer soon

    def _begin(self, connection: sqlite3.Connection) -> None:
        patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.address.patience_s)

    def _transact(
        self, connection: sqlite3.Connection, orders: Sequence[Order[Transaction]]
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


class _Look(Order[Transaction]):
    """Not work: a reason to look at the file at once."""

    def __init__(self) -> None:
        pass


_LOOK = _Look()
