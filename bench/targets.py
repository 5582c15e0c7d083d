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
    *(
        Target("limits", "jobs_s", minimum, baseline="plain", entry=entry)
        for entry, minimum in {
            "limits of other queues": 0.97,
            "1,000 tenants": 0.9,
            "one tenant of 1,000 with 90 %": 0.85,
            "a queue limit": 0.92,
            "10,000 keys, running": 0.8,
            "10,000 keys and a queue limit": 0.75,
            "10,000 keys, rate": 0.75,
            "a key per job": 0.85,
        }.items()
    ),
    Target("limits", "jobs_s", 0.9, baseline="100 keys, running", entry="10,000 keys, running"),
    Target("limits2", "jobs_s", 0.75, baseline="plain", entry="10,000 keys and a queue limit"),
    Target("limits-sqlite", "jobs_s", 0.85, baseline="plain", entry="1,000 tenants"),
    Target("limits-sqlite", "jobs_s", 0.75, baseline="plain", entry="10,000 keys, running"),
    *(
        Target(scenario, "jobs_s", minimum, baseline="plain", entry=entry)
        for scenario in ("limits-bulk", "limits-bulk-sqlite")
        for entry, minimum in {"1,000 tenants": 0.85, "10,000 keys": 0.75}.items()
    ),
    *(
        Target("limits-full", "p99_ms", maximum=50, entry=entry)
        for entry in ("a queue", "a key", "a key, 2 worker processes", "SQLite: a key")
    ),
    *(
        Target(scenario, metric, minimum, maximum, baseline="nothing else", entry=entry)
        for scenario, metric, minimum, maximum in (
            ("behind", "jobs_s", 0.9, None),
            ("behind-1M", "jobs_s", 0.9, None),
            ("behind-sqlite", "jobs_s", 0.9, None),
            ("behind-pickup", "p50_ms", None, 1.1),
            ("behind-pickup-1M", "p50_ms", None, 1.1),
        )
        for entry in ("full key", "paused task", "unknown task")
    ),
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
