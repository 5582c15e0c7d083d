"""Public aids for testing: a clock that you move, and the suite for authors of stores.

Importing this opens nothing, starts nothing and does not import pytest.
"""

from __future__ import annotations

from . import store_conformance
from .clock import FakeClock

__all__ = ["FakeClock", "store_conformance"]
