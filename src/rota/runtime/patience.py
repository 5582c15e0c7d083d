"""Waiting through a short outage: the same question again, less and less often, until patience ends.

Owns the questions that wait, by event loop, so that closing a store ends them at once. Never asks anything
that may not be asked twice: that is for the caller to see to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from ..errors import StoreUnavailable
from .clock import chance, monotonic
from .service import pause

T = TypeVar("T")

ANSWER_S = 10.0  # the most that a store takes for one answer
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0


class Patience:
    def __init__(self) -> None:
        self._limits: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Timeout]] = WeakKeyDictionary()

    async def outlast(
        self, ask: Callable[[], Awaitable[T]], error: StoreUnavailable, since: float, patience_s: float
    ) -> T:
        """Ask again after this error: once at once, then until ``patience_s`` have passed ``since``.

        A question that is under way by then may take as long as one answer takes. The error that is raised
        in the end is the last one, with the time waited. An error that waiting does not cure is raised again.
        """
        if not error.is_temporary:
            raise error
        until = since + patience_s
        limits = self._limits.setdefault(asyncio.get_running_loop(), set())
        never, pause_s = asyncio.Event(), 0.0
        limit = asyncio.timeout(max(until - monotonic(), 0.0) + ANSWER_S)
        limits.add(limit)
        try:
            async with limit:
                while error.is_temporary and (pause_s == 0.0 or monotonic() + pause_s < until):
                    await pause(pause_s, never)
                    pause_s = min(max(pause_s * 2, FIRST_PAUSE_S), LONGEST_PAUSE_S) * (0.75 + chance() / 2)
                    try:
                        return await ask()
                    except StoreUnavailable as again:
                        error = again
        except TimeoutError:
            pass
        finally:
            limits.discard(limit)
        waited = f"{error} (waited for {monotonic() - since:.1f} s)"
        raise StoreUnavailable(waited, is_temporary=False) from error

    def end(self) -> None:
        """End the waits of the running loop."""
        loop = asyncio.get_running_loop()
        for limit in self._limits.get(loop, ()):
            if not limit.expired():
                limit.reschedule(loop.time())
