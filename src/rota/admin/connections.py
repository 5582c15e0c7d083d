"""Connections to the server: how many, and how long each may wait for its client.

Beyond the limit a connection is still accepted, from a small reserve: a probe is answered on it, anything
else refused, and it is closed. So ``/healthz`` answers however many connections others hold open.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter, OrderedDict
from contextlib import suppress
from functools import partial
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..runtime.clock import monotonic
from .limits import network
from .requests import FULL

log = logging.getLogger("rota.http")

HEADERS_S = 10.0  # for the head of a request to arrive
RESERVE_S = 2.0  # the same, on a connection beyond the limit
REST_S = 5.0  # for the rest of a body after its response
READ_S = 20.0  # for a client to take 16 KiB of a response
LEAST_READ = 16 * 1024
SWEEP_S = 1.0
RESERVE = 16
LEFT_FILES = 64  # files at least that are left to the store and to tasks; else a quarter of the limit
MOST = 1000
LOG_S = 60.0


def most_connections(setting: int) -> int:
    """How many connections to accept: as set, or as many as the limit on open files allows."""
    if setting:
        return setting
    try:
        import resource  # not on every platform
    except ImportError:
        return MOST
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST
    return max(min(files - max(LEFT_FILES, files // 4) - RESERVE, MOST), RESERVE)


class ConnectionLimits:
    """Counts the connections of one server, and closes those that wait too long for their client."""

    def __init__(self, most: int, by_address: bool) -> None:
        self.most = most
        self.most_each = max(most // 4, RESERVE) if by_address else most
        self._counted: dict[LimitedProtocol, str] = {}
        self._each: Counter[str] = Counter()
        self._reserve: OrderedDict[LimitedProtocol, None] = OrderedDict()
        self._accepted: dict[socket.socket, bool] = {}  # oldest first; whether it was ended
        self._logged_at: float | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    def check_accepted(self) -> None:
        """Bound the connections that are accepted but not counted yet: a TLS handshake may never end.

        Ends the oldest of them; BlockingIOError: wait until it is closed.
        """
        self._accepted = {line: ended for line, ended in self._accepted.items() if line.fileno() >= 0}
        if len(self._accepted) < self.most + 2 * RESERVE:
            return
        self._log()
        known = {protocol.file_number for protocol in (*self._counted, *self._reserve)}
        for line, ended in self._accepted.items():
            if not ended and line.fileno() not in known:
                self._accepted[line] = True
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
                break
        if len(self._accepted) >= self.most + 3 * RESERVE:
            raise BlockingIOError

    def accepted(self, line: socket.socket) -> None:
        self._accepted[line] = False

    def add(self, protocol: LimitedProtocol, address: str) -> bool:
        """Count a new connection; False: it is beyond the limit."""
        if self._sweeping is None:
            self._sweeping = protocol.loop.call_later(SWEEP_S, self._sweep)
        if len(self._counted) < self.most and self._each[address] < self.most_each:
            self._counted[protocol] = address
            self._each[address] += 1
            return True
        self._log()
        self._reserve[protocol] = None
        if len(self._reserve) > RESERVE:
            self._reserve.popitem(last=False)[0].transport.abort()
        return False

    def remove(self, protocol: LimitedProtocol) -> None:
        self._reserve.pop(protocol, None)
        address = self._counted.pop(protocol, None)
        if address is not None:
            self._each[address] -= 1
            if not self._each[address]:
                del self._each[address]

    def _log(self) -> None:
        if self._logged_at is None or monotonic() - self._logged_at > LOG_S:
            self._logged_at = monotonic()
            log.warning(
                "%d connections are open (at most %d, and %d of one address): refusing more; "
                "raise the limit on open files, or admin_connections",
                len(self._counted), self.most, self.most_each,
            )  # fmt: skip

    def _sweep(self) -> None:
        """Close the connections whose clients do not take their responses."""
        for protocol in (*self._counted, *self._reserve):
            protocol.check_reader()
        again = bool(self._counted or self._reserve)
        loop = asyncio.get_running_loop()
        self._sweeping = loop.call_later(SWEEP_S, self._sweep) if again else None

    def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()


class LimitedListener(socket.socket):
    """A listening socket that reports what it accepts."""

    limits: ConnectionLimits | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        if self.limits is not None:
            self.limits.check_accepted()
        line, address = super().accept()
        if self.limits is not None:
            self.limits.accepted(line)
        return line, address


class LimitedProtocol(H11Protocol):
    """One connection. uvicorn itself would wait for ever for a head, a body or a reader."""

    def __init__(self, limits: ConnectionLimits, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limits = limits
        self._is_counted = True
        self._deadline: asyncio.TimerHandle | None = None
        self._unread: tuple[int, float] | None = None  # how much was left to send, and since when

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_counted = self._limits.add(self, network(self.client[0]) if self.client else "")
        if not self._is_counted:
            self.app_state = {**self.app_state, FULL: True}
        self._set_deadline(HEADERS_S if self._is_counted else RESERVE_S)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            if not self._is_past_response():
                self._clear_deadline()
        elif self._deadline is None and self.timeout_keep_alive_task is None:
            self._set_deadline(HEADERS_S)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_counted:
            self.transport.close()
        elif self._is_past_response():  # its body is still arriving
            self._set_deadline(REST_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        self._limits.remove(self)
        super().connection_lost(exc)

    @property
    def file_number(self) -> int:
        number: int = self.transport.get_extra_info("socket").fileno()
        return number

    def check_reader(self) -> None:
        """Abort if the client has taken next to nothing of what waits for it."""
        left = self.transport.get_write_buffer_size()
        if not left:
            self._unread = None
        elif self._unread is None or not self._unread[0] - LEAST_READ < left <= self._unread[0]:
            self._unread = (left, monotonic())
        elif monotonic() - self._unread[1] > READ_S:
            self.transport.abort()

    def _is_past_response(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY and self.cycle.response_complete

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol_of(limits: ConnectionLimits) -> Any:
    """What uvicorn makes for each connection."""
    return partial(LimitedProtocol, limits)
