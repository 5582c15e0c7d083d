"""The page of figures is made from the kept run, and from nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from bench.__main__ import KEPT

from bench import plots, report


@pytest.fixture
def kept() -> dict[str, object]:
    found: dict[str, object] = json.loads(KEPT.read_text(encoding="utf-8"))
    return found


def test_the_page_shows_the_kept_run(kept: dict[str, object]) -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.filled(page, kept), "make it anew: python -m bench report"


def test_the_plots_show_the_kept_run(kept: dict[str, object]) -> None:
    for name, drawing in plots.drawings(kept).items():
        assert (report.PLOTS / name).read_text(encoding="utf-8") == drawing


def test_only_what_stands_between_the_markers_is_made_anew(kept: dict[str, object]) -> None:
    page = "before\n<!-- bench:machine -->\nold\n<!-- /bench -->\nafter\n"
    filled = report.filled(page, kept)
    assert filled.startswith("before\n<!-- bench:machine -->\n- ")
    assert filled.endswith("\n<!-- /bench -->\nafter\n")
    assert "old" not in filled
    assert report.filled(filled, kept) == filled


def test_a_plot_starts_at_zero_and_is_well_formed() -> None:
    drawing = plots.draw("Rate <by> size", [("1", 900.0), ("10", 1000.0), ("100", 20.0)])
    root = ElementTree.fromstring(drawing)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "Rate <by> size, jobs/s"
    assert {"0", "1,000"} <= set(texts)
