"""Limits of failed sign-ins, in the store, so that all servers share them. Holds neither names nor addresses.

Failures count by address, and by account and address together. Those of an account from anywhere block no
one: they only lower the number of tries that each address has. A browser that has signed in to an account
before is known by a cookie and counts for itself, so that no stranger can keep its owner out.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from ..core.sign_in import Failures
from ..model import Value
from ..runtime.clock import Clock
from ..store.calls import find_document
from ..store.protocol import Store
from .credentials import read_stored, secret_hash, stored_text

KIND, DEVICE = "sign_in", "sign_in_device"
TRIES = 5  # of an address for one account, or of a known browser
TRIES_UNDER_ATTACK = 1
TRIES_OF_ADDRESS = 20  # for all accounts
ATTACK = 20  # failures of an account within ATTACK_WITHIN
ATTACK_WITHIN = timedelta(hours=1)
DEVICE_LASTS = timedelta(days=180)
MOST_DEVICES = 10  # of one user
MOST_ROWS = 5000
PRUNE_EVERY = 500  # tries
ROUNDS = 5  # of comparing and writing, against others who write the same row


class TooManyTries(Exception):
    """Too many failures: try again after ``seconds``."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"try again in {seconds:.0f} s")
        self.seconds = seconds


class Device(Value, frozen=True, kw_only=True):
    """A browser that has signed in to an account. No credential: it only has tries of its own."""

    account: str  # a hash
    used_at: datetime


class Counter(NamedTuple):
    """One row of failures, and how many of them block."""

    key: str
    most: int | None
    within: timedelta = timedelta(minutes=15)


class Tried(NamedTuple):
    """A try that was counted as a failure, before its outcome is known."""

    counters: Sequence[Counter]
    account: str | None
    device: str | None
    at: datetime


class SignInLimits:
    """Counts the tries of one store."""

    def __init__(self) -> None:
        self._tries = 0

    async def begin(
        self, store: Store, clock: Clock, account: str | None, address: str, device: str | None
    ) -> Tried:
        """Count a try, before it is checked, which takes time in which others may try. TooManyTries."""
        now = clock.now()
        if self._tries % PRUNE_EVERY == 0:
            await prune(store, now)
        self._tries += 1
        known = device if account and device and await _is_known(store, device, account, now) else None
        counters = await _counters(store, now, account, address, known)
        for counter in counters:
            wait = (await _read(store, counter.key))[0].wait_s(now)
            if wait > 0:
                raise TooManyTries(wait)
        for counter in counters:
            await _change(store, counter.key, now, partial(_one_more, counter, now))
        return Tried(counters, account, known, now)

    async def succeeded(self, store: Store, clock: Clock, tried: Tried) -> str | None:
        """Undo the failure; the cookie that makes this browser known, if it is a new one.

        Failures of the address and of the account stay: one valid password must not allow guesses at others.
        """
        now = clock.now()
        for counter in tried.counters:
            if counter.key.startswith(("pair-", "device-")):
                await store.delete_document(KIND, counter.key)
            else:
                await _change(store, counter.key, now, partial(Failures.undone, at=tried.at))
        return None if tried.account is None else await _remember(store, now, tried.account, tried.device)


def _one_more(counter: Counter, now: datetime, old: Failures) -> Failures:
    """TooManyTries, if those who try at the same time have used up the tries since they were read."""
    if (wait := old.wait_s(now)) > 0:
        raise TooManyTries(wait)
    return old.added(now, counter.most, counter.within)


async def _counters(
    store: Store, now: datetime, account: str | None, address: str, device: str | None
) -> list[Counter]:
    if device is not None:
        return [Counter(_key("device", device), TRIES)]
    counters = [Counter(_key("address", address), TRIES_OF_ADDRESS)]
    if account is not None:
        wide = Counter(_key("account", account), None, ATTACK_WITHIN)
        recent = (await _read(store, wide.key))[0].recent(now, ATTACK_WITHIN)
        tries = TRIES_UNDER_ATTACK if len(recent) >= ATTACK else TRIES
        counters += [Counter(_key("pair", f"{account}\0{address}"), tries), wide]
    return counters


def _key(kind: str, value: str) -> str:
    return f"{kind}-{hashlib.sha256(value.encode()).hexdigest()[:40]}"


async def _read(store: Store, key: str) -> tuple[Failures, int]:
    """The failures and the version of their row; none: 0."""
    document = await find_document(store, KIND, key)
    found = None if document is None else read_stored(document.body, Failures)
    return found or Failures(), 0 if document is None else document.version


async def _change(store: Store, key: str, now: datetime, change: Callable[[Failures], Failures]) -> None:
    for _ in range(ROUNDS):
        old, version = await _read(store, key)
        if await store.put_document(KIND, key, stored_text(change(old)), version, now) is not None:
            return
    raise TooManyTries(1.0)  # many try the same at once


# --- known browsers ------------------------------------------------------------------------------


async def _is_known(store: Store, device: str, account: str, now: datetime) -> bool:
    document = await find_document(store, DEVICE, secret_hash(device))
    found = None if document is None else read_stored(document.body, Device)
    return found is not None and found.account == _key("", account) and now - found.used_at < DEVICE_LASTS


async def _remember(store: Store, now: datetime, account: str, device: str | None) -> str | None:
    fresh = None if device is not None else secrets.token_urlsafe(24)
    known = Device(account=_key("", account), used_at=now)
    await store.put_document(DEVICE, secret_hash(device or fresh or ""), stored_text(known), None, now)
    own = [
        (found.used_at, one.key)
        for one in await store.documents(DEVICE)
        if (found := read_stored(one.body, Device)) is not None and found.account == known.account
    ]
    for _, key in sorted(own, reverse=True)[MOST_DEVICES:]:
        await store.delete_document(DEVICE, key)
    return fresh


async def prune(store: Store, now: datetime) -> None:
    """Delete what no longer counts, and the oldest beyond what is kept at most."""
    rows = []
    for document in await store.documents(KIND):
        found = read_stored(document.body, Failures)
        if found is None or found.is_over(now, ATTACK_WITHIN):
            await store.delete_document(KIND, document.key)
        else:
            rows.append((max(found.failed_at, default=now), document.key))
    for _, key in sorted(rows, reverse=True)[MOST_ROWS:]:
        await store.delete_document(KIND, key)
    for document in await store.documents(DEVICE):
        known = read_stored(document.body, Device)
        if known is None or now - known.used_at >= DEVICE_LASTS:
            await store.delete_document(DEVICE, document.key)
