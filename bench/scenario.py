"""What a benchmark scenario is, and the context it runs in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .execution_log import ExecutionLog
from .peers import Peer
from .trial import Trial

Metrics = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One participant of a scenario. Both the scenario and the adapter read ``options``."""

    label: str
    peer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rounds: int | None = None  # at most this many, for slow entries


@dataclass(frozen=True)
class RunContext:
    """What all scenarios of a run share. ``scale`` multiplies every size."""

    peers: Mapping[str, Peer]
    admin: str
    folder: Path
    scale: float = 1.0

    def size(self, n: float) -> int:
        return max(int(n * self.scale), 100) if n else 0

    @contextmanager
    def trial(self, entry: Entry) -> Iterator[Trial]:
        trial = Trial(self.peers[entry.peer], self.admin, self.folder, entry.options)
        try:
            yield trial
        finally:
            trial.close()

    def execution_log(self, executions: int) -> ExecutionLog:
        return ExecutionLog(self.folder / "executions", executions * 2 + 1000)


@dataclass(frozen=True)
class Scenario:
    """Entries that run in turn, round by round, so that a slow minute affects all of them alike."""

    name: str
    title: str
    run: Callable[[RunContext, Entry], Metrics]
    shown: tuple[str, ...]  # the metrics in tables, the main one first
    entries: Sequence[Entry]
    short: bool = False  # part of ``make bench``


def percentile(values: Sequence[float], share: float) -> float:
    """The value that the given share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
