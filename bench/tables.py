"""Benchmark results as tables and lines of text, for the terminal and the documentation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import results, targets
from .catalogue import BY_NAME, SCENARIOS
from .results import Results
from .scenario import Scenario

# metric: (heading, decimals)
METRICS = {
    "jobs_s": ("jobs/s", 0),
    "handlers_s": ("handlers started/s", 0),
    "worker_cpu_ms": ("worker CPU, ms per 1,000 jobs", 1),
    "server_cpu_ms": ("server CPU, ms per 1,000 jobs", 1),
    "wal_bytes": ("WAL, bytes per job", 0),
    "p50_ms": ("p50, ms", 2),
    "p95_ms": ("p95, ms", 2),
    "p99_ms": ("p99, ms", 2),
    "idle_memory_mb": ("idle memory, MB", 0),
    "idle_cpu_percent": ("idle CPU, %", 1),
    "claim_p99_ms": ("claim p99, ms", 2),
    "meet_s": ("until they were met, s", 1),
    "dead_tuples": ("dead tuples", 0),
    "dead_tuples_after": ("dead tuples afterwards", 0),
}
Rows = list[list[str]]


def shown(metric: str, value: float | None) -> str:
    return "–" if value is None else f"{value:,.{METRICS[metric][1]}f}"


def target_rows(found: Results) -> Rows:
    """Each target with the results it compares, and whether it is met."""
    rows = [["Scenario", "Metric", "rota", "Other", "Reached", "Target", "Met"]]
    for verdict in targets.verdicts(found):
        target = verdict.target
        label = BY_NAME[target.scenario].title + ("" if target.entry == "rota" else f": {target.entry}")
        reached = f"{verdict.value:.2f}×" if target.baseline else shown(target.metric, verdict.value)
        rows.append(
            [
                label,
                METRICS[target.metric][0],
                shown(target.metric, verdict.rota),
                f"{target.baseline}: {shown(target.metric, verdict.other)}" if target.baseline else "",
                reached,
                target.text,
                "yes" if verdict.met else "no",
            ]
        )
    return rows


def scenario_rows(found: Results, scenario: Scenario) -> Rows:
    """The entries of one scenario: medians of the metrics to show, or the failure."""
    entries = found["scenarios"].get(scenario.name, {}).get("entries", {})
    rows = [["", *(METRICS[metric][0] for metric in scenario.shown)]]
    for label in entries:
        medians = [results.median(found, scenario.name, label, metric) for metric in scenario.shown]
        if all(value is None for value in medians):
            text = results.errors(found, scenario.name, label) or ["left out"]
            rows.append([label, text[0].splitlines()[-1][:80], *[""] * (len(scenario.shown) - 1)])
        else:
            cells = [shown(metric, value) for metric, value in zip(scenario.shown, medians, strict=True)]
            rows.append([label, *cells])
    return rows


def measured(found: Results) -> Iterable[Scenario]:
    return (scenario for scenario in SCENARIOS if scenario.name in found["scenarios"])


def plain_table(rows: Rows) -> str:
    """A table for a terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def markdown_table(rows: Rows) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def waits_line(found: Results, scenario: str, label: str = "rota") -> str:
    """What the server waited for during a scenario, which shows where its limit is."""
    shares = [f"{name} {share:.0%}" for name, share in results.waits(found, scenario, label).items()]
    return f"{BY_NAME[scenario].title}: {', '.join(shares[:5])}" if shares else ""


def _extent(found: Results) -> str:
    """When the scenarios were measured, in how many rounds, and which are missing or smaller."""
    measured_at = sorted(part["measured_at"] for part in found["scenarios"].values())
    most = max(len(r) for part in found["scenarios"].values() for r in part["entries"].values())
    small = [name for name, part in found["scenarios"].items() if part["scale"] != 1]
    missing = [scenario.name for scenario in SCENARIOS if scenario.name not in found["scenarios"]]
    return f"Measured {measured_at[0]} to {measured_at[-1]}, at most {most} round(s) each" + "".join(
        f"; {what}: {', '.join(names)}"
        for what, names in (("not measured", missing), ("not at full size", small))
        if names
    )


def machine_lines(found: Results) -> Sequence[str]:
    """The machine, the server, the versions, and the peers that were left out."""
    machine, server = found["machine"], dict(found["machine"]["postgres"])
    version = server.pop("server_version", "–")
    peers = {name: next(iter(packages.values())) for name, packages in found["versions"].items()}
    others = [f"{name} {peer}" for name, peer in peers.items() if not name.startswith(("rota", "raw"))]
    return [
        f"{machine['cpus']} processors ({machine['processor']}), {machine['memory_gb']:.0f} GB of memory, "
        f"{machine['system']}",
        f"PostgreSQL {version}: {', '.join(f'{name} {value}' for name, value in server.items())}",
        f"Python {machine['python']}, SQLite {machine['sqlite']}",
        f"Peers: {', '.join(others)}",
        _extent(found),
        *(f"Left out: {name} ({why})" for name, why in found["left_out"].items()),
    ]
