"""Throttling of failed sign-ins, and one-time codes. In memory and bounded; nothing is stored."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict

from ..runtime.clock import Clock

FAILURES = 5
WITHIN_S = 60.0
LONGEST_S = 15 * 60.0  # guessing cannot block an account for longer
MOST = 10_000
CODE_S = 600.0
MOST_CODES = 100


class FailedSignIns:
    """Failures of one account or one address."""

    def __init__(self) -> None:
        self.failed_at: list[float] = []
        self.blocked_until = 0.0
        self.blocked_s = 0.0
        self.blocked_before_s = 0.0  # blocked_s before the last failure


class SignInThrottle:
    """Five failures within a minute block sign-in for a minute; each further one for twice as long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, FailedSignIns] = OrderedDict()

    def wait(self, *keys: str) -> float:
        """Seconds until the next try is allowed; 0: now."""
        now = self._clock.monotonic()
        return max(
            (failures.blocked_until - now for key in keys if (failures := self._failures.get(key))),
            default=0.0,
        )

    def failed(self, *keys: str) -> None:
        now = self._clock.monotonic()
        for key in keys:
            failures = self._failures.setdefault(key, FailedSignIns())
            self._failures.move_to_end(key)
            failures.failed_at = [at for at in failures.failed_at if now - at < WITHIN_S] + [now]
            if now - failures.blocked_until > LONGEST_S:
                failures.blocked_s = 0.0
            failures.blocked_before_s = failures.blocked_s
            if len(failures.failed_at) >= FAILURES or failures.blocked_s:
                failures.blocked_s = min(failures.blocked_s * 2 or WITHIN_S, LONGEST_S)
                failures.blocked_until = now + failures.blocked_s
        while len(self._failures) > MOST:
            self._failures.popitem(last=False)

    def undo_failure(self, key: str) -> None:
        """Undo the last failure, unless others have blocked the key meanwhile."""
        failures = self._failures.get(key)
        if failures is not None and failures.failed_at:
            failures.failed_at.pop()
            if len(failures.failed_at) < FAILURES:
                failures.blocked_until, failures.blocked_s = 0.0, failures.blocked_before_s

    def succeeded(self, *keys: str) -> None:
        for key in keys:
            self._failures.pop(key, None)


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
