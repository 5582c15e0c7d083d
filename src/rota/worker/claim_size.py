"""How many jobs to claim, and how long to wait before the next claim. No store, no state but a rate."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

AHEAD_S = 0.05  # beyond the free slots, claim what is likely to start within this time
MAX_AHEAD = 1000
AT_ONCE_S = 0.01  # jobs under a limit: in a hundredth of a second a slot is as good as free
SHORTEST_WAIT_S = 0.001
MEASURE_EVERY_S = 0.02
MOST_AT_ONCE = 32  # claims in a row that bring nothing though the store has not looked everywhere


class Throughput:
    """Executions finished per second, measured over the last moments."""

    def __init__(self, now: float) -> None:
        self._at = now
        self._finished = 0
        self._rate = 0.0

    def per_second(self, finished: int, now: float) -> float:
        if now - self._at >= MEASURE_EVERY_S:
            self._rate = (finished - self._finished) / (now - self._at)
            self._at, self._finished = now, finished
        return self._rate


def claim_size(concurrency: int, rate: float, held: int, requested: int) -> int:
    """How many jobs to claim: the free slots, and what will start at once at the recent rate.

    ``held`` are the jobs claimed and not finished, ``requested`` those that turns under way may bring.
    """
    most = concurrency + min(int(rate * AHEAD_S), MAX_AHEAD)
    # Claim half at a time: one half runs while the next is fetched.
    return min(most - held - requested, max(concurrency, most // 2))


def begin_at_once(
    concurrency: int, rate: float, held: int, requested: int, is_next: Callable[[int], bool]
) -> int:
    """How many jobs under a limit would begin at once: in free slots, and in those about to be free.

    No more of them are claimed. One that waits here for a slot keeps others from running elsewhere, so the
    time is short. But where jobs are claimed ahead, a slot is never free: one of them at least may come, or
    those without a limit would keep the others out. ``is_next``: whether that many with a key wait already.
    """
    soon = min(int(rate * AT_ONCE_S), MAX_AHEAD)
    free = concurrency + soon - held - requested
    if free <= 0 and rate * AHEAD_S >= 1:
        free = 0 if is_next(max(soon, 1)) else max(soon, 1)
    return max(free, 0)


def seconds_until(at: datetime | None, now: datetime, longest: float) -> float:
    """The seconds until then, at most ``longest``; never zero, which would mean at once."""
    if at is None:
        return longest
    return min(max((at - now).total_seconds(), SHORTEST_WAIT_S), longest)


def wait_unfinished(fruitless: int, longest: float) -> float:
    """How long to wait if the store wants to look further, after so many claims that brought nothing.

    At first hardly, then twice as long each time: whatever a store answers, a worker never spins.
    """
    return min(SHORTEST_WAIT_S * 2.0 ** min(max(fruitless - MOST_AT_ONCE, 0), 30), longest)
