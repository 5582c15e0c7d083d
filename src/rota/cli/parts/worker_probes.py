"""Liveness and readiness of a worker over HTTP, for Kubernetes and load balancers.

A worker needs no web framework: this answers ``GET /healthz`` and ``GET /readyz`` and nothing else.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from ...errors import ConfigError
from ...runtime.events import Event, Hooks
from ...runtime.service_records import ServiceRecords, public

READ_S = 5.0
MOST_HEAD = 8192
MOST_AT_ONCE = 32


def add_probes(port: int, hooks: Hooks, records: ServiceRecords, now: Callable[[], datetime]) -> None:
    """Answer probes on this port, on all addresses, while the worker runs. ConfigError if it is taken."""
    try:
        listening = socket.create_server(("", port))
    except OSError as error:
        raise ConfigError(f"--health-port {port}: cannot listen there: {error.strerror or error}") from error
    servers: list[asyncio.Server] = []

    async def started(event: Event) -> None:
        answer = _ProbeServer(records, now).answer
        servers.append(await asyncio.start_server(answer, sock=listening, limit=MOST_HEAD))

    async def stopped(event: Event) -> None:
        for server in servers:
            server.close()

    hooks.add("worker.started", started)
    hooks.add("worker.stopped", stopped)


class _ProbeServer:
    def __init__(self, records: ServiceRecords, now: Callable[[], datetime]) -> None:
        self._records = records
        self._now = now
        self._open = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= MOST_AT_ONCE:
                async with asyncio.timeout(READ_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                    writer.write(response(head, self._records, self._now()))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(READ_S):
                    await writer.wait_closed()


def response(head: bytes, records: ServiceRecords, now: datetime) -> bytes:
    """The whole HTTP response to a request with this head; ``now`` is the store's time."""
    method, path = [*head.split(b" ", 2), b"", b""][:2]
    if method not in (b"GET", b"HEAD"):
        status, body = "405 Method Not Allowed", b""
    elif path == b"/healthz":
        stuck = records.stuck()
        status = "503 Service Unavailable" if stuck else "200 OK"
        body = msgspec.json.encode({"status": "stuck" if stuck else "alive", "services": stuck})
    elif path == b"/readyz":
        services, is_away = records.statuses(now), records.is_store_away
        ready = not is_away and all(one.state == "ok" for one in services)
        status = "200 OK" if ready else "503 Service Unavailable"
        said = {"status": "ready" if ready else "not ready", "store": "unavailable" if is_away else "ok"}
        body = msgspec.json.encode({**said, "services": [public(one) for one in services]})
    else:
        status, body = "404 Not Found", b""
    lines = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return lines.encode() + b"Connection: close\r\n\r\n" + (b"" if method == b"HEAD" else body)
