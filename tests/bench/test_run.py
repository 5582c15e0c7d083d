"""The benchmark runs with tiny sizes, real stores and real processes; the results mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from servers import Postgres

ROOT = Path(__file__).resolve().parents[2]


def bench(server: Postgres, out: Path, *tables: str) -> tuple[str, dict[str, Any]]:
    command = [sys.executable, "-m", "bench", *tables, "--repeat", "1", "--scale", "0.001"]
    done = subprocess.run(
        [*command, "--server", server.url(), "--out", str(out), "--without", "awa,huey,litequeue"],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return done.stdout, found["scenarios"]


def test_drain_leaves_other_jobs_in_the_store(postgres_server: Postgres, tmp_path: Path) -> None:
    text, measured = bench(postgres_server, tmp_path / "results.json", "other-jobs")
    assert list(measured["other-jobs"]["entries"]) == ["nothing else", "1M finished", "1M due next month"]
    for label, (metrics,) in measured["other-jobs"]["entries"].items():
        assert "error" not in metrics, (label, metrics)
        assert metrics["n"] == 150 and metrics["jobs_s"] > 0 and metrics["wal_bytes"] > 0
    assert "1M finished" in text and "≥ 0.95× nothing else" in text
    # the last entry's store: the jobs of next month are all still there
    rows = postgres_server.execute(
        "SELECT count(*), count(DISTINCT id), min(run_at) > now() + interval '29 days', bool_and(NOT due) "
        "FROM rota.queued",
        "rota_bench",
    )
    assert rows == [(1000, 1000, True, True)]


def test_excluded_peers_are_named_and_the_others_run(postgres_server: Postgres, tmp_path: Path) -> None:
    text, measured = bench(postgres_server, tmp_path / "results.json", "sqlite-bulk")
    assert "left out: litequeue: excluded with --without" in text
    (metrics,) = measured["sqlite-bulk"]["entries"]["rota"]
    assert metrics["n"] == 150 and metrics["jobs_s"] > 0
