"""Which jobs ran, and when, as recorded by the handlers: see ``ran`` in adapters/harness.py.

Each process that runs handlers appends records (job number + 1, monotonic nanoseconds) to its own
file, so that nothing is lost or shared. A zero marks the end of its records.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from .errors import MeasurementFailed

_RECORD = struct.Struct("<qq")


class ExecutionLog:
    """The log files of one trial, in their own folder. ``size``: executions that a process can record."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.log"):
            old.unlink()

    @property
    def environment(self) -> dict[str, str]:
        return {"BENCH_LOG": str(self.folder), "BENCH_LOG_SIZE": str(self.size)}

    def count(self) -> int:
        """The number of executions so far; cheap enough to poll."""
        return sum(map(_length, self.folder.glob("*.log")))

    def records(self) -> list[tuple[int, int]]:
        """(job number, time) of every execution, in order of time."""
        found: list[tuple[int, int]] = []
        for path in self.folder.glob("*.log"):
            text = path.read_bytes()[: _length(path) * _RECORD.size]
            found += ((number - 1, at) for number, at in _RECORD.iter_unpack(text))
        return sorted(found, key=lambda record: record[1])


def _length(path: Path) -> int:
    """The number of records in a file: the position of the first zero, found by bisection."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        low, high = 0, os.fstat(descriptor).st_size // _RECORD.size
        while low < high:
            middle = (low + high) // 2
            if os.pread(descriptor, 8, middle * _RECORD.size) == bytes(8):
                high = middle
            else:
                low = middle + 1
        return low
    finally:
        os.close(descriptor)


def check(records: list[tuple[int, int]], n: int, expected: Callable[[int], int] = lambda i: 1) -> None:
    """Fail unless each of the jobs 0 … n-1 ran exactly as often as expected, and no other job ran."""
    counts = Counter(number for number, _ in records)
    lost = sum(counts[i] < expected(i) for i in range(n))
    again = sum(counts[i] > expected(i) for i in range(n))
    unknown = sum(not 0 <= number < n for number in counts)
    if lost or again or unknown:
        raise MeasurementFailed(
            f"of {n} jobs {lost} did not run, {again} ran too often; {unknown} unknown jobs ran"
        )


def first_starts(records: list[tuple[int, int]]) -> dict[int, int]:
    """The time at which each job first ran."""
    starts: dict[int, int] = {}
    for number, at in records:
        starts.setdefault(number, at)
    return starts
