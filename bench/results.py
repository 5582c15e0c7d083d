"""Benchmark results as data: rounds of metrics per entry, their medians and ratios. Pure.

{"machine": …, "versions": …, "left_out": {peer: why},
 "scenarios": {name: {"measured_at": …, "entries": {label: [metrics or {"error": …}, …]}}}}
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def rounds(results: Results, scenario: str, label: str) -> Sequence[Mapping[str, Any]]:
    entries: Mapping[str, Any] = results["scenarios"].get(scenario, {}).get("entries", {})
    found: Sequence[Mapping[str, Any]] = entries.get(label, ())
    return found


def median(results: Results, scenario: str, label: str, metric: str) -> float | None:
    """The median over the rounds that have the metric; None without any."""
    values = [r[metric] for r in rounds(results, scenario, label) if metric in r]
    return statistics.median(values) if values else None


def ratio(results: Results, scenario: str, metric: str, label: str, other: str) -> float | None:
    """The median of the ratios within each round: a machine drifts more slowly than a round lasts."""
    pairs = zip(rounds(results, scenario, label), rounds(results, scenario, other), strict=False)
    found = [a[metric] / b[metric] for a, b in pairs if a.get(metric) is not None and b.get(metric)]
    return statistics.median(found) if found else None


def waits(results: Results, scenario: str, label: str) -> dict[str, float]:
    """What the server's active backends did, as mean shares of the samples, largest first."""
    found = [r["waits"] for r in rounds(results, scenario, label) if r.get("waits")]
    names = {name for shares in found for name in shares}
    means = {name: statistics.fmean(shares.get(name, 0.0) for shares in found) for name in names}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


def errors(results: Results, scenario: str, label: str) -> list[str]:
    return [r["error"] for r in rounds(results, scenario, label) if "error" in r]
