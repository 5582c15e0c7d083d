"""Writes the stored results into docs/performance.md, between markers, and draws the plots."""

from __future__ import annotations

import re
from pathlib import Path

from . import plots, tables
from .results import Results

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = DOCS / "performance.md"
PLOTS = DOCS / "plots"


def write(found: Results) -> None:
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    PLOTS.mkdir(exist_ok=True)
    for name, drawing in plots.drawings(found).items():
        (PLOTS / name).write_text(drawing, encoding="utf-8")


def filled(page: str, found: Results) -> str:
    """The page with everything between ``<!-- bench:NAME -->`` and ``<!-- /bench -->`` replaced."""
    content = sections(found)

    def section(match: re.Match[str]) -> str:
        return f"{match[1]}\n{content[match[2]]}\n{match[3]}"

    return re.sub(r"(<!-- bench:([\w-]+) -->)\n.*?(<!-- /bench -->)", section, page, flags=re.DOTALL)


def sections(found: Results) -> dict[str, str]:
    return {
        "machine": "\n".join(f"- {line}" for line in tables.machine_lines(found)),
        "waits": "\n".join(
            f"- {line}" for name in ("drain1", "drain2") if (line := tables.waits_line(found, name))
        ),
        "targets": tables.markdown_table(tables.target_rows(found)),
        "results": "\n\n".join(
            f"**{scenario.title}**\n\n{tables.markdown_table(tables.scenario_rows(found, scenario))}"
            for scenario in tables.measured(found)
        ),
        "plots": "\n\n".join(f"![{title}](plots/{name})" for name, title in plots.titles(found).items()),
    }
