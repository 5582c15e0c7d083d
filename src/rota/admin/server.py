"""The web server around the application: where it listens, how long it waits, how it stops.

Runs in the event loop of its caller, beside a worker or alone, and never handles signals itself.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec
import uvicorn

from ..app import Rota
from ..errors import ConfigError
from .application import Admin
from .connections import ConnectionLimits, LimitedListener, most_connections, protocol_of
from .requests import is_loopback

log = logging.getLogger("rota.http")

IDLE_S = 15
STOP_S = 5
LONGEST_HEAD = 32 * 1024
STARTED_S = 0.01
EVERYWHERE = ("0.0.0.0", "::")


class Listen(msgspec.Struct, frozen=True, kw_only=True):
    """Where to listen, and whether a proxy is in front."""

    host: str = "127.0.0.1"
    port: int = 8765  # 0: any free port
    behind_proxy: bool = False
    allowed_hosts: Sequence[str] = ()
    tls_cert: str | None = None
    tls_key: str | None = None

    def check(self) -> None:
        """Tokens and payloads must not cross a network unencrypted."""
        if self.tls_key is not None and self.tls_cert is None:
            raise ConfigError("--tls-key without --tls-cert: give both")
        if not (is_loopback(self.host) or self.tls_cert is not None or self.behind_proxy):
            raise ConfigError(
                f"listening on {self.host!r} would send tokens over the network unencrypted: "
                "give --tls-cert and --tls-key, or --behind-proxy if your own proxy speaks TLS, "
                "or listen on 127.0.0.1"
            )

    @property
    def scheme(self) -> str:
        return "http" if self.tls_cert is None else "https"


class Embedded(uvicorn.Server):
    """A server that leaves signals to its caller."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Server:
    """One listening server, at ``url``."""

    def __init__(self, rota: Rota, listen: Listen, listening: LimitedListener | None = None) -> None:
        listen.check()
        self._listen = listen
        names = [*listen.allowed_hosts, *([] if listen.host in EVERYWHERE else [listen.host])]
        self.admin = Admin(rota, allowed_hosts=names, behind_proxy=listen.behind_proxy)
        self._socket = listening or bind(listen.host, listen.port)
        most = most_connections(rota.settings.admin_connections)
        self.connections = ConnectionLimits(most, by_address=not listen.behind_proxy)
        self._socket.limits = self.connections
        self._server = Embedded(_config(self.admin, listen, self.connections))
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        host = self._listen.host
        port = self._socket.getsockname()[1]
        shown = "127.0.0.1" if host in EVERYWHERE else host
        return f"{self._listen.scheme}://{f'[{shown}]' if ':' in shown else shown}:{port}"

    def link(self) -> str:
        """A link that signs in once, from this machine."""
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
        """Accept no new requests, finish those under way, end streams."""
        await self.admin.close()
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self.connections.close()
        log.info("API stopped")

    def force(self) -> None:
        self._server.should_exit = self._server.force_exit = True


def _config(admin: Admin, listen: Listen, connections: ConnectionLimits) -> uvicorn.Config:
    chosen: dict[str, Any] = {
        "http": protocol_of(connections),
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
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # rota logs the start and stop itself
    config = uvicorn.Config(admin, **chosen)
    try:
        config.load()
    except OSError as error:
        raise ConfigError(f"--tls-cert {listen.tls_cert}, --tls-key {listen.tls_key}: {error}") from error
    return config


def bind(host: str, port: int) -> LimitedListener:
    """A bound socket, or an error with a remedy."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = LimitedListener(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
            listening.listen()  # until then another program can bind the same port
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
    """Another program listens there."""


@asynccontextmanager
async def serving(rota: Rota, listen: Listen) -> AsyncIterator[Server]:
    """Serve while the block runs."""
    server = Server(rota, listen)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
