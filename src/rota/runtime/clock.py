"""The only place that reads time and chance.

``Clock.now()`` is the store's time: local monotonic time carried forward from the last reading of
the store's own clock, so that a wrong or stepping local clock can neither expire a lease nor fire a
job early. Durations use ``monotonic()``.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from ..core.ids import LAST_GROUP, uuid7
from ..store.forks import current_pid

monotonic = time.monotonic
chance = random.random
_instant = datetime.fromtimestamp
REFRESH_S = 300.0


class Clock:
    """Wall time anchored to the store's clock, so that every process of an app agrees."""

    def __init__(self) -> None:
        self._base = time.time() - time.monotonic()
        self._synced_at: float | None = None

    def now(self) -> datetime:
        return _instant(self._base + monotonic(), UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def jitter(self) -> float:
        return random.random()

    @property
    def is_stale(self) -> bool:
        return self._synced_at is None or time.monotonic() - self._synced_at > REFRESH_S

    async def sync(self, read: Callable[[], Awaitable[datetime]]) -> timedelta:
        """Anchor to the store's clock; how far the local wall clock is ahead of it."""
        before = time.monotonic()
        theirs = await read()
        after = time.monotonic()
        self._base = theirs.timestamp() - (before + after) / 2
        self._synced_at = after
        return timedelta(seconds=time.time() - (self._base + after))


class Ids:
    """Job ids that increase within this process, even inside one millisecond.

    Each millisecond starts at random bits and counts up from there, in the last group of digits; when
    that is full, in those before it. A forked process starts over: its parent has the same count.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._draw: Callable[[int], int]
        self._ms = 0
        self._high = 0  # the bits before the last group
        self._head = ""  # the text before it
        self._next = 0  # the last group of the next id

    def new(self, now: datetime) -> str:
        return self.run(now, 1)[0]

    def run(self, now: datetime, count: int) -> list[str]:
        """``count`` ids in increasing order, for about the price of one."""
        ms, process = int(now.timestamp() * 1000), current_pid()
        with self._lock:
            if process != self._process:
                self._process, self._ms = process, 0
                self._draw = random.Random().getrandbits  # ids are names, not secrets
            if ms > self._ms:
                self._begin(ms, self._draw(73))
            if self._next + count > LAST_GROUP + 1:
                self._begin_above()
            first, head = self._next, self._head
            self._next += count
        return [f"{head}{number:012x}" for number in range(first, first + count)]

    def _begin(self, ms: int, bits_74: int) -> None:
        self._ms, self._high, self._next = ms, bits_74 >> 48, bits_74 & LAST_GROUP
        self._head = uuid7(ms, bits_74)[:-12]

    def _begin_above(self) -> None:
        if self._high + 1 < 2**26:
            self._begin(self._ms, self._high + 1 << 48)
        else:
            self._begin(self._ms + 1, self._draw(25) << 48)
