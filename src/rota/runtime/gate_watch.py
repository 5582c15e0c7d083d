"""The gates as this process last saw them: read from the store now and then, judged by the clock.

A store that is away changes nothing: what was known last holds on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ..core.jobs.gates import active
from ..model import Gate
from ..store.protocol import Store
from .clock import Clock

KIND = "gate"


async def load(store: Store) -> list[Gate]:
    """All gates of the store, also those whose end has come; a spoiled one is left out."""
    found = []
    for document in await store.documents(KIND):
        try:
            found.append(msgspec.json.decode(document.body, type=Gate))
        except msgspec.DecodeError:
            continue
    return found


class GateWatch:
    def __init__(self, store: Store, clock: Clock) -> None:
        self.seen = False  # whether the store was asked at all
        self._store = store
        self._clock = clock
        self._gates: Sequence[Gate] = ()

    async def look(self) -> bool:
        """Read the gates anew; whether they have changed."""
        before, self._gates = self._gates, await load(self._store)
        self.seen = True
        return list(before) != self._gates

    def standing(self) -> Sequence[Gate]:
        """Those that are closed at this moment."""
        return active(self._gates, self._clock.now()) if self._gates else ()

    @property
    def is_all_closed(self) -> bool:
        return any(gate.scope == "all" for gate in self.standing())

    def next_end_at(self) -> datetime | None:
        """When the next gate opens by itself."""
        return min((gate.until_at for gate in self.standing() if gate.until_at is not None), default=None)
