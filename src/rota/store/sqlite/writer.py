"""The one thread that writes: group commit, and a check for what other processes have written.

Owns the write transaction. All calls that arrive during one commit share the next one. A
batch that fails is run again, call by call, so that one bad call harms no other; work may
therefore run twice and must touch nothing but its Transaction.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from queue import Empty
from time import monotonic
from typing import Any

from ...model import NewJob
from .connection import patiently, rollback
from .connection_threads import ConnectionThreads, LazyConnection, StoreCall
from .file_watch import FileWatch, watch
from .rows import DAY
from .statements import statement
from .url import SqliteUrl
from .waker import SqliteHintHub

LARGEST_BATCH = 1000
# While someone waits for other processes: when there is a reason to look, look often at first, for a
# write is heard before its commit can be seen. Then rest: where writes are heard, one look in a while
# is for what was missed; where they are not, looking is all there is.
SOON_S, SLOWER, REST_S, WATCHED_REST_S = 0.0002, 1.1, 0.005, 0.05
SCHEDULES_S = 0.25  # while only a scheduler waits, for its worker is busy: not worth more
STALL_S = 1.0  # a batch that takes longer: another process holds the lock, or this one gets no processor
RENEWAL_S = 2.0  # after a stall, for other processes to renew their leases
MOST_PASSED_OVER = 5


class Transaction:
    """A write transaction, and the hints to publish when it is committed."""

    __slots__ = (
        "_runs",
        "_tally",
        "connection",
        "execute",
        "executemany",
        "finished",
        "ready",
        "schedules",
        "tenants",
    )

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.execute: Callable[..., sqlite3.Cursor] = connection.execute
        self.executemany: Callable[..., sqlite3.Cursor] = connection.executemany
        self.ready: set[str] = set()  # queues that got a job
        self.finished: set[str] = set()  # jobs that ended
        self.tenants: set[tuple[str, int, str]] = set()  # that got a job, by queue and rank
        self.schedules = False  # whether one was added or edited
        self._tally: Counter[tuple[str, int, str, str]] = Counter()
        self._runs: list[tuple[str | int, ...]] = []

    def tally(self, state: str, minute: int, queue: str, task: str, n: int = 1) -> None:
        self._tally[state, minute, queue, task] += n

    def count_run(
        self, tenant: str, schedule: str, state: str, ended: int, took: int | None = None, step: int = 1
    ) -> None:
        """Count the end of a schedule's run; ``step`` -1 takes its outcome back, not its duration."""
        outcomes = [step if state == one else 0 for one in ("succeeded", "failed", "cancelled")]
        timed = 0 if took is None else 1
        self._runs.append((tenant, schedule, ended // DAY, *outcomes, timed, took or 0, took or 0))

    def write_tally(self) -> None:
        if self._runs:
            self.executemany(statement("count_run"), self._runs)
        if self._tally:
            self.executemany(statement("count"), [(*what, n) for what, n in self._tally.items() if n])


class InsertStoreCall(StoreCall[Transaction]):
    """The insert of one caller. It has no work of its own: the writer does that of all of them."""

    __slots__ = ("jobs", "now")

    def __init__(self, jobs: Sequence[NewJob], now: int) -> None:
        super().__init__(_nothing)
        self.jobs = jobs
        self.now = now


def _nothing(transaction: Transaction) -> None:
    pass


Insert = Callable[[Transaction, Sequence[tuple[Sequence[NewJob], int]]], Sequence[Any]]


class Writer(ConnectionThreads[Transaction]):
    def __init__(
        self,
        address: SqliteUrl,
        hub: SqliteHintHub,
        insert: Insert,
        note: Callable[[Transaction], None] = _nothing,
    ) -> None:
        super().__init__("rota-sqlite-writer", address, threads=1)
        self._insert = insert
        self._note = note  # called after each commit
        self.connection = LazyConnection(address)
        self._hub = hub
        self._pause = SOON_S  # before the next check
        self._watch: FileWatch | None = None
        self._relaxed: sqlite3.Connection | None = None  # the one whose commits do not wait for the disk
        self._stalled_at = float("-inf")
        self._passed_over = 0

    def nudge(self) -> None:
        """Someone began to wait: check now, and keep checking."""
        with self._lock:
            if not self._closed:
                self._start()
                self._calls.put(_CHECK)

    def _new_connection(self) -> LazyConnection:
        return self.connection

    # --- gathering -------------------------------------------------------------------------------

    def _next(self, lazy: LazyConnection) -> Sequence[StoreCall[Transaction]] | None:
        call = self._first(lazy)
        if call is None:
            return None
        calls = [call]
        while len(calls) < LARGEST_BATCH and not self._calls.empty():
            following = self._calls.get()
            if following is None:
                self._calls.put(None)  # to be found after this batch
                break
            if following is _CHECK:
                self._pause = SOON_S  # after this batch
            else:
                calls.append(following)
        return calls

    def _first(self, lazy: LazyConnection) -> StoreCall[Transaction] | None:
        while True:
            try:
                call = self._calls.get(timeout=self._pace())
            except Empty:
                pass
            else:
                if call is not _CHECK:
                    return call
                self._pause = SOON_S
            self._check_for_changes(lazy)

    def _pace(self) -> float | None:
        if self.address.path is None or not self._hub.has_sleepers:
            return None
        if not self._hub.is_awaited:
            return SCHEDULES_S
        watched = self._is_watched()  # also between the eager checks: what is heard then starts them again
        pause = self._pause
        if pause < REST_S:
            self._pause = pause * SLOWER
            return pause
        return WATCHED_REST_S if watched else REST_S

    def _is_watched(self) -> bool:
        """Be notified of the next write to the log, if the system can do that."""
        if self._watch is None:
            self._watch = watch(f"{self.address.path}-wal", lambda: self._calls.put(_CHECK))
        elif not self._watch.arm():  # another log has taken its place
            self._watch.close()
            self._watch = None
        return self._watch is not None and self._watch.arm()

    def _check_for_changes(self, lazy: LazyConnection) -> None:
        if self.address.path is None:
            return
        try:
            if lazy.attempt(self._hub.check_for_commits):
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

    def _serve(self, lazy: LazyConnection, calls: Sequence[StoreCall[Transaction]]) -> None:
        durable, began = any(call.durable for call in calls), monotonic()
        try:
            lazy.attempt(lambda connection: self._wait_for_disk(connection, durable))
            lazy.attempt(self._begin)
        except Exception as error:  # locked or gone: trying each call alone would only take longer
            for call in calls:
                call.error = error
            return
        finally:
            self._note_stall(began)
        self._write(lazy, calls)
        self._note_stall(began)

    def _note_stall(self, began: float) -> None:
        if monotonic() - began > STALL_S:
            self._stalled_at = monotonic()

    def passes_rescue_over(self) -> bool:
        """Whether no one could write until a moment ago: leases have expired that are renewed at once now.

        Never for long: where every write takes that long, some rescues are let through.
        """
        is_recent = monotonic() - self._stalled_at < RENEWAL_S and self._passed_over < MOST_PASSED_OVER
        self._passed_over = self._passed_over + 1 if is_recent else 0
        return is_recent

    def _write(self, lazy: LazyConnection, calls: Sequence[StoreCall[Transaction]]) -> None:
        try:
            transaction = lazy.attempt(lambda connection: self._transact(connection, calls))
        except Exception as error:
            if len(calls) == 1:
                calls[0].error = error
                return
            for call in calls:
                self._write(lazy, (call,))
        else:
            self._note(transaction)
            self._hub.publish(transaction.ready, transaction.finished, schedules=transaction.schedules)
            if transaction.ready:
                self._pause = SOON_S  # others will react soon

    def _wait_for_disk(self, connection: sqlite3.Connection, durable: bool) -> None:
        """Whether the next commits do. One that does takes those before it to the disk as well."""
        if self.address.synchronous == "full" and durable is (connection is self._relaxed):
            connection.execute(f"PRAGMA synchronous = {'full' if durable else 'normal'}")
            self._relaxed = None if durable else connection

    def _begin(self, connection: sqlite3.Connection) -> None:
        patiently(lambda: connection.execute("BEGIN IMMEDIATE"), self.address.patience_s)

    def _transact(
        self, connection: sqlite3.Connection, calls: Sequence[StoreCall[Transaction]]
    ) -> Transaction:
        if not connection.in_transaction:
            self._begin(connection)
        try:
            transaction = Transaction(connection)
            _work(transaction, calls, self._insert)
            transaction.write_tally()
            connection.execute("COMMIT")
        except BaseException:
            rollback(connection)
            raise
        return transaction


def _work(transaction: Transaction, calls: Sequence[StoreCall[Transaction]], insert: Insert) -> None:
    """Inserts come first, those of all callers together: that takes fewer statements."""
    inserts = [call for call in calls if isinstance(call, InsertStoreCall)]
    if inserts:
        results = insert(transaction, [(call.jobs, call.now) for call in inserts])
        for call, result in zip(inserts, results, strict=True):
            call.result = result
    for other in calls:
        if not isinstance(other, InsertStoreCall):
            other.result = other.work(transaction)


class _ChangeCheck(StoreCall[Transaction]):
    """Not work: a reason to check the file at once."""

    def __init__(self) -> None:
        pass


_CHECK = _ChangeCheck()
