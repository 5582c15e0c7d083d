"""Writes the figures of the kept run into docs/performance.md, between markers, and draws the plots."""

from __future__ import annotations

import re
from pathlib import Path

from . import plots, words
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
    """The page with everything between ``<!-- bench:NAME -->`` and ``<!-- /bench -->`` made anew."""
    made = sections(found)

    def section(match: re.Match[str]) -> str:
        return f"{match[1]}\n{made[match[2]]}\n{match[3]}"

    return re.sub(r"(<!-- bench:([\w-]+) -->)\n.*?(<!-- /bench -->)", section, page, flags=re.DOTALL)


def sections(found: Results) -> dict[str, str]:
    return {
        "machine": "\n".join(f"- {line}" for line in words.machine_lines(found)),
        "waits": "\n".join(
            f"- {line}" for name in ("drain1", "drain2") if (line := words.waits_line(found, name))
        ),
        "bars": words.markdown_table(words.bar_rows(found)),
        "figures": "\n\n".join(
            f"**{measure.title}**\n\n{words.markdown_table(words.measure_rows(found, measure))}"
            for measure in words.taken(found)
        ),
        "plots": "\n\n".join(f"![{title}](plots/{name})" for name, title in plots.titles(found).items()),
    }
