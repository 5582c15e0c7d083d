"""Less patience with a silent PostgreSQL, so that a test sees in seconds what users see in half a minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.store.postgres import connections, listener

ENV = "CRASH_PATIENCE_S"


def shorten(seconds: float, change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Lower every limit, before a store is opened; with ``monkeypatch.setattr`` for the time of a test."""
    change(connections, "PATIENCE_S", dict.fromkeys(connections.PATIENCE_S, seconds))
    change(connections.Connection, "patience_s", seconds)
    change(listener, "PROBE_EVERY_S", seconds)
    change(listener, "PROBE_WITHIN_S", seconds)
