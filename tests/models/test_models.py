"""The TLA+ models hold, and their broken variants fail. ``make models`` fetches what this needs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import models

PROGRAM = models.java() if models.JAR.exists() else None


@pytest.mark.skipif(PROGRAM is None, reason="needs Java and TLC: make models")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("check", models.CHECKS, ids=lambda check: check.title)
def test_a_model_holds_and_its_broken_variants_fail(check: models.Check) -> None:
    assert PROGRAM is not None
    outcome = models.run(check, PROGRAM)
    assert outcome.is_expected(check), outcome.output
