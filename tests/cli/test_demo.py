"""``rota demo``: the first thing a newcomer runs shows every kind of job, and stops well."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.command import eventually, read_json, rota_command, said, started
from rota.demo.console import KINDS
from rota.demo.tasks import app


def test_every_sample_task_has_a_kind() -> None:
    assert set(app.registry.names) == set(KINDS)


def test_a_short_demo_shows_every_kind_and_succeeds(tmp_path: Path) -> None:
    done = rota_command("demo", "--seconds", "5", cwd=tmp_path, TMPDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    for task, kind in KINDS.items():
        assert re.search(rf"{re.escape(task)} +{re.escape(kind)}", done.stdout), task
    for glyph in "○▶✓✗↻⊘◷":
        assert glyph in done.stdout
    for words in (
        "is taken, no second job",
        "At 08:00, Monday through Friday, New York time",
        "◷ fired      demo.heartbeat",
        "due in 2.0 s",
        "ConnectionError",
        "ValueError",
        "-- ",
        "Stopped.",
    ):
        assert words in done.stdout


def test_the_commands_in_the_demo_header_work(tmp_path: Path) -> None:
    with started("demo", cwd=tmp_path, TMPDIR=str(tmp_path)) as demo:
        eventually(lambda: "✗ failed" in said(tmp_path), "a job fails for good")
        shown = r"rota (--url \S+ (?:(?:jobs|schedules|workers|limits|tenants) list|stats))$"
        hints = re.findall(shown, said(tmp_path), re.M)
        assert len(hints) == 6
        for hint in hints:
            assert rota_command(*hint.split(), cwd=tmp_path).returncode == 0
        url = hints[0].split()[1]
        assert str(tmp_path) in url
        assert len(read_json("--url", url, "workers", "list", cwd=tmp_path)["items"]) == 1

        def limits() -> Any:
            listed = read_json("--url", url, "limits", "list", cwd=tmp_path)["items"]
            return {one["name"]: one for one in listed}

        assert limits()["task:demo.contact"]["most"] == 2
        eventually(lambda: limits()["key:demo.account:*"]["keys"], "a job of an account runs")

        def tenants() -> Any:
            listed = read_json("--url", url, "tenants", "list", cwd=tmp_path)["items"]
            return {one["name"]: one for one in listed}

        assert tenants()["acme"]["weight"] == 3
        eventually(lambda: tenants()["initech"]["spent_cents"] > 0, "a job of initech has a price")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) == 0
    assert "Stopped." in said(tmp_path)
    stats = read_json("--url", url, "stats", cwd=tmp_path)
    assert (stats["running"], stats["failed"] >= 1) == (0, True)
    assert not {path.name for path in tmp_path.iterdir()} & {"rota.db", "demo.db"}


def test_a_second_signal_ends_the_demo_at_once(tmp_path: Path) -> None:
    with started("demo", cwd=tmp_path, TMPDIR=str(tmp_path)) as demo:
        eventually(lambda: "▶ running    demo.report" in said(tmp_path), "a slow job runs")
        demo.send_signal(signal.SIGINT)
        eventually(lambda: "Stopping" in said(tmp_path), "the first signal is heard")
        demo.send_signal(signal.SIGINT)
        assert demo.wait(20) == 1


def test_a_quiet_demo_prints_only_summaries(tmp_path: Path) -> None:
    done = rota_command("demo", "--seconds", "3.5", "--quiet", "--url", "sqlite:///here.db", cwd=tmp_path)
    assert done.returncode == 0
    assert "succeeded" in done.stdout and "✓" not in done.stdout
    assert (tmp_path / "here.db").exists()


def test_the_demo_runs_on_postgres(postgres_url: str, tmp_path: Path) -> None:
    done = rota_command("demo", "--seconds", "2", "--url", postgres_url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "✓ succeeded" in done.stdout


@pytest.mark.parametrize("seconds", ["0", "soon"])
def test_a_bad_duration_is_a_usage_error(tmp_path: Path, seconds: str) -> None:
    assert rota_command("demo", "--seconds", seconds, cwd=tmp_path).returncode == 2
