"""The benchmark runs: tiny sizes, real stores, real processes; its figures mean nothing here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from servers import Postgres

ROOT = Path(__file__).resolve().parents[2]


def bench(server: Postgres, out: Path, *words: str) -> tuple[str, dict[str, Any]]:
    command = [sys.executable, "-m", "bench", *words, "--repeat", "1", "--scale", "0.001"]
    done = subprocess.run(
        [*command, "--server", server.url(), "--out", str(out), "--without", "awa,huey,litequeue"],
        cwd=ROOT, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return done.stdout, found["measures"]


def test_it_drains_beside_jobs_that_are_none_of_its_business(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    said, taken = bench(postgres_server, tmp_path / "results.json", "beside")
    assert list(taken["beside"]["entries"]) == ["nothing else", "1M finished", "1M due next month"]
    for label, (figures,) in taken["beside"]["entries"].items():
        assert "error" not in figures, (label, figures)
        assert figures["n"] == 150 and figures["jobs_s"] > 0 and figures["wal_bytes"] > 0
    assert "1M finished" in said and "≥ 0.95× nothing else" in said
    # the last entry's store: the jobs of next month are all still there, as rota itself would list them
    rows = postgres_server.execute(
        "SELECT count(*), count(DISTINCT id), min(run_at) > now() + interval '29 days', bool_and(NOT due) "
        "FROM rota.queued",
        "rota_bench",
    )
    assert rows == [(1000, 1000, True, True)]


def test_peers_that_are_absent_are_named_and_the_rest_goes_on(
    postgres_server: Postgres, tmp_path: Path
) -> None:
    said, taken = bench(postgres_server, tmp_path / "results.json", "sqlite-bulk")
    assert "left out: litequeue: not asked for" in said
    (figures,) = taken["sqlite-bulk"]["entries"]["rota"]
    assert figures["n"] == 150 and figures["jobs_s"] > 0
