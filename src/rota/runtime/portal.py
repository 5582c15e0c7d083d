"""One event loop in a thread of its own, on which callers that are not async run their calls.

Owns that thread, and the calls under way in it: each of them ends, whatever becomes of the loop. Must never
know what the calls do.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from threading import get_ident
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from ..errors import AppClosed, RotaError
from ..store.forks import current_pid
from ..store.native_threads import native_lock, start_thread, wait_for

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("rota.portal")

LAST_ANSWERS_S = 1.0  # for the calls under way at the end, and as long again for those then cancelled
CLOSING_S = 10.0
CLOSED = (
    "the app was closed while this call was under way, so its outcome is unknown: "
    "close the app when its last call has returned"
)


class Portal:
    """Started at the first call; safe to use from any thread, again after ``close``, and after a fork.

    ``prepare`` is called in the thread that starts it, for what must not be imported in two threads at once.
    ``hurry`` ends what waits for better times on the portal's loop; ``closing`` closes what was opened there.
    """

    def __init__(
        self,
        hurry: Callable[[], None],
        closing: Callable[[], Awaitable[None]],
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        self._prepare = prepare
        self._hurry = hurry
        self._closing = closing
        self._start()

    def _start(self) -> None:
        self._pid = current_pid()
        self._lock = native_lock()  # in a forked child a new one: another thread may have held the old one
        self._session: _Session | None = None

    def call(self, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the coroutine function to its end and return its result."""
        if self.is_here():
            raise RotaError(
                "a sync call in a coroutine on the loop that serves sync calls would wait for itself: "
                "await the async method instead"
            )
        future = self._submit(function, args, kwargs)
        try:
            return wait_for(future)
        except BaseException:
            future.cancel()  # Ctrl-C: leave nothing behind; an answered call does not mind
            raise

    async def run(self, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """``call`` for a coroutine on another loop."""
        return await asyncio.wrap_future(self._submit(function, args, kwargs))

    def is_here(self) -> bool:
        """Whether the running thread is the portal's. In a forked child another may have its number."""
        session = self._session
        return session is not None and session.is_here() and self._pid == current_pid()

    def is_busy(self) -> bool:
        """Whether a call is under way."""
        return self._session is not None and self._session.is_busy()

    def close(self) -> None:
        """Let the calls under way end or fail, close what was opened here and end the thread.

        A call that comes meanwhile starts the portal again.
        """
        if self._pid != current_pid():
            return
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close(self._hurry, self._closing)

    def _submit(
        self, function: Callable[..., Awaitable[R]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future[R]:
        if self._pid != current_pid():
            self._start()
        if self._session is None:
            self._prepare()
        with self._lock:
            if self._session is None or not self._session.is_open:
                self._session = _Session()
                _unclosed.add(self)
            return self._session.submit(function, args, kwargs)


class _Session:
    """One life of a portal: a loop, its thread, and the calls under way."""

    def __init__(self) -> None:
        self._calls: dict[Future[Any], asyncio.Task[Any] | None] = {}
        self._lock = native_lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early: list[tuple[Callable[[], None], Context]] = []  # until there is a loop
        self.is_open = True
        self._error: BaseException | None = None  # that ended it
        self._thread = 0
        try:
            self._ended = start_thread(self._serve, "rota-portal")
        except RuntimeError as error:  # no more threads, or the interpreter shuts down
            raise RotaError(f"the thread for sync calls cannot be started: {error}") from error

    def _soon(self, callback: Callable[[], None]) -> None:
        """Have the loop call it, in the context of the caller."""
        with self._lock:
            if self._loop is None:
                self._early.append((callback, copy_context()))
                return
        with suppress(RuntimeError):  # the loop has ended, and fails its calls
            self._loop.call_soon_threadsafe(callback)

    def is_here(self) -> bool:
        return self._thread == get_ident()

    def is_busy(self) -> bool:
        return bool(self._calls)

    def submit(
        self, function: Callable[..., Awaitable[R]], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Future[R]:
        future: Future[R] = Future()
        with self._lock:
            if not self.is_open:
                raise AppClosed(CLOSED)
            self._calls[future] = None
        self._soon(partial(self._begin, future, function, args, kwargs))
        return future

    def _begin(
        self,
        future: Future[R],
        function: Callable[..., Awaitable[R]],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """On the loop, in the context of the caller: the job that runs there is the parent of new ones."""

        async def go() -> R:
            return await function(*args, **kwargs)

        if future.cancelled():
            self._calls.pop(future, None)
            return
        self._calls[future] = task = asyncio.get_running_loop().create_task(go())
        task.add_done_callback(partial(self._answer, future))
        future.add_done_callback(partial(self._cancel, task))

    def _cancel(self, task: asyncio.Task[Any], future: Future[Any]) -> None:
        if future.cancelled():
            self._soon(partial(_cancel, task))

    def _answer(self, future: Future[Any], task: asyncio.Task[Any]) -> None:
        self._calls.pop(future, None)
        if task.cancelled():
            _fail(future, asyncio.CancelledError() if self.is_open else self._closed())
        elif (error := task.exception()) is not None:
            _fail(future, error)
        elif future.set_running_or_notify_cancel():
            future.set_result(task.result())

    def close(self, hurry: Callable[[], None], closing: Callable[[], Awaitable[None]]) -> None:
        async def end() -> None:
            try:
                hurry()
                await self._end_calls()
                async with asyncio.timeout(CLOSING_S):
                    await closing()
            except Exception as error:
                level = logging.DEBUG if _exiting else logging.WARNING
                log.log(level, "closing was not finished: %s: %s", type(error).__name__, error)
            finally:
                self._stop.set()

        def begin() -> None:
            self._ending = asyncio.get_running_loop().create_task(end())

        self.is_open = False
        self._soon(begin)
        with suppress(TimeoutError):
            wait_for(self._ended, CLOSING_S + 3 * LAST_ANSWERS_S)

    async def _end_calls(self) -> None:
        for cancels in (False, True):
            if tasks := {task for task in self._calls.values() if task is not None}:
                for task in tasks if cancels else ():
                    task.cancel()
                await asyncio.wait(tasks, timeout=LAST_ANSWERS_S)

    def _serve(self) -> None:
        self._thread = get_ident()
        try:
            asyncio.run(self._main())
        except BaseException as error:
            self._error = error
            log.error("the loop for sync calls ended: %s: %s", type(error).__name__, error)
        finally:
            with self._lock:
                self.is_open = False
            while self._calls:
                _fail(self._calls.popitem()[0], self._closed())

    def _closed(self) -> RotaError:
        if self._error is None:
            return AppClosed(CLOSED)
        return AppClosed(f"the loop for sync calls ended during this call: {self._error!r}")

    async def _main(self) -> None:
        loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            for callback, context in self._early:
                loop.call_soon(callback, context=context)
            self._early.clear()
            self._loop = loop
        await self._stop.wait()


def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()


def _fail(future: Future[Any], error: BaseException) -> None:
    if not future.done() and future.set_running_or_notify_cancel():
        future.set_exception(error)


_unclosed: WeakSet[Portal] = WeakSet()
_exiting = False  # helper threads can no longer be started, which closing may need


@atexit.register
def _close_all() -> None:
    """A program that ends without ``app.close()`` still says goodbye to its server.

    Where a call is under way it belongs to a thread that ends with the process, and without a word.
    """
    global _exiting
    _exiting = True
    for portal in list(_unclosed):
        if not portal.is_busy():
            portal.close()
