"""The bars that rota sets itself, and whether a run met them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from . import results
from .results import Results


@dataclass(frozen=True)
class Bar:
    """``of`` (an entry of the measure) against ``to`` (another, or None: the bar is the figure itself)."""

    measure: str
    figure: str
    least: float | None = None
    most: float | None = None
    to: str | None = None
    of: str = "rota"

    @property
    def text(self) -> str:
        sign, bound = ("≥", self.least) if self.least is not None else ("≤", self.most)
        return f"{sign} {bound:,g}" + (f"× {self.to}" if self.to else "")


@dataclass(frozen=True)
class Verdict:
    bar: Bar
    rota: float
    other: float | None
    reached: float  # the ratio, or the figure itself
    met: bool


BARS = [
    Bar("drain1", "jobs_s", 1.5, to="graphile-worker"),
    Bar("drain1", "jobs_s", 1.5, to="pg-boss"),
    Bar("drain1", "jobs_s", 3, to="pgqueuer"),
    Bar("drain1", "jobs_s", 8, to="awa"),
    Bar("drain1", "worker_cpu_ms", most=25),
    Bar("drain2", "jobs_s", 1.2, to="graphile-worker"),
    Bar("drain2", "jobs_s", 2, to="pgqueuer"),
    Bar("drain2", "jobs_s", 0.9, to="rota, 1 process"),
    Bar("log", "wal_bytes", most=1300),
    Bar("bulk", "jobs_s", 2, to="awa"),
    Bar("bulk", "jobs_s", 2, to="pg-boss"),
    Bar("single", "jobs_s", 1.3, to="pgqueuer"),
    Bar("single", "jobs_s", 0.85, to="raw INSERT"),
    Bar("callers", "jobs_s", 1.5, to="32 raw connections"),
    Bar("pickup", "p50_ms", most=0.8, to="graphile-worker"),
    Bar("pickup", "p99_ms", most=0.8, to="graphile-worker"),
    Bar("pickup", "idle_memory_mb", most=45),
    Bar("pickup", "idle_cpu_percent", most=1),
    Bar("sustained", "p99_ms", most=1, to="pgqueuer"),
    Bar("sqlite-callers", "jobs_s", 5, to="huey"),
    Bar("sqlite-bulk", "jobs_s", 1.5, to="litequeue"),
    Bar("sqlite-drain", "jobs_s", 7, to="huey"),
    Bar("sqlite-pickup", "p50_ms", most=0.5, to="litequeue"),
    Bar("beside", "jobs_s", 0.95, to="nothing else", of="1M finished"),
    Bar("beside", "jobs_s", 0.9, to="nothing else", of="1M due next month"),
    Bar("behind", "handlers_s", 0.9, to="100k waiting", of="5M waiting"),
    Bar("beside-10M", "jobs_s", 0.95, to="nothing else", of="10M finished"),
    Bar("handlers", "jobs_s", 3, to="chancy, thread", of="thread"),
    Bar("handlers", "jobs_s", 3, to="procrastinate, thread", of="thread"),
    Bar("content", "jobs_s", 0.5, to="plain", of="20 % fail once"),
    Bar("held", "jobs_s", 0.95, to="clean", of="held open"),
    Bar("held", "claim_p99_ms", most=2, to="clean", of="held open"),
]


def judged(found: Results) -> Iterator[Verdict]:
    """A verdict for each bar whose figures are there."""
    for bar in BARS:
        rota = results.median(found, bar.measure, bar.of, bar.figure)
        if rota is None:
            continue
        other = reached = None
        if bar.to is None:
            reached = rota
        else:
            other = results.median(found, bar.measure, bar.to, bar.figure)
            reached = results.ratio(found, bar.measure, bar.figure, bar.of, bar.to)
        if reached is not None:
            yield Verdict(bar, rota, other, reached, _meets(bar, reached))


def _meets(bar: Bar, reached: float) -> bool:
    if bar.least is not None:
        return reached >= bar.least
    assert bar.most is not None
    return reached <= bar.most
