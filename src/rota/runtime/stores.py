"""The open stores of one app: one for each event loop that uses it, all on the same database.

Owns opening and closing them, at the latest with their loop, their number, and forgetting them after a fork.
Never reads or writes through one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from ..store.forks import current_pid
from ..store.native_threads import native_lock
from ..store.open import open_store
from ..store.protocol import Store
from .borrowed_store import borrowed
from .clock import Clock
from .patience import Patience
from .portal import Portal

MOST_LOOPS = 4  # with connections of their own; further ones use those of the portal


class _Seat:
    """What one event loop has: its store once it is open, and the generator that ends with the loop."""

    __slots__ = ("ending", "is_borrowing", "opening", "store")

    def __init__(self, is_borrowing: bool) -> None:
        self.is_borrowing = is_borrowing
        self.opening = asyncio.Lock()
        self.store: Store | None = None
        self.ending: AsyncGenerator[None, None] | None = None


class StorePerLoop:
    """Opens nothing until it is used; never shares a connection between loops or across a fork."""

    def __init__(self, url: str, clock: Clock) -> None:
        self.url = url
        self.patience = Patience()
        self.portal = Portal(self.patience.end, self.close, self.root)
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._pid = current_pid()
        self._lock = native_lock()  # in a forked child a new one: another thread may have held the old one
        self._root: Store | None = None
        self._seats: dict[asyncio.AbstractEventLoop, _Seat] = {}
        self._last: Store | None = None  # of a loop that has ended; it keeps what outlives loops

    def _follow_fork(self) -> None:
        if self._pid != current_pid():
            self._start()

    def root(self) -> Store:
        """A store that is never opened: enough to write on the caller's own connection."""
        self._follow_fork()
        with self._lock:
            if self._root is None:
                self._root = open_store(self.url)
            return self._root

    async def get(self) -> Store:
        """The open store of the running loop, its clock read recently."""
        self._follow_fork()
        loop = asyncio.get_running_loop()
        seat = self._seats.get(loop)
        store = None if seat is None else seat.store
        while store is None:
            store = await self._open(loop, self._take_seat(loop))
        if self._clock.is_stale:
            await self._clock.sync(store.clock)
        return store

    async def own(self) -> Store:
        """``get`` with connections of its own, however many loops have some: for a worker."""
        self._follow_fork()
        loop = asyncio.get_running_loop()
        with self._lock:
            if (seat := self._seats.get(loop)) is not None and seat.is_borrowing:
                del self._seats[loop]
        await self._open(loop, self._take_seat(loop, must_own=True))
        return await self.get()

    async def _open(self, loop: asyncio.AbstractEventLoop, seat: _Seat) -> Store | None:
        """The store of the seat; None if it was closed before it was open."""
        async with seat.opening:
            if seat.store is not None or self._seats.get(loop) is not seat:
                return seat.store
            if seat.is_borrowing:
                seat.store = borrowed(self.root(), self.get, self.portal)
                return seat.store
            store = self.root().for_another_loop()
            try:
                await store.open()
            except BaseException:
                await store.close()
                raise
            seat.ending = self._until_loop_ends(loop, store)
            await anext(seat.ending)
            seat.store = store
            return store

    async def _until_loop_ends(
        self, loop: asyncio.AbstractEventLoop, store: Store
    ) -> AsyncGenerator[None, None]:
        """A loop that ends closes its generators: ``asyncio.run`` and all who follow it see to that."""
        try:
            yield
        except GeneratorExit:
            if (seat := self._seats.get(loop)) is not None and seat.store is store:
                self._leave(loop, seat)
            raise

    def _take_seat(self, loop: asyncio.AbstractEventLoop, must_own: bool = False) -> _Seat:
        must_own = must_own or self.portal.is_here()
        self._reap()
        with self._lock:
            if (seat := self._seats.get(loop)) is None:
                owning = sum(not seat.is_borrowing for seat in self._seats.values())
                seat = self._seats[loop] = _Seat(owning >= MOST_LOOPS and not must_own)
            return seat

    def _reap(self) -> None:
        """Release what belonged to loops that were closed without ending their generators."""
        for loop, seat in list(self._seats.items()):
            if loop.is_closed():
                self._leave(loop, seat)

    def _leave(self, loop: asyncio.AbstractEventLoop, seat: _Seat) -> None:
        with self._lock:
            if self._seats.get(loop) is not seat:
                return
            del self._seats[loop]
            if seat.store is not None and not seat.is_borrowing:
                seat.store.abandon()
                self._last = seat.store

    @property
    def loops(self) -> int:
        """How many event loops have connections of their own."""
        self._reap()
        return sum(not seat.is_borrowing and seat.store is not None for seat in list(self._seats.values()))

    @property
    def has_leftovers(self) -> bool:
        """Whether ended loops left something that only ``close`` releases, such as SQLite's threads."""
        self._reap()
        return self._last is not None and not self._seats

    async def close(self) -> None:
        """Close the running loop's store, and what ended loops left if no other loop has a store."""
        self.patience.end()
        if self._pid != current_pid():
            return
        self._reap()
        seat = self._seats.pop(asyncio.get_running_loop(), None)
        if seat is not None:
            async with seat.opening:
                store, seat.store = seat.store, None
            if store is not None and not seat.is_borrowing:
                await store.close()
            if seat.ending is not None:
                await seat.ending.aclose()
        if not self._seats:
            last, self._last, self._root = self._last, None, None
            if last is not None:
                await last.close()
