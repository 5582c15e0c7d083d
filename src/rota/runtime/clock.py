"""The only place that reads time and chance.

``Clock.now()`` is the store's time as this process knows it: local monotonic time carried forward from the
last answer that included the store's own. It serves for what is computed here, such as the delay of a retry.
What is due, and which lease has expired, the store decides by its own clock: it is given ``store_now``.
Durations use ``monotonic()``, which continues while the machine is suspended, where the system has such a
clock.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from ..core.ids import LAST_GROUP, uuid7
from ..store.forks import current_pid

if sys.platform == "linux":
    monotonic = partial(time.clock_gettime, time.CLOCK_BOOTTIME)
else:
    monotonic = time.monotonic
awake = time.monotonic  # where the system can tell: without the time that the machine was suspended
chance = random.random
_instant = datetime.fromtimestamp
REFRESH_S = 300.0


class Clock:
    """Wall time anchored to the store's clock, so that every process of an app agrees."""

    def __init__(self) -> None:
        self._base = time.time() - monotonic()
        self._synced_at: float | None = None

    def now(self) -> datetime:
        return _instant(self._base + monotonic(), UTC)

    @property
    def store_now(self) -> datetime | None:
        """What a store is given as ``now``. None: its own clock decides."""
        return None

    def monotonic(self) -> float:
        return monotonic()

    def jitter(self) -> float:
        return random.random()

    @property
    def is_stale(self) -> bool:
        return self._synced_at is None or monotonic() - self._synced_at > REFRESH_S

    def correct(self, theirs: datetime, sent_at: float) -> float:
        """An answer includes the store's time, which lies between ``sent_at`` (monotonic) and now.

        Moves this clock only as far as the answer proves it wrong; returns by how many seconds. So a slow
        answer does no harm, and a quick one corrects what is left.
        """
        self._synced_at = answered_at = monotonic()
        told = theirs.timestamp()
        base = min(max(self._base, told - answered_at), told - sent_at)
        moved, self._base = base - self._base, base
        return moved

    async def sync(self, read: Callable[[], Awaitable[datetime]]) -> timedelta:
        """Anchor to the store's clock; how far the local wall clock is ahead of it."""
        before = monotonic()
        theirs = await read()
        after = monotonic()
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


_IDS = Ids()


def new_id() -> str:
    """An id for a job to come, chosen before it is stored: ``task.options(id=rota.new_id())``."""
    return _IDS.new(datetime.now(UTC))
