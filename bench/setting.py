"""What a measure is, and what it works with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .ledger import Ledger
from .peers import Peer
from .stage import Stage

Figures = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One contestant of a measure. ``options`` steer the measure and reach the adapter."""

    label: str
    peer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = None  # at most; for those that take long


@dataclass(frozen=True)
class Setting:
    """The place of a run. ``scale`` makes all sizes smaller or larger."""

    peers: Mapping[str, Peer]
    admin: str
    folder: Path
    scale: float = 1.0

    def size(self, n: float) -> int:
        return max(int(n * self.scale), 100) if n else 0

    @contextmanager
    def stage(self, entry: Entry) -> Iterator[Stage]:
        stage = Stage(self.peers[entry.peer], self.admin, self.folder, entry.options)
        try:
            yield stage
        finally:
            stage.close()

    def ledger(self, executions: int) -> Ledger:
        return Ledger(self.folder / "ledger", executions * 2 + 1000)


@dataclass(frozen=True)
class Measure:
    """Entries that are run in turn, round by round, so that a slow minute meets all of them alike."""

    name: str
    title: str
    take: Callable[[Setting, Entry], Figures]
    shown: tuple[str, ...]  # the figures that tables show, the main one first
    entries: Sequence[Entry]
    short: bool = False  # part of ``make bench``


def percentile(values: Sequence[float], share: float) -> float:
    """The value that this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
