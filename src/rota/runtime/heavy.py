"""Heavy answers: made in threads of their own, shared, kept for a moment, and stopped when no one waits.

What takes a processor long must not hold the event loop, which answers everybody else. A server puts one
``HeavyResponses`` and its ``Caller`` into the context of each request; without one, as in a program, the work
still leaves the loop, but nothing is shared or kept.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, TypeVar

from .clock import monotonic

P = ParamSpec("P")
T = TypeVar("T")

THREADS = 2
MOST_WAITING = 64
MOST_KEPT = 256
CPU_S = 2.0  # that one answer may take
GIVE_WAY_S = 0.004  # of work between pauses that let the event loop run
PAUSE_S = 0.0005
CHEAP_S = 0.25  # an answer that took less is not kept
KEPT_FOR = 10.0  # times what it took
LONGEST_KEPT_S = 5.0


class TooBusy(Exception):
    """Too many heavy answers are being made."""


class Abandoned(Exception):
    """No one waits for the answer."""


class Work:
    """One heavy computation as it runs: it asks here, at every step, whether to continue."""

    def __init__(self, cpu_s: float | None = None, answers: HeavyResponses | None = None) -> None:
        self._cpu_s = CPU_S if cpu_s is None else cpu_s
        self._answers = answers  # whose threads it uses
        self._stopped = threading.Event()
        self._steps = 0
        self._resumed: float | None = None
        self.took_s = 0.0

    @property
    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    @property
    def is_spent(self) -> bool:
        return self.took_s >= self._cpu_s

    def stop(self) -> None:
        self._stopped.set()

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function that only computes in a thread; it may ask this work at its steps."""
        if self.is_stopped:
            raise Abandoned
        self._resumed = None
        run = off_the_loop if self._answers is None else self._answers.run
        return await run(function, *args, **kwargs)

    def step(self) -> bool:
        """Whether there is time for more. Abandoned if no one waits for the answer."""
        self._steps += 1
        if self._steps & 63:
            return not self.is_spent
        return self.check()

    def check(self) -> bool:
        """As ``step``, at once."""
        if self.is_stopped:
            raise Abandoned
        now = time.thread_time()
        if self._resumed is None:
            self._resumed = now
        elif now - self._resumed >= GIVE_WAY_S:
            self.took_s += now - self._resumed
            self._resumed = now
            self._stopped.wait(PAUSE_S)
        return not self.is_spent


class Caller:
    """Who waits for an answer. ``gone`` returns when it does so no longer."""

    async def gone(self) -> None:
        await asyncio.Event().wait()


@dataclass
class _Shared(Generic[T]):
    """An answer that is being made for one or more callers."""

    work: Work
    task: asyncio.Task[T]
    waiting: int = 0


@dataclass
class HeavyResponses:
    """The heavy answers of one server."""

    _making: dict[Hashable, _Shared[Any]] = field(default_factory=dict)
    _kept: OrderedDict[Hashable, tuple[float, Any]] = field(default_factory=OrderedDict)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(THREADS, thread_name_prefix="rota-heavy")
    )
    _waiting: int = 0

    async def run(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call the function in one of the threads; TooBusy if too many wait for them."""
        if self._waiting >= MOST_WAITING:
            raise TooBusy
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, lambda: function(*args, **kwargs))
        finally:
            self._waiting -= 1

    async def answer(self, key: Hashable, caller: Caller, make: Callable[[Work], Awaitable[T]]) -> T:
        """The answer to this question: kept, being made already, or made now.

        ``key`` must name all that the answer depends on, also what the caller may see.
        """
        kept = self._kept.get(key)
        if kept is not None and monotonic() < kept[0]:
            found: T = kept[1]
            return found
        shared: _Shared[T] | None = self._making.get(key)
        if shared is None or shared.work.is_stopped:
            shared = self._begin(key, make)
        shared.waiting += 1
        gone = asyncio.create_task(caller.gone())
        try:
            await asyncio.wait([shared.task, gone], return_when=asyncio.FIRST_COMPLETED)
            if not shared.task.done():
                raise Abandoned
            return shared.task.result()
        finally:
            gone.cancel()
            shared.waiting -= 1
            if not shared.waiting:
                shared.work.stop()

    def forget(self) -> None:
        """Something has changed: later callers get answers that are made from now on."""
        self._kept.clear()
        self._making.clear()

    def _begin(self, key: Hashable, make: Callable[[Work], Awaitable[T]]) -> _Shared[T]:
        work = Work(answers=self)
        task = asyncio.create_task(self._make(key, work, make), name="rota-heavy-answer")
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # seen, if no one waits
        shared = self._making[key] = _Shared(work, task)
        return shared

    async def _make(self, key: Hashable, work: Work, make: Callable[[Work], Awaitable[T]]) -> T:
        began = monotonic()
        try:
            answer = await make(work)
            took_s = monotonic() - began
            if took_s >= CHEAP_S and self._is_current(key, work):
                self._keep(key, answer, min(took_s * KEPT_FOR, LONGEST_KEPT_S))
            return answer
        finally:
            if self._is_current(key, work):
                del self._making[key]

    def _is_current(self, key: Hashable, work: Work) -> bool:
        shared = self._making.get(key)
        return shared is not None and shared.work is work

    def _keep(self, key: Hashable, answer: object, keep_s: float) -> None:
        self._kept.pop(key, None)
        self._kept[key] = (monotonic() + keep_s, answer)
        now = monotonic()
        while len(self._kept) > MOST_KEPT or next(iter(self._kept.values()))[0] < now:
            self._kept.popitem(last=False)

    def close(self) -> None:
        for shared in self._making.values():
            shared.work.stop()
        self._pool.shutdown(wait=False, cancel_futures=True)


_CURRENT: ContextVar[tuple[HeavyResponses, Caller] | None] = ContextVar("rota_heavy_responses", default=None)


def serve_with(answers: HeavyResponses, caller: Caller) -> None:
    """Make the heavy answers of this context here, for this caller."""
    _CURRENT.set((answers, caller))


async def heavy_response(key: Hashable, make: Callable[[Work], Awaitable[T]]) -> T:
    """An answer that may take long to make: see ``HeavyResponses.answer``."""
    current = _CURRENT.get()
    return await (make(Work()) if current is None else current[0].answer(key, current[1], make))


async def off_the_loop(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that only computes in a thread."""
    current = _CURRENT.get()
    if current is None:
        return await asyncio.to_thread(function, *args, **kwargs)
    return await current[0].run(function, *args, **kwargs)
