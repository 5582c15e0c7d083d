"""When a sign-in is tried too often. Pure: failures in, the wait out.

Failures of one kind of try block further ones for a minute, and each further failure for twice as long, up to
a quarter of an hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from ..model import Value

WITHIN = timedelta(minutes=15)
FIRST_S = 60.0
LONGEST_S = 15 * 60.0
MOST_KEPT = 50


class Failures(Value, frozen=True, kw_only=True):
    """Failed sign-ins of one kind: from an address, from an address to an account, to an account …"""

    failed_at: tuple[datetime, ...] = ()
    blocked_until: datetime | None = None
    blocked_s: float = 0.0
    blocked_before_s: float = 0.0  # blocked_s before the last failure

    def recent(self, now: datetime, within: timedelta = WITHIN) -> tuple[datetime, ...]:
        return tuple(at for at in self.failed_at if now - at < within)

    def wait_s(self, now: datetime) -> float:
        """Seconds until the next try is allowed; 0: now."""
        return 0.0 if self.blocked_until is None else max((self.blocked_until - now).total_seconds(), 0.0)

    def is_over(self, now: datetime, within: timedelta = WITHIN) -> bool:
        """Whether nothing depends on these failures now."""
        longest = timedelta(seconds=LONGEST_S)
        is_open = self.blocked_until is None or now - self.blocked_until > longest
        return is_open and not self.recent(now, within)

    def added(self, now: datetime, most: int | None, within: timedelta = WITHIN) -> Failures:
        """With one more failure; ``most`` of them block (None: they never do)."""
        times = (*self.recent(now, within), now)[-MOST_KEPT:]
        cooled = self.blocked_until is None or (now - self.blocked_until).total_seconds() > LONGEST_S
        before = 0.0 if cooled else self.blocked_s
        if most is None or (len(times) < most and not before):
            return Failures(failed_at=times)
        blocked_s = min(before * 2 or FIRST_S, LONGEST_S)
        return Failures(
            failed_at=times,
            blocked_until=now + timedelta(seconds=blocked_s),
            blocked_s=blocked_s,
            blocked_before_s=before,
        )

    def undone(self, at: datetime) -> Failures:
        """Without the failure of this instant, which was none: its block ends, unless others failed since."""
        if not self.failed_at or self.failed_at[-1] != at:
            times = [*self.failed_at]
            if at in times:
                times.remove(at)
            return msgspec.structs.replace(self, failed_at=tuple(times))
        if not self.blocked_before_s:
            return Failures(failed_at=self.failed_at[:-1])
        return Failures(failed_at=self.failed_at[:-1], blocked_until=at, blocked_s=self.blocked_before_s)
