"""Hints that a job became ready or has ended.

Commits of this process tell their wakers directly. Commits of others show in ``data_version``, which
the writer's thread reads every few milliseconds while someone waits; it changes with any write, so
the hub looks whether there is anything for those who wait before it wakes them.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence, Set
from contextlib import suppress
from threading import Lock
from weakref import WeakSet

from ...model import FINAL
from .rows import as_json
from .statements import statement


class Wait:
    """One sleeper: for work in some queues (None: any), or for the end of a job."""

    __slots__ = ("_future", "_loop", "job", "queues")

    def __init__(self, queues: frozenset[str] | None, job: str | None) -> None:
        self.queues = queues
        self.job = job
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def wake(self) -> None:
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def over(self, timeout: float) -> None:
        # Not wait_for: in Python 3.11 it forgets a cancellation that meets the wake-up.
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._future


class SqliteHintHub:
    """Everyone who waits on one store object. Used from all threads, hence the lock."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._wakers: WeakSet[SqliteWaker] = WeakSet()  # many are never closed
        self._sleepers: set[Wait] = set()
        self._seen: int | None = None  # data_version when last looked at
        self._next_due: int | None = None

    @property
    def is_awaited(self) -> bool:
        return bool(self._sleepers)

    def join(self, waker: SqliteWaker) -> None:
        with self._lock:
            self._wakers.add(waker)

    def leave(self, waker: SqliteWaker) -> None:
        with self._lock:
            self._wakers.discard(waker)

    def begin(self, wait: Wait, waker: SqliteWaker | None = None) -> bool:
        """Count the sleeper in; False if its waker was told of something while it was awake."""
        with self._lock:
            if waker is not None and waker.was_told(wait.queues):
                return False
            self._sleepers.add(wait)
            return True

    def end(self, wait: Wait) -> None:
        with self._lock:
            self._sleepers.discard(wait)

    def tell(self, ready: Set[str], finished: Set[str]) -> None:
        """These queues have something to do, these jobs have ended."""
        if not (ready or finished):
            return
        with self._lock:
            for waker in self._wakers if ready else ():
                waker.told |= ready
            for wait in self._sleepers:
                if wait.job in finished if wait.job is not None else _meets(wait.queues, ready):
                    wait.wake()

    def look(self, connection: sqlite3.Connection) -> bool:
        """Whether another connection has committed since the last look; tell whom it concerns."""
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._seen:
            return False
        self._seen = version
        self.tell(self._ready(connection), self._finished(connection))
        return True

    def _ready(self, connection: sqlite3.Connection) -> Set[str]:
        ready = {row[0] for row in connection.execute(statement("lanes"))}
        due = connection.execute(statement("next_due")).fetchone()[0]
        if due is not None and (self._next_due is None or due < self._next_due):
            # whoever sleeps until the job that was next must hear of the earlier one
            ready |= self._queues_awaited()
        self._next_due = due
        return ready

    def _queues_awaited(self) -> Set[str]:
        with self._lock:
            asked = [wait.queues for wait in self._sleepers if wait.job is None]
        return {ANY}.union(*(queues for queues in asked if queues is not None))

    def _finished(self, connection: sqlite3.Connection) -> Set[str]:
        with self._lock:
            asked = {wait.job for wait in self._sleepers if wait.job is not None}
        if not asked:
            return frozenset()
        live = {
            id for id, state in connection.execute(statement("states"), (as_json(sorted(asked)),))
            if state not in FINAL
        }  # fmt: skip
        return asked - live


ANY = ""  # no queue has this name; stands for one that only a sleeper for all queues hears of


def _meets(asked: frozenset[str] | None, ready: Set[str]) -> bool:
    return bool(ready) if asked is None else not asked.isdisjoint(ready)


class SqliteWaker:
    """Remembers what it was told between two waits, so that no hint falls into the gap."""

    def __init__(
        self, hub: SqliteHintHub, nudge: Callable[[], None], has_ended: Callable[[str], Awaitable[bool]]
    ) -> None:
        self._hub = hub
        self._nudge = nudge
        self._has_ended = has_ended
        self.told: set[str] = set()
        hub.join(self)

    def was_told(self, queues: frozenset[str] | None) -> bool:
        """Called by the hub, under its lock."""
        was = _meets(queues, self.told)
        self.told.clear()
        return was

    async def wait(self, queues: Sequence[str] | None, timeout: float) -> None:
        wait = Wait(None if queues is None else frozenset(queues), None)
        if not self._hub.begin(wait, self):
            return
        try:
            self._nudge()
            await wait.over(timeout)
        finally:
            self._hub.end(wait)
            self.told.clear()  # the caller looks now

    async def wait_finished(self, job: str, timeout: float) -> None:
        wait = Wait(None, job)
        self._hub.begin(wait)
        try:
            if await self._has_ended(job):  # it ended before we were counted in
                return
            self._nudge()
            await wait.over(timeout)
        finally:
            self._hub.end(wait)

    async def close(self) -> None:
        self._hub.leave(self)
