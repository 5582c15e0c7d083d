"""A store for an event loop that has no connections of its own: its calls run on the portal's loop.

Owns the way there and back. Must never keep a connection: the portal may be closed and started again.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from ..store.protocol import Store, Waker
from .portal import Portal

Find = Callable[[], Awaitable[Any]]


def borrowed(plain: Store, find: Callable[[], Awaitable[Store]], portal: Portal) -> Store:
    """``find``, run on the portal's loop, gives the store to use; ``plain`` answers what needs no loop."""
    return cast(Store, _BorrowedStore(plain, find, portal))


class _Borrowed:
    """Coroutine methods run on the portal's loop, on what ``find`` finds there; the rest is ``plain``'s."""

    def __init__(self, plain: Any, find: Find, portal: Portal) -> None:
        self._plain, self._find, self._portal = plain, find, portal

    def __getattr__(self, name: str) -> Any:
        plain = getattr(self._plain, name)
        if not inspect.iscoroutinefunction(plain):
            return plain

        async def there(*args: Any, **kwargs: Any) -> Any:
            async def go() -> Any:
                return await getattr(await self._find(), name)(*args, **kwargs)

            return await self._portal.run(go)

        return there


class _BorrowedStore(_Borrowed):
    async def open(self) -> None:
        """There is nothing to open here."""

    async def close(self) -> None:
        """There is nothing to close here."""

    @property
    def schema(self) -> Any:
        async def find() -> Any:
            return (await self._find()).schema

        return _Borrowed(self._plain.schema, find, self._portal)

    def waker(self) -> Waker:
        made: list[Waker] = []

        async def find() -> Waker:
            if not made:
                made.append((await self._find()).waker())
            return made[0]

        return cast(Waker, _BorrowedWaker(find, self._portal))


class _BorrowedWaker:
    def __init__(self, find: Callable[[], Awaitable[Waker]], portal: Portal) -> None:
        self._find, self._portal = find, portal

    async def wait(self, *args: Any) -> int | None:
        async def go() -> int | None:
            return await (await self._find()).wait(*args)

        return await self._portal.run(go)

    async def wait_finished(self, *args: Any) -> None:
        async def go() -> None:
            await (await self._find()).wait_finished(*args)

        await self._portal.run(go)

    async def close(self) -> None:
        async def go() -> None:
            await (await self._find()).close()

        await self._portal.run(go)
