"""Words, times and tables of the command line: nothing stored can steer a terminal, everything fits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.cli.parts.job_columns import error_line, progress_line
from rota.cli.parts.time_parsing import parse_duration
from rota.core.plurals import plural
from rota.demo.console import command
from rota.terminal.table import Column, cut, fit, width
from rota.terminal.text import json_text, relative_time, safe, short_duration

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@given(st.text())
def test_safe_text_is_printable(text: str) -> None:
    assert safe(text).isprintable()
    assert all(line.isprintable() for line in safe(text, lines=True).replace("\t", " ").split("\n"))


@given(st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from([0, 2]))
def test_json_text_is_printable_and_reads_back(text: str, indent: int) -> None:
    told = json_text({"text": text}, indent=indent)
    assert told.replace("\n", "").isprintable()
    assert msgspec.json.decode(told) == {"text": text}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.08, "80 ms"),
        (3.21, "3.2 s"),
        (45, "45 s"),
        (300, "5 min"),
        (7200, "2 h"),
        (345_600, "4 d"),
    ],
)
def test_a_duration_is_shown_in_one_unit(seconds: float, words: str) -> None:
    assert short_duration(seconds) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(300, "in 5 min"), (-3, "3 s ago"), (0.1, "now"), (-90, "2 min ago")]
)
def test_a_time_is_shown_relative_to_now(seconds: float, words: str) -> None:
    assert relative_time(NOW + timedelta(seconds=seconds), NOW) == words


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5", 1.5), ("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172_800)],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@given(st.lists(st.integers(1, 60), min_size=3, max_size=3), st.integers(20, 200))
def test_a_table_fits_or_shows_only_what_must_be_shown(widths: list[int], space: int) -> None:
    columns = (Column("id"), Column("task", yields=2), Column("note", yields=1))
    fitted = fit(columns, widths, space)
    shown = [w for w in fitted if w]
    assert fitted[0] == widths[0]
    assert sum(shown) + 2 * (len(shown) - 1) <= space or shown == [widths[0]]


@given(st.text(st.characters(categories=["L", "N"])), st.integers(1, 40))
def test_cut_text_takes_no_more_cells_than_given(text: str, size: int) -> None:
    assert width(cut(text, size)) <= size


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"type": "ValueError", "message": "no"}, "ValueError: no"),
        ({"unreadable": "{{"}, "Error: {{"),
        ({}, "Error: "),
        ("just text", "just text"),
        ([1], "[1]"),
        (None, ""),
    ],
)
def test_any_stored_error_has_a_headline(stored: object, words: str) -> None:
    assert error_line(stored) == words


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"percent": 40.0, "message": "on"}, "40% on"),
        ({"unreadable": "x"}, ""),
        ({"percent": None, "message": "m", "log": []}, "m"),
        (3, ""),
        (None, ""),
    ],
)
def test_any_stored_progress_can_be_shown(stored: object, words: str) -> None:
    assert progress_line(stored) == words


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        ({"percent": 125 / 3, "message": "rendered"}, "41.7% rendered"),
        ({"percent": 40.0, "message": ""}, "40%"),
        ({"percent": 7.999999999998, "message": ""}, "8%"),
        ({"percent": None, "message": "soon"}, "soon"),
        ({"percent": "half", "message": ""}, "half%"),
        ("text", ""),
    ],
)
def test_progress_is_shown_with_few_digits(progress: Any, shown: str) -> None:
    assert progress_line(progress) == shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0 jobs"), (1, "1 job"), (1200, "1,200 jobs")])
def test_a_number_has_its_noun(count: int, shown: str) -> None:
    assert plural(count, "job") == shown


def test_the_demo_names_a_command_that_exists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "bin" / "rota"
    script.parent.mkdir()
    script.write_text("")
    monkeypatch.setattr("sys.executable", str(script.with_name("python")))
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.chdir(tmp_path)
    assert command("sqlite:///a.db") == "bin/rota --url sqlite:///a.db"
    script.unlink()
    assert command("sqlite:///a.db") == f"{script.with_name('python')} -m rota --url sqlite:///a.db"
