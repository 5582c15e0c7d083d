"""How long the answers of the store are waited for. Every wait of a worker's loop for it has a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ..errors import StoreUnavailable

T = TypeVar("T")


class StoreDeadline:
    """Limits each answer to so long that a lease it brings is still valid; to less when the worker stops."""

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._under_way: set[asyncio.Timeout] = set()

    async def answer(self, answer: Awaitable[T]) -> T:
        """The answer; StoreUnavailable if it takes too long."""
        try:
            async with asyncio.timeout(self._longest_s) as timeout:
                self._under_way.add(timeout)
                try:
                    return await answer
                finally:
                    self._under_way.discard(timeout)
        except TimeoutError:
            raise StoreUnavailable(f"the store did not answer within {self._longest_s:g} s") from None

    def limit(self, longest_s: float) -> None:
        """Wait this long at most from now on, also for the answers under way."""
        self._longest_s = longest_s
        latest = asyncio.get_running_loop().time() + longest_s
        for timeout in self._under_way:
            if not timeout.expired():
                timeout.reschedule(latest)
