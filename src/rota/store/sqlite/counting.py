"""The overview, and the tally it rests on. Counts are exact, or capped and said to be estimated."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator

from ...model import FINAL, Overview, QueueDepth, State
from .rows import MINUTE
from .statements import statement
from .writer import Transaction

COUNTED = 200_000  # counting more would cost more than it tells
KEPT_BY_MINUTE = 2 * 1440  # older counts are kept by day


class _Depth:
    """A QueueDepth in the making."""

    def __init__(self) -> None:
        self.queued = self.scheduled = self.running = 0
        self.oldest: int | None = None

    def saw(self, run_at: int) -> None:
        self.oldest = run_at if self.oldest is None else min(self.oldest, run_at)

    def waits(self, now: int) -> float | None:
        return None if self.oldest is None else max(now - self.oldest, 0) / 1_000_000


def overview(connection: sqlite3.Connection, now: int, cap: int = COUNTED) -> Overview:
    queues: defaultdict[str, _Depth] = defaultdict(_Depth)
    estimated = {*_ready(connection, queues, cap), *_later(connection, queues, now, cap)}
    estimated |= {*_running(connection, queues, cap)}
    counts = {state.value: 0 for state in State}
    counts[State.QUEUED] = sum(depth.queued + depth.scheduled for depth in queues.values())
    counts[State.RUNNING] = sum(depth.running for depth in queues.values())
    counts[State.WAITING] = connection.execute(statement("count_waiting"), (cap,)).fetchone()[0]
    for state, n in connection.execute(statement("tally")):
        if state in FINAL:
            counts[state] = n
    waits = [wait for depth in queues.values() if (wait := depth.waits(now)) is not None]
    return Overview(
        counts=counts,
        oldest_due_s=max(waits, default=None),
        queues={
            name: QueueDepth(
                queued=depth.queued,
                scheduled=depth.scheduled,
                running=depth.running,
                oldest_due_s=depth.waits(now),
            )
            for name, depth in sorted(queues.items())
        },
        estimated=frozenset(estimated),
    )


def _ready(connection: sqlite3.Connection, queues: defaultdict[str, _Depth], cap: int) -> Iterator[str]:
    for queue in {row[0] for row in connection.execute(statement("lanes"))}:
        n, oldest = connection.execute(statement("depth_ready"), (queue, cap + 1)).fetchone()
        queues[queue].queued += min(n, cap)
        queues[queue].saw(oldest)
        if n > cap:
            yield State.QUEUED.value


def _later(
    connection: sqlite3.Connection, queues: defaultdict[str, _Depth], now: int, cap: int
) -> Iterator[str]:
    total = 0
    for queue, n, due, first in connection.execute(statement("depth_later"), (now, cap)):
        total += n
        queues[queue].queued += due
        queues[queue].scheduled += n - due
        if due:
            queues[queue].saw(first)
    if total >= cap:
        yield State.QUEUED.value


def _running(connection: sqlite3.Connection, queues: defaultdict[str, _Depth], cap: int) -> Iterator[str]:
    total = 0
    for queue, n in connection.execute(statement("depth_running"), (cap,)):
        total += n
        queues[queue].running += n
    if total >= cap:
        yield State.RUNNING.value


def fold(transaction: Transaction, now: int) -> None:
    """Keep old counts by day: the sums stay, the rows do not pile up."""
    before = now // MINUTE - KEPT_BY_MINUTE
    before -= before % 1440
    transaction.execute(statement("fold_tally"), (before,))
    transaction.execute(statement("forget_folded_tally"), (before,))
