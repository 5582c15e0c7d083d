"""One connection to a server, in the standard library's own client: bounded, verified, no redirects."""

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

from ..errors import ConfigError, StoreUnavailable
from ..version import __version__

CONNECT_S, TIMEOUT_S = 10.0, 30.0
MOST_BYTES = 64 * 1024 * 1024
SCHEMES = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


class Link:
    """Requests one after the other, on a connection that is kept between questions."""

    def __init__(self, url: str, token: str, ca_file: str | None = None) -> None:
        self._secure, self._host, self._port, self._prefix = _parts(url)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"{'https' if self._secure else 'http'}://{host}:{self._port}{self._prefix}"
        self._token = _checked(token)
        self._trust = _trust(ca_file) if self._secure else None
        if not self._secure and not _is_here(self._host):
            click.echo(f"rota: {self.url} carries the token in the clear: use https", err=True)
        self._connection: http.client.HTTPConnection | None = None

    async def send(self, method: str, path: str, body: bytes | None) -> Answer:
        given_up = threading.Event()
        try:
            return await asyncio.to_thread(self._exchange, method, self._prefix + path, body, given_up)
        except asyncio.CancelledError:
            given_up.set()
            self.close()  # the thread would wait for the answer to its end
            raise
        except ssl.SSLCertVerificationError as error:
            raise ConfigError(
                f"{self.url}: its certificate cannot be trusted: {error.verify_message}; "
                "give the file of your own authority with --ca-file"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise StoreUnavailable(f"{self.url} cannot be reached: {_cause(error)}") from None

    def _exchange(self, method: str, path: str, body: bytes | None, given_up: threading.Event) -> Answer:
        """A question may be asked again when the kept connection turns out to be closed; a change may not."""
        kept = self._connection is not None
        if kept and method != "GET":
            self.close()
        try:
            return self._once(method, path, body)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.close()
            if not kept or method != "GET" or given_up.is_set():
                raise
            return self._once(method, path, body)
        except BaseException:
            self.close()
            raise

    def _once(self, method: str, path: str, body: bytes | None) -> Answer:
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
        answer = self._connection.getresponse()
        content = answer.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise http.client.HTTPException(f"its answer is larger than {MOST_BYTES} bytes")
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, content)

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


def _parts(url: str) -> tuple[bool, str, int, str]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ConfigError(f"--api: this is no address: {error}") from None
    if parts.scheme not in SCHEMES or not parts.hostname:
        raise ConfigError("--api: write the server's address as https://rota.example.org")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "--api: the address has a user or password in it: give a token instead (ROTA_TOKEN)"
        )
    if parts.query or parts.fragment:
        raise ConfigError("--api: give the address alone, without ? and #")
    return parts.scheme == "https", parts.hostname, port or SCHEMES[parts.scheme], parts.path.rstrip("/")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(token: str) -> str:
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("the token is empty or has characters that no token has: check ROTA_TOKEN")
    return token


def _trust(ca_file: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"--ca-file {ca_file!r}: cannot be used: {error.strerror or error}") from None


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, http.client.HTTPException):
        return str(error) or type(error).__name__
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
