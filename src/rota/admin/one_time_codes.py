"""One-time sign-in codes, in memory and bounded; nothing is stored."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict

from ..runtime.clock import Clock

CODE_S = 600.0
MOST_CODES = 100


class OneTimeCodes:
    """Codes of one-time sign-in links: each is valid once, for ten minutes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()

    def new(self) -> str:
        code = secrets.token_urlsafe(32)
        self._until[_hash(code)] = self._clock.monotonic() + CODE_S
        while len(self._until) > MOST_CODES:
            self._until.popitem(last=False)
        return code

    def take(self, code: str) -> bool:
        """Use up the code; whether it was valid."""
        until = self._until.pop(_hash(code), None)
        return until is not None and self._clock.monotonic() < until


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
