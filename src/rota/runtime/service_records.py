"""When each service of this process last succeeded, and one policy for an unavailable store.

Owns what is late and what is stuck. A late service has not succeeded for longer than it should; a stuck one
has been in one pass for longer than every wait in it may last, so that only a restart helps.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal

from ..errors import StoreUnavailable
from ..model import Value
from .clock import chance, monotonic

log = logging.getLogger("rota.service")

FIRST_DELAY = 0.1
LONGEST_DELAY = 5.0
LOG_EVERY = 30.0
LATE_S = 60.0  # beyond its next pass, without a success
STUCK_S = 300.0  # in one pass: more than the longest wait for a store

ServiceState = Literal["ok", "late", "stuck"]


class ServiceStatus(Value, frozen=True, kw_only=True):
    """A service as others see it: in a worker's document, in probes, in ``rota doctor``."""

    name: str
    state: ServiceState
    succeeded_at: datetime | None = None
    error: str | None = None  # since it last succeeded


def public(status: ServiceStatus) -> dict[str, object]:
    """For probes, which are open to all: without the error, which may name the store."""
    return {"name": status.name, "state": status.state, "succeeded_at": status.succeeded_at}


class ServiceRecord:
    """When a service last succeeded, and how long it waits for an unavailable store (0.1 → 5 s, with jitter).

    Written by the service's own thread; others may read. Times are of the monotonic clock.
    """

    def __init__(self, name: str, longest: float = LONGEST_DELAY) -> None:
        self.name = name
        self._longest = longest
        self.succeeded_at: float | None = None
        self.down_since: float | None = None
        self.is_store_away = False  # as of its last call
        self._expected_by = monotonic() + LATE_S
        self._under_way_since: float | None = None
        self._has_ended = False
        self._error: str | None = None
        self._delay = FIRST_DELAY
        self._logged_at = -LOG_EVERY

    @property
    def state(self) -> ServiceState:
        now, since = monotonic(), self._under_way_since
        if self._has_ended or (since is not None and now - since > STUCK_S):
            return "stuck"
        return "late" if now > self._expected_by else "ok"

    def status(self, now: datetime) -> ServiceStatus:
        at = self.succeeded_at
        succeeded_at = None if at is None else now - timedelta(seconds=monotonic() - at)
        return ServiceStatus(name=self.name, state=self.state, succeeded_at=succeeded_at, error=self._error)

    def ended(self, error: BaseException) -> None:
        """The service is over, though its process continues."""
        self._has_ended, self._error = True, str(error)

    def began(self) -> None:
        self._under_way_since = monotonic()

    def failed(self, error: BaseException, since: float | None = None) -> float:
        """Count a failure of a call made at ``since``; the seconds to wait before the next try."""
        now = monotonic()
        self._under_way_since, self._error = None, str(error)
        self.is_store_away = isinstance(error, StoreUnavailable)
        if self.down_since is None:
            self.down_since = now if since is None else since
        if self.is_store_away and now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            log.warning("%s: store unavailable, retrying: %s", self.name, error)
        delay = self._delay * (0.5 + chance() / 2)
        self._delay = min(self._delay * 2, self._longest)
        return delay

    def worked(self, next_in_s: float = 0.0) -> None:
        now = self.succeeded_at = monotonic()
        self._expected_by = now + next_in_s + LATE_S
        self._under_way_since = self._error = None
        self.is_store_away = False
        if self.down_since is not None:
            log.warning("%s: store available again after %.1f s", self.name, now - self.down_since)
            self.down_since = None
            self._delay = FIRST_DELAY
            self._logged_at = -LOG_EVERY


class ServiceRecords:
    """The records of the services that run in this process."""

    def __init__(self) -> None:
        self._records: list[ServiceRecord] = []
        self.elsewhere: Sequence[ServiceStatus] = ()  # of a process for which this one answers probes

    @contextmanager
    def showing(self, record: ServiceRecord) -> Iterator[None]:
        """Show the record while its service should be running."""
        self._records.append(record)
        try:
            yield
        finally:
            self._records.remove(record)

    def stuck(self) -> Sequence[str]:
        """Names of the services that only a restart helps."""
        here = [record.name for record in list(self._records) if record.state == "stuck"]
        return [*here, *(one.name for one in self.elsewhere if one.state == "stuck")]

    @property
    def is_store_away(self) -> bool:
        """Whether a service of this process last found the store unavailable."""
        return any(record.is_store_away for record in list(self._records))

    def statuses(self, now: datetime) -> list[ServiceStatus]:
        """All of them; ``now`` is the store's time."""
        return [*(record.status(now) for record in list(self._records)), *self.elsewhere]


def listener_status(silent_s: float, now: datetime) -> ServiceStatus:
    """How the store's listener does, which tests itself every few seconds. Without it workers poll."""
    state: ServiceState = "late" if silent_s > LATE_S else "ok"
    return ServiceStatus(name="listener", state=state, succeeded_at=now - timedelta(seconds=silent_s))
