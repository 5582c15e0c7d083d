"""Results as data: rounds of figures per entry, medians over them, ratios within the same round. Pure.

{"machine": …, "versions": …, "absent": {peer: why},
 "measures": {name: {"taken_at": …, "entries": {label: [figures or {"error": …}, …]}}}}
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

Results = Mapping[str, Any]


def rounds(results: Results, measure: str, label: str) -> Sequence[Mapping[str, Any]]:
    entries: Mapping[str, Any] = results["measures"].get(measure, {}).get("entries", {})
    found: Sequence[Mapping[str, Any]] = entries.get(label, ())
    return found


def median(results: Results, measure: str, label: str, figure: str) -> float | None:
    """Over the rounds that have the figure; None if none has."""
    values = [r[figure] for r in rounds(results, measure, label) if figure in r]
    return statistics.median(values) if values else None


def ratio(results: Results, measure: str, figure: str, label: str, other: str) -> float | None:
    """How many times the other's figure: the median of the rounds' own ratios, as drift outlasts a round."""
    pairs = zip(rounds(results, measure, label), rounds(results, measure, other), strict=False)
    found = [a[figure] / b[figure] for a, b in pairs if a.get(figure) is not None and b.get(figure)]
    return statistics.median(found) if found else None


def waits(results: Results, measure: str, label: str) -> dict[str, float]:
    """What the server's active backends did, in shares of the samples: the rounds' mean, most first."""
    found = [r["waits"] for r in rounds(results, measure, label) if r.get("waits")]
    names = {name for shares in found for name in shares}
    means = {name: statistics.fmean(shares.get(name, 0.0) for shares in found) for name in names}
    return dict(sorted(means.items(), key=lambda item: (-item[1], item[0])))


def errors(results: Results, measure: str, label: str) -> list[str]:
    return [r["error"] for r in rounds(results, measure, label) if "error" in r]
