"""A log of what happened, in an append-only file outside the system under test.

Owns the format of its lines. Each line is one ``os.write`` on an O_APPEND descriptor, so it survives
``kill -9`` of the writer and never mixes with the lines of another process.

``A id n``: the store acknowledged the job. ``U n``: enqueueing raised, so it may or may not be stored.
``S id token worker pid t claimed`` and ``E …``: a handler started and finished; ``claimed`` is when, in
nanoseconds of the store's clock, if it matters. ``T id token state``: the
store accepted the outcome that a worker sent.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Execution:
    job: str
    token: int
    worker: str
    pid: int
    began: float
    ended: float | None  # None: it never finished
    claimed_ns: int = 0


class RunLog:
    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def close(self) -> None:
        os.close(self._file)

    # --- writing -----------------------------------------------------------------------------

    def write(self, *fields: object) -> None:
        os.write(self._file, (" ".join(map(str, fields)) + "\n").encode())

    def began(self, job: str, token: int, worker: str, claimed_ns: int = 0) -> None:
        self.write("S", job, token, worker, os.getpid(), time.time(), claimed_ns)

    def ended(self, job: str, token: int, worker: str) -> None:
        self.write("E", job, token, worker, os.getpid(), time.time())

    # --- reading -----------------------------------------------------------------------------

    def lines(self, kind: str) -> list[list[str]]:
        whole = self.path.read_text().rpartition("\n")[0]
        return [fields for line in whole.splitlines() if (fields := line.split())[0] == kind]

    def acknowledged(self) -> set[str]:
        return {fields[1] for fields in self.lines("A")}

    def accepted(self) -> list[tuple[str, str]]:
        """(job, state) of every outcome that the store accepted, according to the workers."""
        return [(fields[1], fields[3]) for fields in self.lines("T")]

    def executions(self) -> list[Execution]:
        ends = {(f[1], f[2]): float(f[5]) for f in self.lines("E")}
        return [
            Execution(f[1], int(f[2]), f[3], int(f[4]), float(f[5]), ends.get((f[1], f[2])), int(f[6]))
            for f in self.lines("S")
        ]
