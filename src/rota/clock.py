"""The only place that reads time and chance.

``Clock.now()`` is the store's time: local monotonic time carried forward from the last reading of
the store's own clock, so that a wrong or stepping local clock can neither expire a lease nor fire a
job early. Durations use ``monotonic()``.
"""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from .core.ids import LAST_GROUP, room_after, uuid7_run

monotonic = time.monotonic
chance = random.random
_instant = datetime.fromtimestamp
REFRESH_S = 300.0


class Clock:
    """Wall time anchored to the store's clock."""

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
    """Makes job ids that grow within this process, even inside one millisecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_ms = 0
        self._bits = 0

    def new(self, now: datetime) -> str:
        return self.run(now, 1)[0]

    def run(self, now: datetime, count: int) -> list[str]:
        """``count`` ids in growing order, for about the price of one."""
        ms = int(now.timestamp() * 1000)
        with self._lock:
            if ms > self._last_ms:
                self._last_ms, first = ms, secrets.randbits(73)
            else:  # the clock stood still or went back: keep growing
                first = self._bits + 1 + int.from_bytes(os.urandom(4))
            if room_after(first) < count:
                first = (first | LAST_GROUP) + 1
            if first >> 74:
                self._last_ms, first = self._last_ms + 1, secrets.randbits(25) << 48
            self._bits = first + count - 1
            return uuid7_run(self._last_ms, first, count)
