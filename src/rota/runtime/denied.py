"""Counts denied requests, so that they cannot fill the audit log."""

from __future__ import annotations

from collections import Counter
from datetime import datetime


class DeniedRequests:
    """How many requests of each actor were denied in this minute, by this process."""

    def __init__(self) -> None:
        self._minute, self._counts = 0, Counter[str]()

    def add(self, actor: str, now: datetime) -> int:
        """The number of this one, from 1."""
        minute = int(now.timestamp() // 60)
        if minute != self._minute:
            self._minute, self._counts = minute, Counter()
        self._counts[actor] += 1
        return self._counts[actor]
