"""The open stores of one app: one for each event loop that uses it, all on the same database.

Owns opening, closing and forgetting them after a fork; never reads or writes through one.
"""

from __future__ import annotations

import asyncio
import threading
from weakref import WeakKeyDictionary

from ..store.forks import current_pid
from ..store.open import open_store
from ..store.protocol import Store
from .clock import Clock
from .patience import Patience


class StorePerLoop:
    """Opens nothing until it is used; never shares a connection between loops or across a fork."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.patience = Patience()
        self._clock = clock
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._pid = current_pid()
        self._root: Store | None = None
        self._taken: WeakKeyDictionary[asyncio.AbstractEventLoop, Store] = WeakKeyDictionary()
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, Store] = WeakKeyDictionary()
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    def root(self) -> Store:
        """The first store, perhaps not open: enough to write on the caller's own connection."""
        with self._lock:
            return self._first()

    def _first(self) -> Store:
        if self._pid != current_pid():
            self._forget()
        if self._root is None:
            self._root = open_store(self.url)
        return self._root

    async def get(self) -> Store:
        """The open store of the running loop, its clock read recently."""
        loop = asyncio.get_running_loop()
        store = self._open.get(loop) if self._pid == current_pid() else None
        if store is None:
            store = await self._open_for(loop)
        if self._clock.is_stale:
            await self._clock.sync(store.clock)
        return store

    async def _open_for(self, loop: asyncio.AbstractEventLoop) -> Store:
        if self._pid != current_pid():
            with self._lock:
                self._forget()
        async with self._opening.setdefault(loop, asyncio.Lock()):
            if (store := self._open.get(loop)) is not None:
                return store
            store = self._take(loop)
            try:
                await store.open()
            except BaseException:
                with self._lock:
                    self._taken.pop(loop, None)
                    if self._root is store:
                        self._root = None
                await store.close()
                raise
            self._open[loop] = store
            return store

    def _take(self, loop: asyncio.AbstractEventLoop) -> Store:
        """A store for this loop alone, from now on: another loop may be opening its own at this moment."""
        with self._lock:
            store = self._first()
            if any(store is taken for taken in self._taken.values()):
                store = store.for_another_loop()
            self._taken[loop] = store
            return store

    async def close(self) -> None:
        """Close the running loop's store; the root is kept for the loops that still have one."""
        self.patience.end()
        loop = asyncio.get_running_loop()
        store = self._open.pop(loop, None)
        if store is None:
            return
        await store.close()
        with self._lock:
            self._taken.pop(loop, None)
            if not self._taken:
                self._root = None
