"""The suite tells a good store from a dangerous one: those that are broken on purpose must fail it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RULES = {
    "durable": "acknowledged_inserts_survive",
    "atomic": "a_settlement_is_whole",
    "time": "a_claim_is_made_at_the_stores or a_claim_that_comes_too_late",
    "waking": "an_insert_wakes_a_waiting_worker or the_end_of_a_job_wakes or in_another_process",
}
SUITE = """
import pytest
from broken_stores import *
from hosts import SqliteHost
from rota.testing.conformance import wakeups
from rota.testing.store_conformance import StoreConformance, StoreCrashConformance
wakeups.SOON_S = {soon_s}

@pytest.fixture
def host(tmp_path):
    return SqliteHost(tmp_path / "rota.db", "{factory}")

@pytest.fixture
async def store(host):
    module, name = host.factory.split(":")
    store = getattr(__import__(module, fromlist=[name]), name)(host.url)
    await store.schema.migrate()
    await store.open()
    yield store
    await store.close()

class TestStore(StoreConformance, StoreCrashConformance):
    pass
"""


def outcome(folder: Path, factory: str, rules: str) -> tuple[int, str]:
    """The exit code of the suite on that store, by those rules, and what it printed."""
    soon_s = 60 if factory.endswith("SqliteStore") else 1
    (folder / "test_one.py").write_text(SUITE.format(factory=factory, soon_s=soon_s))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:rota",
         "-o", "asyncio_mode=auto", "-o", "markers=rule", "--tb=short", "-k", rules, "test_one.py"],
        cwd=folder, capture_output=True, text=True, timeout=110, check=False, env=_environment(),
    )  # fmt: skip
    return run.returncode, run.stdout + run.stderr


def _environment() -> dict[str, str]:
    import os

    path = [str(HERE), str(HERE.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(one).resolve()) for one in path if one)}


def test_a_good_store_keeps_the_rules_that_the_broken_ones_break(tmp_path: Path) -> None:
    code, said = outcome(tmp_path, "rota.store.sqlite.store:SqliteStore", " or ".join(RULES.values()))
    assert code == 0, said
    assert "9 passed" in said


@pytest.mark.parametrize(
    ("store", "rule", "failed"),
    [
        ("AcknowledgesFromMemory", "durable", 1),
        ("WritesInParts", "atomic", 1),
        ("ReadsTheTimeOnce", "time", 3),
        ("NeverWakes", "waking", 4),
    ],
)
def test_a_broken_store_fails_the_rule_that_it_breaks(
    tmp_path: Path, store: str, rule: str, failed: int
) -> None:
    code, said = outcome(tmp_path, f"broken_stores:{store}", RULES[rule])
    assert code == 1, said
    assert f"{failed} failed" in said and "passed" not in said, said
