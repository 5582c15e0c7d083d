"""Who has failed to sign in too often, and codes that work once. In memory and bounded."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict

from ..runtime.clock import Clock

FAILURES = 5
WITHIN_S = 60.0
LONGEST_S = 15 * 60.0  # nobody can shut an account for longer by guessing at it
MOST = 10_000
CODE_S = 600.0
MOST_CODES = 100


class FailedSignIns:
    """Failures of one account or one address."""

    def __init__(self) -> None:
        self.failed_at: list[float] = []
        self.shut_until = 0.0
        self.shut_for = 0.0
        self.shut_for_before = 0.0  # the last failure


class SignInThrottle:
    """Five failures within a minute shut the door for a minute; each further one twice as long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries: OrderedDict[str, FailedSignIns] = OrderedDict()

    def wait(self, *keys: str) -> float:
        """Seconds until one may try again; 0: now."""
        now = self._clock.monotonic()
        return max((tries.shut_until - now for key in keys if (tries := self._tries.get(key))), default=0.0)

    def failed(self, *keys: str) -> None:
        now = self._clock.monotonic()
        for key in keys:
            tries = self._tries.setdefault(key, FailedSignIns())
            self._tries.move_to_end(key)
            tries.failed_at = [at for at in tries.failed_at if now - at < WITHIN_S] + [now]
            if now - tries.shut_until > LONGEST_S:
                tries.shut_for = 0.0
            tries.shut_for_before = tries.shut_for
            if len(tries.failed_at) >= FAILURES or tries.shut_for:
                tries.shut_for = min(tries.shut_for * 2 or WITHIN_S, LONGEST_S)
                tries.shut_until = now + tries.shut_for
        while len(self._tries) > MOST:
            self._tries.popitem(last=False)

    def took_back(self, key: str) -> None:
        """The last failure was none: the door is as it was, unless others have shut it meanwhile."""
        tries = self._tries.get(key)
        if tries is not None and tries.failed_at:
            tries.failed_at.pop()
            if len(tries.failed_at) < FAILURES:
                tries.shut_until, tries.shut_for = 0.0, tries.shut_for_before

    def worked(self, *keys: str) -> None:
        for key in keys:
            self._tries.pop(key, None)


class OneTimeCodes:
    """Codes of one-time sign-in links: good once, for ten minutes."""

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
        """Whether it is good; it is not, the next time."""
        until = self._until.pop(_hash(code), None)
        return until is not None and self._clock.monotonic() < until


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
