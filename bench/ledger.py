"""What ran, and when, as the handlers themselves wrote it down: see ``ran`` in adapters/harness.py.

Each process that runs handlers appends records (job number + 1, monotonic nanoseconds) to a file of its
own, so that nothing is lost or shared, and a zero marks where it has got to.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from .errors import Failed

_RECORD = struct.Struct("<qq")


class Ledger:
    """The files of one run, in a folder of its own. ``size``: executions that a process can note."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.log"):
            old.unlink()

    @property
    def environment(self) -> dict[str, str]:
        return {"BENCH_LEDGER": str(self.folder), "BENCH_LEDGER_SIZE": str(self.size)}

    def count(self) -> int:
        """Executions begun so far; cheap enough to ask again and again."""
        return sum(map(_length, self.folder.glob("*.log")))

    def records(self) -> list[tuple[int, int]]:
        """(job number, instant) of every execution, in the order of time."""
        found: list[tuple[int, int]] = []
        for path in self.folder.glob("*.log"):
            text = path.read_bytes()[: _length(path) * _RECORD.size]
            found += ((number - 1, at) for number, at in _RECORD.iter_unpack(text))
        return sorted(found, key=lambda record: record[1])


def _length(path: Path) -> int:
    """Records in the file: the place of the first zero, by bisection."""
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
    """Each of the jobs 0 … n-1 ran exactly as often as expected, and no other job ran."""
    counts = Counter(number for number, _ in records)
    lost = sum(counts[i] < expected(i) for i in range(n))
    again = sum(counts[i] > expected(i) for i in range(n))
    strange = sum(not 0 <= number < n for number in counts)
    if lost or again or strange:
        raise Failed(f"of {n} jobs {lost} did not run, {again} ran too often; {strange} unknown ones ran")


def first_starts(records: list[tuple[int, int]]) -> dict[int, int]:
    """When each job first ran."""
    starts: dict[int, int] = {}
    for number, at in records:
        starts.setdefault(number, at)
    return starts
