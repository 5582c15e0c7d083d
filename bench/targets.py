"""The targets that rota sets itself, and whether a run met them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import results
from .results import Results


@dataclass(frozen=True)
class Target:
    """A limit for one metric of an entry: relative to the ``baseline`` entry, or absolute without one."""

    scenario: str
    metric: str
    minimum: float | None = None
    maximum: float | None = None
    baseline: str | None = None
    entry: str = "rota"

    @property
    def text(self) -> str:
        sign, bound = ("≥", self.minimum) if self.minimum is not None else ("≤", self.maximum)
        return f"{sign} {bound:,g}" + (f"× {self.baseline}" if self.baseline else "")


@dataclass(frozen=True)
class Verdict:
    target: Target
    rota: float
    other: float | None
    value: float  # the ratio to the baseline, or the metric itself
    met: bool


TARGETS = [
    Target("drain1", "jobs_s", 1.5, baseline="graphile-worker"),
    Target("drain1", "jobs_s", 1.5, baseline="pg-boss"),
    Target("drain1", "jobs_s", 3, baseline="pgqueuer"),
    Target("drain1", "jobs_s", 8, baseline="awa"),
    Target("drain1", "worker_cpu_ms", maximum=25),
    Target("drain2", "jobs_s", 1.2, baseline="graphile-worker"),
    Target("drain2", "jobs_s", 2, baseline="pgqueuer"),
    Target("drain2", "jobs_s", 0.9, baseline="rota, 1 process"),
    Target("wal", "wal_bytes", maximum=1300),
    Target("bulk", "jobs_s", 2, baseline="awa"),
    Target("bulk", "jobs_s", 2, baseline="pg-boss"),
    Target("single", "jobs_s", 1.3, baseline="pgqueuer"),
    Target("single", "jobs_s", 0.85, baseline="raw INSERT"),
    Target("callers", "jobs_s", 1.5, baseline="32 raw connections"),
    Target("pickup", "p50_ms", maximum=0.8, baseline="graphile-worker"),
    Target("pickup", "p99_ms", maximum=0.8, baseline="graphile-worker"),
    Target("pickup", "idle_memory_mb", maximum=45),
    Target("pickup", "idle_cpu_percent", maximum=1),
    Target("sustained", "p99_ms", maximum=1, baseline="pgqueuer"),
    Target("sqlite-callers", "jobs_s", 5, baseline="huey"),
    Target("sqlite-bulk", "jobs_s", 1.5, baseline="litequeue"),
    Target("sqlite-drain", "jobs_s", 7, baseline="huey"),
    Target("sqlite-pickup", "p50_ms", maximum=0.5, baseline="litequeue"),
    Target("other-jobs", "jobs_s", 0.95, baseline="nothing else", entry="1M finished"),
    Target("other-jobs", "jobs_s", 0.9, baseline="nothing else", entry="1M due next month"),
    Target("backlog", "handlers_s", 0.9, baseline="100k waiting", entry="5M waiting"),
    Target("other-jobs-10M", "jobs_s", 0.95, baseline="nothing else", entry="10M finished"),
    Target("handlers", "jobs_s", 3, baseline="chancy, thread", entry="thread"),
    Target("handlers", "jobs_s", 3, baseline="procrastinate, thread", entry="thread"),
    Target("content", "jobs_s", 0.5, baseline="plain", entry="20 % fail once"),
    Target("open-transaction", "jobs_s", 0.95, baseline="clean", entry="held open"),
    Target("open-transaction", "claim_p99_ms", maximum=2, baseline="clean", entry="held open"),
]


def verdicts(found: Results) -> Iterator[Verdict]:
    """A verdict for each target that was measured."""
    for target in TARGETS:
        rota = results.median(found, target.scenario, target.entry, target.metric)
        if rota is None:
            continue
        other = value = None
        if target.baseline is None:
            value = rota
        else:
            other = results.median(found, target.scenario, target.baseline, target.metric)
            value = results.ratio(found, target.scenario, target.metric, target.entry, target.baseline)
        if value is not None:
            yield Verdict(target, rota, other, value, _meets(target, value))


def _meets(target: Target, value: float) -> bool:
    if target.minimum is not None:
        return value >= target.minimum
    assert target.maximum is not None
    return value <= target.maximum
