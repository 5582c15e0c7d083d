"""Medians, ratios and verdicts of the benchmark."""

from __future__ import annotations

from typing import Any

import pytest
from bench.catalogue import BY_NAME, MEASURES

from bench import bars, results, words


def taken(measure: str, **entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"measures": {measure: {"entries": {name.replace("_", "-"): e for name, e in entries.items()}}}}


def rates(*values: float) -> list[dict[str, Any]]:
    return [{"jobs_s": value} for value in values]


def test_a_failed_round_is_left_out_of_the_median() -> None:
    found = taken("drain1", rota=[*rates(10, 30), {"error": "a job was lost"}])
    assert results.median(found, "drain1", "rota", "jobs_s") == 20
    assert results.errors(found, "drain1", "rota") == ["a job was lost"]


def test_a_ratio_compares_within_each_round() -> None:
    # the machine was twice as fast in the second round: both were, so the ratio stays
    found = taken("drain1", rota=rates(30, 60, 30), pg_boss=rates(10, 20, 10))
    assert results.ratio(found, "drain1", "jobs_s", "rota", "pg-boss") == 3


def test_a_round_in_which_one_of_the_two_failed_makes_no_ratio() -> None:
    found = taken("drain1", rota=[*rates(30), {"error": "x"}, *rates(40)], pg_boss=rates(10, 10, 10))
    assert results.ratio(found, "drain1", "jobs_s", "rota", "pg-boss") == 3.5


def test_what_was_not_taken_is_not_judged() -> None:
    assert list(bars.judged(taken("drain1", rota=rates(1)))) == []
    assert list(bars.judged({"measures": {}})) == []


def test_a_bar_is_met_at_its_value() -> None:
    found = taken("drain1", rota=rates(30), pgqueuer=rates(10), awa=rates(10))
    verdicts = {verdict.bar.to: verdict for verdict in bars.judged(found)}
    assert verdicts["pgqueuer"].met and verdicts["pgqueuer"].reached == 3
    assert not verdicts["awa"].met


def test_a_bar_without_a_peer_judges_the_figure_itself() -> None:
    found = taken("log", rota=[{"wal_bytes": 1300.0}])
    (verdict,) = bars.judged(found)
    assert verdict.met and verdict.other is None
    (verdict,) = bars.judged(taken("log", rota=[{"wal_bytes": 1301.0}]))
    assert not verdict.met


def test_every_bar_names_entries_and_figures_that_exist() -> None:
    for bar in bars.BARS:
        measure = BY_NAME[bar.measure]
        labels = {entry.label for entry in measure.entries}
        assert bar.of in labels and (bar.to is None or bar.to in labels), bar
        assert bar.figure in measure.shown, bar
        assert (bar.least is None) != (bar.most is None), bar


def test_every_measure_has_names_of_its_own_and_shows_known_figures() -> None:
    assert len(BY_NAME) == len(MEASURES)
    for measure in MEASURES:
        labels = [entry.label for entry in measure.entries]
        assert len(set(labels)) == len(labels), measure.name
        assert set(measure.shown) <= words.FIGURES.keys(), measure.name


@pytest.mark.parametrize("make", [words.plain_table, words.markdown_table])
def test_tables_show_failures_in_words(make: Any) -> None:
    found = taken("drain1", rota=rates(12_345.6), awa=[{"error": "traceback\nthe worker ended"}])
    text = make(words.measure_rows(found, BY_NAME["drain1"]))
    assert "12,346" in text
    assert "the worker ended" in text and "traceback" not in text
