"""One event loop in a thread of its own, on which callers that are not async run their calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

from ..store.forks import current_pid

P = ParamSpec("P")
R = TypeVar("R")

LAST_ANSWERS_S = 1.0


class Portal:
    """Started at the first call; safe to use from any thread, and again after a fork."""

    def __init__(self, closing: Callable[[], Awaitable[None]]) -> None:
        self._closing = closing
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def call(self, function: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the coroutine function to its end and return its result."""

        async def go() -> R:
            return await function(*args, **kwargs)

        return asyncio.run_coroutine_threadsafe(go(), self._running()).result()

    def close(self) -> None:
        """Close what was opened on the portal's loop and end the thread; safe to call twice."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None or self._pid != current_pid():
            return

        async def go() -> Any:
            await self._closing()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if others:  # their callers wait in other threads: leave none behind
                await asyncio.wait(others, timeout=LAST_ANSWERS_S)
                for task in others:
                    task.cancel()
                await asyncio.wait(others, timeout=LAST_ANSWERS_S)

        asyncio.run_coroutine_threadsafe(go(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != current_pid():
                self._pid = current_pid()
                ready = threading.Event()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(self._loop, ready), name="rota-portal", daemon=True
                )
                self._thread.start()
                ready.wait()
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
        asyncio.set_event_loop(loop)
        loop.call_soon(ready.set)
        try:
            loop.run_forever()
        finally:
            loop.close()
