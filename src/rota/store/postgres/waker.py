"""Hints between processes: sending them, hearing them, waiting for them.

Owns the channels ``rota_wake`` (payload: a queue) and ``rota_done`` (payload: a job). A hint may be
missing: whoever waits also looks for itself now and then. Must never hold up the caller of a verb.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Protocol

from ...errors import RotaError
from ...model import JobId
from .connections import Connections
from .rows import ids

PAUSE_S = 0.005  # between two notifications
GRACE_S = 0.002  # by which an insert may come to take a pending one along
LAST_WORD_S = 0.5
FIRST_LOOK_S = 0.05
LONGEST_LOOK_S = 5.0

# A hint need not be on disk before it is heard.
_NOTIFY = """
SELECT pg_notify('rota_wake', q), set_config('synchronous_commit', 'off', true)
  FROM unnest(CAST(%s AS text[])) AS q
"""
_AWAIT = """
INSERT INTO rota.waiters AS w (id, until)
VALUES (%s, clock_timestamp() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET until = greatest(w.until, excluded.until)
"""
_IS_LIVE = "SELECT 1 FROM rota.states(CAST(%s AS uuid[]), false)"


class HintSubscriber(Protocol):
    """What can be told of a hint."""

    def heard_queue(self, queue: str | None) -> None: ...

    def heard_end(self, job: JobId) -> None: ...


class HintHub:
    """Passes hints on to the wakers of one store object."""

    def __init__(self) -> None:
        self._ears: set[HintSubscriber] = set()

    def add(self, ears: HintSubscriber) -> None:
        self._ears.add(ears)

    def remove(self, ears: HintSubscriber) -> None:
        self._ears.discard(ears)

    def heard_queue(self, queue: str | None) -> None:
        """None: any queue may have got a job, say after a silence."""
        for ears in self._ears:
            ears.heard_queue(queue)

    def heard_end(self, job: JobId) -> None:
        for ears in self._ears:
            ears.heard_end(job)


class HintPublisher:
    """Tells of ready queues: its own process at once, the others at most once per few milliseconds.

    The first insert after a silence takes the notification along in its own transaction. What is
    stored soon after is told by a later insert, or else in a transaction of its own.
    """

    def __init__(self, connections: Connections, board: HintHub) -> None:
        self._connections = connections
        self._board = board
        self._pending: set[str] = set()
        self._quiet_until = 0.0
        self._task: asyncio.Task[None] | None = None

    def takes_along(self) -> bool:
        """Whether the insert about to be sent shall notify by itself; it says so in ``tell``."""
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until:
            return False
        self._quiet_until = now + PAUSE_S
        return True

    def tell(self, queues: Iterable[str], *, told: bool = False) -> None:
        """``told``: the other processes know already."""
        for queue in queues:
            self._board.heard_queue(queue)
            (self._pending.discard if told else self._pending.add)(queue)
        if self._pending and self._task is None:
            self._task = asyncio.ensure_future(self._send())

    async def close(self) -> None:
        """Send what is to be told, unless the server does not listen."""
        if self._task is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._task, LAST_WORD_S)

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._pending:
                if (silence := self._quiet_until - loop.time()) > 0:
                    await asyncio.sleep(silence + GRACE_S)
                    continue
                self._quiet_until = loop.time() + PAUSE_S
                queues = sorted(self._pending)
                self._pending.clear()
                with suppress(RotaError):  # it was only a hint
                    await self._connections.rows(_NOTIFY, (queues,))
        finally:
            self._task = None


class PostgresWaker:
    def __init__(self, connections: Connections, board: HintHub) -> None:
        self._connections = connections
        self._board = board
        self._queues: set[str | None] = set()  # heard of since the last wait, so that none is missed
        self._rang = asyncio.Event()
        self._ends: dict[JobId, list[asyncio.Event]] = {}
        board.add(self)

    async def close(self) -> None:
        self._board.remove(self)

    # --- hearing -----------------------------------------------------------------------------

    def heard_queue(self, queue: str | None) -> None:
        self._queues.add(queue)
        self._rang.set()

    def heard_end(self, job: JobId) -> None:
        for event in self._ends.get(job, ()):
            event.set()

    # --- waiting -----------------------------------------------------------------------------

    async def wait(self, queues: Sequence[str] | None, timeout: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._has_news(queues):
                    self._rang.clear()
                    await self._rang.wait()
        self._queues.clear()

    def _has_news(self, queues: Sequence[str] | None) -> bool:
        if queues is None or None in self._queues:
            return bool(self._queues)
        return not self._queues.isdisjoint(queues)

    async def wait_finished(self, job: JobId, timeout: float) -> None:
        ended = asyncio.Event()
        self._ends.setdefault(job, []).append(ended)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._until_ended(job, ended, timeout)
        finally:
            events = self._ends[job]
            events.remove(ended)
            if not events:
                del self._ends[job]

    async def _until_ended(self, job: JobId, ended: asyncio.Event, timeout: float) -> None:
        """A job that ends while we ask to be told may not tell us: so look, ever more seldom."""
        if not ids((job,)):
            return
        await self._connections.rows(_AWAIT, (job, timeout))
        pause = FIRST_LOOK_S
        while await self._connections.rows(_IS_LIVE, ([job],)):
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await ended.wait()
                    return
            pause = min(pause * 2, LONGEST_LOOK_S)
