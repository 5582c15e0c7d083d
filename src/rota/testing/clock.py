"""A clock that moves only on request. For tests: nothing waits and nothing is random."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

from ..runtime.clock import Clock

START = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)


class FakeClock(Clock):
    """``clock.advance(30)`` moves wall time and monotonic time together.

    ``jitter()`` returns ``fraction``: a number in [0, 1), 0 by default.
    """

    def __init__(self, start: datetime = START, fraction: float = 0.0) -> None:
        if start.tzinfo is None:
            raise ValueError(f"start={start!r} has no time zone: use an aware datetime, such as one in UTC")
        self._start = start.astimezone(UTC)
        self._elapsed = timedelta()
        self.fraction = fraction

    def now(self) -> datetime:
        return self._start + self._elapsed

    @property
    def store_now(self) -> datetime:
        """The time of this clock: the store uses it in place of its own."""
        return self.now()

    def correct(self, theirs: datetime, sent_at: float) -> float:
        """Do nothing: the store's time is this clock's own."""
        return 0.0

    def monotonic(self) -> float:
        return self._elapsed.total_seconds()

    def jitter(self) -> float:
        return self.fraction

    def advance(self, seconds: float) -> datetime:
        """Move the clock forward and return the new time."""
        if seconds < 0:
            raise ValueError(f"seconds={seconds!r}: time only moves forward")
        self._elapsed += timedelta(seconds=seconds)
        return self.now()

    @property
    def is_stale(self) -> bool:
        return False

    async def sync(self, read: Callable[[], Awaitable[datetime]]) -> timedelta:
        """Do nothing: the store uses this clock's time."""
        return timedelta()
