"""Figures in words and tables, for the terminal and for the page. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import bars, results
from .catalogue import BY_NAME, MEASURES
from .results import Results
from .setting import Measure

# figure: (heading, decimals)
FIGURES = {
    "jobs_s": ("jobs/s", 0),
    "handlers_s": ("handlers begun/s", 0),
    "worker_cpu_ms": ("worker CPU, ms per 1,000 jobs", 1),
    "server_cpu_ms": ("server CPU, ms per 1,000 jobs", 1),
    "wal_bytes": ("WAL, bytes per job", 0),
    "p50_ms": ("p50, ms", 2),
    "p95_ms": ("p95, ms", 2),
    "p99_ms": ("p99, ms", 2),
    "idle_memory_mb": ("idle memory, MB", 0),
    "idle_cpu_percent": ("idle CPU, %", 1),
    "claim_p99_ms": ("claim p99, ms", 2),
    "dead_tuples": ("dead tuples", 0),
    "dead_tuples_after": ("dead tuples after it ended", 0),
}
Rows = list[list[str]]


def shown(figure: str, value: float | None) -> str:
    return "–" if value is None else f"{value:,.{FIGURES[figure][1]}f}"


def bar_rows(found: Results) -> Rows:
    """The bars: measure, figure, rota, the other, ratio, bar, met."""
    rows = [["Measure", "Figure", "rota", "Other", "Reached", "Bar", "Met"]]
    for verdict in bars.judged(found):
        bar = verdict.bar
        label = BY_NAME[bar.measure].title + ("" if bar.of == "rota" else f": {bar.of}")
        reached = f"{verdict.reached:.2f}×" if bar.to else shown(bar.figure, verdict.reached)
        rows.append(
            [
                label,
                FIGURES[bar.figure][0],
                shown(bar.figure, verdict.rota),
                f"{bar.to}: {shown(bar.figure, verdict.other)}" if bar.to else "",
                reached,
                bar.text,
                "yes" if verdict.met else "no",
            ]
        )
    return rows


def measure_rows(found: Results, measure: Measure) -> Rows:
    """One measure: its entries, medians of the figures that are shown, and failures."""
    entries = found["measures"].get(measure.name, {}).get("entries", {})
    rows = [["", *(FIGURES[figure][0] for figure in measure.shown)]]
    for label in entries:
        medians = [results.median(found, measure.name, label, figure) for figure in measure.shown]
        if all(value is None for value in medians):
            said = results.errors(found, measure.name, label) or ["left out"]
            rows.append([label, said[0].splitlines()[-1][:80], *[""] * (len(measure.shown) - 1)])
        else:
            cells = [shown(figure, value) for figure, value in zip(measure.shown, medians, strict=True)]
            rows.append([label, *cells])
    return rows


def taken(found: Results) -> Iterable[Measure]:
    return (measure for measure in MEASURES if measure.name in found["measures"])


def plain_table(rows: Rows) -> str:
    """For a terminal."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def markdown_table(rows: Rows) -> str:
    head, *body = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *body])


def waits_line(found: Results, measure: str, label: str = "rota") -> str:
    """What the server did meanwhile: where its limit is."""
    shares = [f"{name} {share:.0%}" for name, share in results.waits(found, measure, label).items()]
    return f"{BY_NAME[measure].title}: {', '.join(shares[:5])}" if shares else ""


def _extent(found: Results) -> str:
    """How much of the catalogue was taken, when, and in how many rounds: what a reader must know to judge."""
    taken_at = sorted(part["taken_at"] for part in found["measures"].values())
    most = max(len(r) for part in found["measures"].values() for r in part["entries"].values())
    small = [name for name, part in found["measures"].items() if part["scale"] != 1]
    missing = [measure.name for measure in MEASURES if measure.name not in found["measures"]]
    return f"Taken {taken_at[0]} to {taken_at[-1]}, at most {most} round(s) each" + "".join(
        f"; {what}: {', '.join(names)}"
        for what, names in (("not taken", missing), ("not at full size", small))
        if names
    )


def machine_lines(found: Results) -> Sequence[str]:
    """Where the figures come from: machine, server, versions, and who could not take part."""
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
        *(f"Left out: {name}, as {why}" for name, why in found["absent"].items()),
    ]
