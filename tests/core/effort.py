"""How many examples the tests of this folder try: few by default, all with ``make long`` (ROTA_LONG=1)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

LONG = os.environ.get("ROTA_LONG") == "1"
QUICK = 8


def examples(full: int = 100, quick: int = QUICK) -> settings:
    """Settings for a property test: ``full`` examples in a long run, otherwise ``quick``."""
    return settings(
        max_examples=full if LONG else quick,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
