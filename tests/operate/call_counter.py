"""A proxy around a real store that counts the calls of its methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from rota import Rota


class CountingStore:
    """Passes every call on to the store, and counts those of coroutine methods by name."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found):
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            return found(*args, **kwargs)

        return counted


@contextmanager
def counted_calls(app: Rota, store: Any) -> Iterator[Counter[str]]:
    """The store calls that the app makes inside the block."""
    counting = CountingStore(store)

    async def get() -> CountingStore:
        return counting

    with patch.object(app.stores, "get", get):
        yield counting.calls
