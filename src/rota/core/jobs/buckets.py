"""How much of a rate and of a budget is left, and until when. Pure.

A bucket is one number, ``full``: when it is full again if nothing more is taken. What it holds now follows
from the time until then, so no job has to fill it up (the generic cell rate algorithm). All times are
nanoseconds since 1970, by the store's clock alone.
"""

from __future__ import annotations

from .limits import Bucket


def bucket_units(bucket: Bucket, full: int, now: int) -> int:
    """How many units could begin now."""
    return (now + bucket.burst * bucket.every_ns - max(full, now)) // bucket.every_ns


def bucket_level(bucket: Bucket, full: int, now: int) -> float:
    """The same with its fraction: what people are shown."""
    return bucket.burst - max(full - now, 0) / bucket.every_ns


def units_at(bucket: Bucket, full: int, now: int, units: int = 1) -> int | None:
    """When this many units could begin, if nothing else does; None: never, for it holds fewer."""
    if units > bucket.burst:
        return None
    return max(now, full - (bucket.burst - units) * bucket.every_ns)


def take(bucket: Bucket, full: int, now: int, units: int) -> int:
    """``full``, with the units taken."""
    return max(full, now) + units * bucket.every_ns


def give_back(bucket: Bucket, full: int, now: int, units: int, taken_at: int) -> int:
    """``full``, with the units back that a job took and never used.

    Without those that would have come back by themselves since they were taken: whatever else has happened
    to the bucket, it never holds more than if the job had not been there.
    """
    return full - max(0, units * bucket.every_ns - max(0, now - taken_at))


def fit(bucket: Bucket, full: int, now: int) -> int:
    """``full`` for a bucket that has changed: it never takes longer to fill than the new one can."""
    return min(full, now + bucket.burst * bucket.every_ns)


def budget_admits(budget: float, spent: float, price: float | None) -> bool:
    """Whether a job may begin: something is left, and its price, if it has one, is.

    ``spent``: in this period, with the prices of all that runs, and of what begins before it.
    """
    return spent < budget and spent + (price or 0.0) <= budget
