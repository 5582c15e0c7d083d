"""Public testing utilities: a fake clock, running jobs in a test, the conformance suite for stores.

Importing this opens nothing, starts nothing and does not import pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .clock import FakeClock

if TYPE_CHECKING:
    from . import store_conformance
    from .jobs import assert_enqueued, assert_not_enqueued, drain, inline

__all__ = [
    "FakeClock",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "inline",
    "store_conformance",
]


def __getattr__(name: str) -> Any:
    """Import what needs pytest or the whole app only when it is used."""
    if name == "store_conformance":
        return import_module(f".{name}", __name__)
    if name in __all__:
        from . import jobs

        return getattr(jobs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
