"""Public testing utilities: a fake clock, running jobs in a test, the conformance suite for stores.

Importing this opens nothing, starts nothing and does not import pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .clock import FakeClock

if TYPE_CHECKING:
    from . import store_conformance
    from .app_stores import override, reset, reset_sync
    from .assertions import assert_enqueued, assert_not_enqueued
    from .due_jobs import EndlessDrain, drain, drain_sync
    from .inline_jobs import inline

__all__ = [
    "EndlessDrain",
    "FakeClock",
    "assert_enqueued",
    "assert_not_enqueued",
    "drain",
    "drain_sync",
    "inline",
    "override",
    "reset",
    "reset_sync",
    "store_conformance",
]

# What needs the whole app is imported when it is first used.
_MODULES = {
    "EndlessDrain": "due_jobs",
    "assert_enqueued": "assertions",
    "assert_not_enqueued": "assertions",
    "drain": "due_jobs",
    "drain_sync": "due_jobs",
    "inline": "inline_jobs",
    "override": "app_stores",
    "reset": "app_stores",
    "reset_sync": "app_stores",
}


def __getattr__(name: str) -> Any:
    """Import what needs pytest or the whole app only when it is used."""
    if name == "store_conformance":
        return import_module(f".{name}", __name__)
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
