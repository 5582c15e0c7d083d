"""How much one credential and one address may ask for: requests at a time, and per second.

In memory and bounded; every server counts for itself. More than the limit at a time wait a moment for
their turn, so that a page or a script that asks for much at once is not refused; only a lasting excess is.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections import OrderedDict

from ..config import Settings
from ..runtime.clock import Clock
from .problems import Problem

MOST_KNOWN = 10_000
BURST_S = 5.0  # of requests that may come at once
WAIT_S = 5.0
WAITING = 8  # times the limit
ADDRESS = 4  # times what a credential may: several share one


class RequestShare:
    """What one credential or address uses."""

    def __init__(self, at_once: int, per_s: float, now: float) -> None:
        self.at_once, self.per_s = at_once, per_s
        self._left, self._counted_at = per_s * BURST_S, now
        self._turns = asyncio.Semaphore(at_once)
        self._entered = 0  # those in a turn and those waiting for one

    @property
    def is_idle(self) -> bool:
        return not self._entered

    async def enter(self, now: float, who: str) -> None:
        """Take a turn; 429 if there is none within a moment, or requests come too fast."""
        self._left = min(self._left + (now - self._counted_at) * self.per_s, self.per_s * BURST_S)
        self._counted_at = now
        if self._left < 1:
            raise _refused(
                f"more than {self.per_s:g} requests per second", who, (1 - self._left) / self.per_s
            )
        self._left -= 1
        if self._entered >= self.at_once * (1 + WAITING):
            raise _refused(f"more than {self.at_once} requests at a time", who, 1.0)
        self._entered += 1
        try:
            async with asyncio.timeout(WAIT_S):
                await self._turns.acquire()
        except BaseException as error:
            self._entered -= 1
            if isinstance(error, TimeoutError):
                raise _refused(f"more than {self.at_once} requests at a time", who, 1.0) from None
            raise

    def leave(self) -> None:
        self._entered -= 1
        self._turns.release()


def _refused(limit: str, who: str, wait_s: float) -> Problem:
    return Problem(
        429,
        "too_many_requests",
        f"This {who} sends {limit}: wait, then send fewer "
        "(settings admin_requests_per_s, admin_requests_in_flight).",
        headers={"Retry-After": str(max(math.ceil(wait_s), 1))},
    )


class RequestLimits:
    """The shares of all that sent requests recently."""

    def __init__(self, clock: Clock, settings: Settings) -> None:
        self._clock = clock
        self._at_once, self._per_s = settings.admin_requests_in_flight, settings.admin_requests_per_s
        self._shares: OrderedDict[str, RequestShare] = OrderedDict()

    def ticket(self) -> Ticket:
        return Ticket(self)

    def share(self, key: str, times: int = 1) -> RequestShare:
        share = self._shares.get(key)
        if share is None:
            share = RequestShare(self._at_once * times, self._per_s * times, self._clock.monotonic())
            self._shares[key] = share
            self._drop_idle()
        self._shares.move_to_end(key)
        return share

    def _drop_idle(self) -> None:
        """Forget those that have not asked for longest; those with a request under way stay."""
        for _ in range(len(self._shares) - MOST_KNOWN):
            key, oldest = next(iter(self._shares.items()))
            self._shares.move_to_end(key)
            if oldest.is_idle:
                del self._shares[key]

    def now(self) -> float:
        return self._clock.monotonic()


class Ticket:
    """The turns that one request has taken."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._held: list[RequestShare] = []

    async def enter_address(self, address: str) -> None:
        await self._enter(self._limits.share(f"address:{network(address)}", ADDRESS), "address")

    async def enter_credential(self, credential: str) -> None:
        await self._enter(self._limits.share(credential), "credential")

    async def _enter(self, share: RequestShare, who: str) -> None:
        await share.enter(self._limits.now(), who)
        self._held.append(share)

    def leave(self) -> None:
        """Release the turns; safe to call twice."""
        while self._held:
            self._held.pop().leave()


def network(address: str) -> str:
    """What one party usually has: an IPv4 address, or a network of IPv6."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))
