"""Medians, ratios and verdicts of the benchmark."""

from __future__ import annotations

from typing import Any

import pytest
from bench.catalogue import BY_NAME, SCENARIOS

from bench import results, tables, targets


def measured(scenario: str, **entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {"scenarios": {scenario: {"entries": {name.replace("_", "-"): e for name, e in entries.items()}}}}


def rates(*values: float) -> list[dict[str, Any]]:
    return [{"jobs_s": value} for value in values]


def test_median_ignores_failed_rounds() -> None:
    found = measured("drain1", rota=[*rates(10, 30), {"error": "a job was lost"}])
    assert results.median(found, "drain1", "rota", "jobs_s") == 20
    assert results.errors(found, "drain1", "rota") == ["a job was lost"]


def test_ratio_compares_within_each_round() -> None:
    # the machine was twice as fast in the second round: both were, so the ratio stays
    found = measured("drain1", rota=rates(30, 60, 30), pg_boss=rates(10, 20, 10))
    assert results.ratio(found, "drain1", "jobs_s", "rota", "pg-boss") == 3


def test_ratio_ignores_rounds_in_which_one_entry_failed() -> None:
    found = measured("drain1", rota=[*rates(30), {"error": "x"}, *rates(40)], pg_boss=rates(10, 10, 10))
    assert results.ratio(found, "drain1", "jobs_s", "rota", "pg-boss") == 3.5


def test_targets_without_results_have_no_verdict() -> None:
    assert list(targets.verdicts(measured("drain1", rota=rates(1)))) == []
    assert list(targets.verdicts({"scenarios": {}})) == []


def test_target_is_met_at_its_exact_value() -> None:
    found = measured("drain1", rota=rates(30), pgqueuer=rates(10), awa=rates(10))
    verdicts = {verdict.target.baseline: verdict for verdict in targets.verdicts(found)}
    assert verdicts["pgqueuer"].met and verdicts["pgqueuer"].value == 3
    assert not verdicts["awa"].met


def test_target_without_a_baseline_compares_the_metric() -> None:
    found = measured("wal", rota=[{"wal_bytes": 1300.0}])
    (verdict,) = targets.verdicts(found)
    assert verdict.met and verdict.other is None
    (verdict,) = targets.verdicts(measured("wal", rota=[{"wal_bytes": 1301.0}]))
    assert not verdict.met


def test_targets_name_existing_entries_and_metrics() -> None:
    for target in targets.TARGETS:
        scenario = BY_NAME[target.scenario]
        labels = {entry.label for entry in scenario.entries}
        assert target.entry in labels and (target.baseline is None or target.baseline in labels), target
        assert target.metric in scenario.shown, target
        assert (target.minimum is None) != (target.maximum is None), target


def test_scenarios_have_unique_names_and_known_metrics() -> None:
    assert len(BY_NAME) == len(SCENARIOS)
    for scenario in SCENARIOS:
        labels = [entry.label for entry in scenario.entries]
        assert len(set(labels)) == len(labels), scenario.name
        assert set(scenario.shown) <= tables.METRICS.keys(), scenario.name


@pytest.mark.parametrize("make", [tables.plain_table, tables.markdown_table])
def test_tables_show_the_last_line_of_an_error(make: Any) -> None:
    found = measured("drain1", rota=rates(12_345.6), awa=[{"error": "traceback\nthe worker exited"}])
    text = make(tables.scenario_rows(found, BY_NAME["drain1"]))
    assert "12,346" in text
    assert "the worker exited" in text and "traceback" not in text
