"""The pauses (gates) in force, as this process last read them from the store, judged by the clock.

While the store is unavailable, those known last stay in force.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from ..core.jobs.gates import active
from ..model import Gate
from ..store.protocol import Store
from .clock import Clock, monotonic

KIND = "gate"


async def load(store: Store) -> list[Gate]:
    """All gates of the store, expired ones included; one that cannot be read is left out."""
    found = []
    for document in await store.documents(KIND):
        try:
            found.append(msgspec.json.decode(document.body, type=Gate))
        except msgspec.DecodeError:
            continue
    return found


class GateWatch:
    """Owns the copy of the gates that one worker claims by. Never sets or ends a pause."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.changed: Callable[[], None] = lambda: None  # called when a reading differs from the last
        self._read_at = float("-inf")
        self._store = store
        self._clock = clock
        self._gates: Sequence[Gate] = ()

    async def refresh(self, if_older_s: float = 0.0) -> bool:
        """Read the gates again, unless the last reading is younger than that; whether they have changed."""
        began = monotonic()
        if began - self._read_at < if_older_s:
            return False
        before, self._gates = self._gates, await load(self._store)
        self._read_at = began
        if list(before) == self._gates:
            return False
        self.changed()
        return True

    def active(self) -> Sequence[Gate]:
        """Those in force now."""
        return active(self._gates, self._clock.now()) if self._gates else ()

    @property
    def is_all_closed(self) -> bool:
        return any(gate.scope == "all" for gate in self.active())

    def next_end_at(self) -> datetime | None:
        """When the next pause ends by itself."""
        return min((gate.until_at for gate in self.active() if gate.until_at is not None), default=None)
