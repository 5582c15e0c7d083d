"""Wake-ups within one store object: who waits for what, and what became known between two waits.

Owns the waiting. Must never do I/O: a store publishes what its commits did and what it learns from
other processes. Any thread may publish and any event loop may wait.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import reduce
from weakref import WeakSet

from ..model import JobId
from .native_threads import native_lock

ANY_QUEUE = None  # published when any queue may have a job, say after a reconnection

Queues = Collection[str | None]
Announced = int | None  # jobs that another process announced; None: look at once, whatever there is


class Wait:
    """One sleeper: for work in some queues (None: any), for the end of a job, or for changed schedules."""

    __slots__ = ("_future", "_loop", "announced", "is_woken", "job", "queues", "schedules")

    def __init__(
        self, queues: frozenset[str] | None = None, job: JobId | None = None, *, schedules: bool = False
    ) -> None:
        self.queues = queues
        self.job = job
        self.schedules = schedules
        self.announced: Announced = 0
        self.is_woken = False
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._loop.create_future()

    def wake(self, announced: Announced) -> None:
        self.announced = _sum(self.announced, announced)
        self.is_woken = True
        with suppress(RuntimeError):  # its loop is closed
            self._loop.call_soon_threadsafe(self._end)

    def concerns(self, ready: Queues, finished: Collection[JobId], schedules: bool) -> bool:
        if self.schedules:
            return schedules
        return self.job in finished if self.job is not None else _concerns(self.queues, ready)

    def _end(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def until_woken(self, timeout: float) -> bool:
        """Whether it was woken within ``timeout`` seconds."""
        # Not wait_for: in Python 3.11 it loses a cancellation that meets the wake-up.
        await asyncio.wait((self._future,), timeout=timeout)
        return self.is_woken


class HintHub:
    """Everyone who waits on one store object."""

    def __init__(self) -> None:
        self._lock = native_lock()
        self._wakers: WeakSet[HubWaker] = WeakSet()  # many are never closed
        self._sleepers: set[Wait] = set()

    @property
    def is_awaited(self) -> bool:
        """Whether someone waits for jobs."""
        with self._lock:
            return any(not wait.schedules for wait in self._sleepers)

    @property
    def has_sleepers(self) -> bool:
        return bool(self._sleepers)

    def awaited_jobs(self) -> set[JobId]:
        with self._lock:
            return {wait.job for wait in self._sleepers if wait.job is not None}

    def publish(
        self,
        ready: Queues,
        finished: Collection[JobId] = (),
        announced: Announced = None,
        *,
        schedules: bool = False,
    ) -> None:
        """These queues may have a job to run, these jobs may have finished, schedules may have changed."""
        if not (ready or finished or schedules):
            return
        with self._lock:
            for waker in self._wakers if ready or schedules else ():
                waker.note(ready, announced)
                waker.heard_schedules |= schedules
            for wait in self._sleepers:
                if wait.concerns(ready, finished, schedules):
                    wait.wake(announced)

    def join(self, waker: HubWaker) -> None:
        with self._lock:
            self._wakers.add(waker)

    def leave(self, waker: HubWaker) -> None:
        with self._lock:
            self._wakers.discard(waker)

    def begin(self, wait: Wait, waker: HubWaker | None = None) -> bool:
        """Add the sleeper; False if its waker received a hint while it was awake."""
        with self._lock:
            if waker is not None and wait.schedules:
                if waker.heard_schedules:
                    waker.heard_schedules = False
                    wait.is_woken = True
                    return False
            elif waker is not None:
                heard = [n for queue, n in waker.heard.items() if _concerns(wait.queues, (queue,))]
                waker.heard.clear()
                if heard:
                    wait.announced = reduce(_sum, heard)
                    return False
            self._sleepers.add(wait)
            return True

    def end(self, wait: Wait, waker: HubWaker | None = None) -> None:
        """Remove the sleeper; what its waker heard meanwhile, ``wait`` says. Nothing is lost in between."""
        with self._lock:
            self._sleepers.discard(wait)
            if waker is not None and wait.schedules:
                waker.heard_schedules = False
            elif waker is not None:
                waker.heard.clear()


def _concerns(asked: frozenset[str] | None, ready: Queues) -> bool:
    if asked is None or ANY_QUEUE in ready:
        return bool(ready)
    return not asked.isdisjoint(ready)


def _sum(one: Announced, other: Announced) -> Announced:
    return None if one is None or other is None else one + other


class HubWaker(ABC):
    """Remembers what it heard between two waits, so that no hint is lost in the gap."""

    def __init__(self, hub: HintHub) -> None:
        self._hub = hub
        self.heard: dict[str | None, Announced] = {}
        self.heard_schedules = False
        hub.join(self)

    def note(self, ready: Queues, announced: Announced) -> None:
        for queue in ready:
            self.heard[queue] = _sum(self.heard.get(queue, 0), announced)

    async def wait(self, queues: Sequence[str] | None, timeout: float) -> Announced:
        wait = Wait(None if queues is None else frozenset(queues))
        if not self._hub.begin(wait, self):
            return wait.announced
        try:
            self._attend()
            await wait.until_woken(timeout)
        finally:
            self._hub.end(wait, self)
        return wait.announced if wait.is_woken else None

    async def wait_finished(self, job: JobId, timeout: float) -> None:
        wait = Wait(job=job)
        self._hub.begin(wait)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._until_finished(job, wait, timeout)
        finally:
            self._hub.end(wait)

    async def wait_schedules(self, timeout: float) -> bool:
        wait = Wait(schedules=True)
        if self._hub.begin(wait, self):
            try:
                self._attend()
                await wait.until_woken(timeout)
            finally:
                self._hub.end(wait, self)
        return wait.is_woken

    async def close(self) -> None:
        self._hub.leave(self)

    def _attend(self) -> None:
        """Called when such a wait begins, for stores that must act to notice other processes."""

    @abstractmethod
    async def _until_finished(self, job: JobId, wait: Wait, timeout: float) -> None:
        """Return when the job has finished, or ``wait`` was woken. It may have finished already."""
