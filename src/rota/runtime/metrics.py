"""The metrics of one worker process: plain numbers, for its document and for Prometheus.

Counting only: no I/O, no clock, no labels by task or tenant, so that it costs next to nothing per job.
Written by the worker's loop alone; other threads may read.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from datetime import timedelta
from typing import Any, get_args

from ..model import FireOrigin

# Upper bounds, in seconds; one more bucket takes what is longer.
DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
_BOUNDS = tuple(timedelta(seconds=bound) for bound in DURATIONS)
ASIDE = 4096
OUTCOMES = ("succeeded", "failed", "retried", "snoozed", "cancelled", "released", "rescued", "rejected")
ORIGINS = get_args(FireOrigin)


class Histogram:
    """How many durations fell into each bucket (not cumulative), and their sum.

    A duration is only put aside when it comes: sorting many at once is several times cheaper than
    finding the bucket of each.
    """

    __slots__ = ("_aside", "_counts", "_lock", "_sum")

    def __init__(self) -> None:
        self._aside: list[timedelta] = []
        self._counts = [0] * (len(DURATIONS) + 1)
        self._sum = timedelta()
        self._lock = threading.Lock()

    def add(self, duration: timedelta) -> None:
        self._aside.append(duration)
        if len(self._aside) >= ASIDE:
            self._count()

    def _count(self) -> None:
        with self._lock:
            spans = self._aside[:]
            del self._aside[: len(spans)]  # more may have been added meanwhile
            spans.sort()
            before = 0
            for bucket, bound in enumerate(_BOUNDS):
                place = bisect_right(spans, bound)
                self._counts[bucket] += place - before
                before = place
            self._counts[-1] += len(spans) - before
            self._sum += sum(spans, timedelta())

    def snapshot(self) -> dict[str, Any]:
        self._count()
        seconds = max(round(self._sum.total_seconds(), 6), 0.0)
        return {"bounds": DURATIONS, "counts": list(self._counts), "sum": seconds, "count": sum(self._counts)}


class WorkerMetrics:
    """Counts and histograms. Never read by the worker itself."""

    def __init__(self) -> None:
        self.claims = 0  # jobs claimed
        self.runs = dict.fromkeys(OUTCOMES, 0)  # attempts that were settled, by outcome
        self.duration = Histogram()  # from the start of a task's code to its end
        self.wait = Histogram()  # from the time a job was due to the start of its task's code
        self.fires = dict.fromkeys(ORIGINS, 0)  # jobs that schedules created here
        self.late = Histogram()  # from the time a schedule was due to its fire; catching up is not late
        self.outages = 0  # times the store became unavailable

    def snapshot(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "claims": self.claims,
            "runs": dict(self.runs),
            "duration": self.duration.snapshot(),
            "wait": self.wait.snapshot(),
            "fires": dict(self.fires),
            "late": self.late.snapshot(),
            "outages": self.outages,
        }
