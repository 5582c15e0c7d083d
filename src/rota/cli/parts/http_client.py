"""One connection to a rota server, by the standard library: bounded, verified, no redirects."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

import click

from ...errors import ConfigError, StoreUnavailable
from ...runtime.service import pause
from ...version import __version__

CONNECT_S, TIMEOUT_S = 10.0, 30.0
TRIES, LONGEST_WAIT_S = 10, 30
MAX_BYTES = 64 * 1024 * 1024
SCHEMES = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}


class ApiResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class ApiConnection:
    """Sends requests one after the other and keeps the connection between them."""

    def __init__(self, url: str, token: str, ca_file: str | None = None) -> None:
        self._secure, self._host, self._port, self._prefix = _parse_url(url)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"{'https' if self._secure else 'http'}://{host}:{self._port}{self._prefix}"
        self._token = _checked_token(token)
        self._trust = _ssl_context(ca_file) if self._secure else None
        if not self._secure and not _is_loopback(self._host):
            click.echo(f"rota: {self.url} sends the token unencrypted; use https", err=True)
        self._connection: http.client.HTTPConnection | None = None

    async def send(self, method: str, path: str, body: bytes | None) -> ApiResponse:
        """Send; a request that the server refuses as too many is sent again when it says so."""
        for _ in range(TRIES):
            response = await self._send_once(method, path, body)
            wait = response.headers.get("retry-after", "")
            if response.status != 429 or not wait.isdigit() or int(wait) > LONGEST_WAIT_S:
                break
            await pause(float(wait), asyncio.Event())
        return response

    async def _send_once(self, method: str, path: str, body: bytes | None) -> ApiResponse:
        cancelled = threading.Event()
        try:
            return await asyncio.to_thread(
                self._send_with_retry, method, self._prefix + path, body, cancelled
            )
        except asyncio.CancelledError:
            cancelled.set()
            self.close()  # else the thread would wait for the whole response
            raise
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(
                f"{self.url}: certificate not trusted: {error.verify_message}; "
                "pass your own certificate authority with --ca-file"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise StoreUnavailable(f"{self.url} is unreachable: {_cause(error)}") from None

    def _send_with_retry(
        self, method: str, path: str, body: bytes | None, cancelled: threading.Event
    ) -> ApiResponse:
        """Send; a GET is repeated once if the kept connection turns out to be closed, a change never."""
        kept = self._connection is not None
        if kept and method != "GET":
            self.close()
        try:
            return self._send(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.close()
            if not kept or method != "GET" or cancelled.is_set():
                raise
            return self._send(method, path, body)
        except BaseException:
            self.close()
            raise

    def _send(self, method: str, path: str, body: bytes | None) -> ApiResponse:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.connect()
            self._connection.sock.settimeout(TIMEOUT_S)
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "User-Agent": f"rota/{__version__}",
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        content = response.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise http.client.HTTPException(f"the response is larger than {MAX_BYTES} bytes")
        return ApiResponse(response.status, {k.lower(): v for k, v in response.getheaders()}, content)

    def _connect(self) -> http.client.HTTPConnection:
        if self._trust is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_S)
        return http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT_S, context=self._trust)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()


def _parse_url(url: str) -> tuple[bool, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"--api: not a URL: {error}") from None
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ConfigError("--api: not a server URL; use https://rota.example.org")
    if parts.username is not None or parts.password is not None:
        raise ConfigError("--api: the URL contains a user or password; use a token instead (ROTA_TOKEN)")
    if parts.query or parts.fragment:
        raise ConfigError("--api: the URL must not contain ? or #")
    return parts.scheme == "https", parts.hostname, port or SCHEMES[parts.scheme], parts.path.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_token(token: str) -> str:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("the API token is empty or contains invalid characters; check ROTA_TOKEN")
    return token


def _ssl_context(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca-file {ca_file!r}: not usable: {error.strerror or error}") from None


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no response in time"
    if isinstance(error, http.client.HTTPException):
        return str(error) or type(error).__name__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
