"""The web server around the application: where it may listen, how long it waits, how it stops.

Runs inside our own event loop, beside a worker or alone; signals are not its business.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import h11
import msgspec
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..app import Rota
from ..errors import ConfigError
from .application import Admin
from .requests import is_loopback

log = logging.getLogger("rota.http")

HEADERS_S = 10.0  # for the head of a request to arrive
IDLE_S = 15
STOP_S = 5
LONGEST_HEAD = 32 * 1024
STARTED_S = 0.01
EVERYWHERE = ("0.0.0.0", "::")


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen, and what stands in front."""

    host: str = "127.0.0.1"
    port: int = 8765  # 0: any that is free
    behind_proxy: bool = False
    allowed_hosts: Sequence[str] = ()
    tls_cert: str | None = None
    tls_key: str | None = None

    def check(self) -> None:
        """Tokens and payloads must not cross a network in the clear."""
        if self.tls_key is not None and self.tls_cert is None:
            raise ConfigError("--tls-key without --tls-cert: give both")
        if not (is_loopback(self.host) or self.tls_cert is not None or self.behind_proxy):
            raise ConfigError(
                f"listening on {self.host!r} would carry tokens over the network in the clear: "
                "give --tls-cert and --tls-key, or --behind-proxy if a proxy of yours speaks TLS, "
                "or listen on 127.0.0.1"
            )

    @property
    def scheme(self) -> str:
        return "http" if self.tls_cert is None else "https"


class HeaderTimeoutProtocol(H11Protocol):
    """Closes a line whose request does not come: uvicorn itself waits for ever for the head of one."""

    _hurry: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._no_longer()
        elif self._hurry is None and self.timeout_keep_alive_task is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._hurry = self.loop.call_later(HEADERS_S, self.transport.close)

    def _no_longer(self) -> None:
        if self._hurry is not None:
            self._hurry.cancel()
            self._hurry = None


class Embedded(uvicorn.Server):
    """A server that leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """One listening server: ``url`` says where."""

    def __init__(self, rota: Rota, listen: Listen) -> None:
        listen.check()
        self._listen = listen
        names = [*listen.allowed_hosts, *([] if listen.host in EVERYWHERE else [listen.host])]
        self.admin = Admin(rota, allowed_hosts=names, behind_proxy=listen.behind_proxy)
        self._socket = bind(listen.host, listen.port)
        self._server = Embedded(_config(self.admin, listen))
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host = self._listen.host
        port = self._socket.getsockname()[1]
        shown = "127.0.0.1" if host in EVERYWHERE else host
        return f"{self._listen.scheme}://{f'[{shown}]' if ':' in shown else shown}:{port}"

    def link(self) -> str:
        """An address that signs in once, from this machine."""
        return f"{self.url}/#once={self.admin.links.new()}"

    async def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="rota-http")
        while not self._server.started and not self._task.done():
            await asyncio.wait([self._task], timeout=STARTED_S)
        if self._task.done():
            self._task.result()
            raise ConfigError(f"the web server at {self.url} did not start: see the log")
        log.info("API at %s", self.url)

    async def stop(self) -> None:
        """No new requests; those under way are answered, streams are ended."""
        await self.admin.close()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        log.info("API stopped")

    def force(self) -> None:
        self._server.should_exit = self._server.force_exit = True


def _config(admin: Admin, listen: Listen) -> uvicorn.Config:
    chosen: dict[str, Any] = {
        "http": HeaderTimeoutProtocol,
        "ws": "none",
        "lifespan": "off",
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,
        "timeout_keep_alive": IDLE_S,
        "timeout_graceful_shutdown": STOP_S,
        "h11_max_incomplete_event_size": LONGEST_HEAD,
        "ssl_certfile": listen.tls_cert,
        "ssl_keyfile": listen.tls_key,
    }
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # what it says, we have said already
    config = uvicorn.Config(admin, **chosen)
    try:
        config.load()
    except OSError as error:
        raise ConfigError(f"--tls-cert {listen.tls_cert}, --tls-key {listen.tls_key}: {error}") from error
    return config


def bind(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says what to do."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError:
            listening.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} on {host} is in use: stop what listens there, or choose another with --port"
            ) from error
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
    return listening


class PortInUse(ConfigError):
    """Somebody else listens there."""


@asynccontextmanager
async def serving(rota: Rota, listen: Listen) -> AsyncIterator[Server]:
    """Serve while the block runs."""
    server = Server(rota, listen)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
