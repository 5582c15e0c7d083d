"""The only place that reads time and chance.

``Clock.now()`` is the store's time: local monotonic time carried forward from the last reading of
the store's own clock, so that a wrong or stepping local clock can neither expire a lease nor fire a
job early. Durations use ``monotonic()``.
"""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from .core.ids import uuid7

monotonic = time.monotonic
chance = random.random
REFRESH_S = 300.0


class Clock:
    """Wall time anchored to the store's clock."""

    def __init__(self) -> None:
        self._base = time.time() - time.monotonic()
        self._synced_at: float | None = None

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._base + time.monotonic(), UTC)

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
        ms = int(now.timestamp() * 1000)
        with self._lock:
            if ms > self._last_ms:
                self._last_ms = ms
                self._bits = secrets.randbits(73)
            else:  # the clock stood still or went back: keep growing
                self._bits += 1 + secrets.randbits(32)
                if self._bits >> 74:
                    self._last_ms += 1
                    self._bits = secrets.randbits(73)
            return uuid7(self._last_ms, self._bits)
