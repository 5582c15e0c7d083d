"""The performance page shows the stored results and nothing else."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import pytest
from bench.__main__ import RESULTS_FILE

from bench import plots, report


@pytest.fixture
def stored() -> dict[str, object]:
    found: dict[str, object] = json.loads(RESULTS_FILE.read_text(encoding="utf-8"))
    return found


def test_page_shows_the_stored_results(stored: dict[str, object]) -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.filled(page, stored), "out of date: run python -m bench report"


def test_plots_show_the_stored_results(stored: dict[str, object]) -> None:
    for name, drawing in plots.drawings(stored).items():
        assert (report.PLOTS / name).read_text(encoding="utf-8") == drawing


def test_report_replaces_only_text_between_markers(stored: dict[str, object]) -> None:
    page = "before\n<!-- bench:machine -->\nold\n<!-- /bench -->\nafter\n"
    filled = report.filled(page, stored)
    assert filled.startswith("before\n<!-- bench:machine -->\n- ")
    assert filled.endswith("\n<!-- /bench -->\nafter\n")
    assert "old" not in filled
    assert report.filled(filled, stored) == filled


def test_plot_starts_at_zero_and_is_well_formed() -> None:
    drawing = plots.draw("Rate <by> size", [("1", 900.0), ("10", 1000.0), ("100", 20.0)])
    root = ElementTree.fromstring(drawing)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "Rate <by> size, jobs/s"
    assert {"0", "1,000"} <= set(texts)
