"""The web server: where it may listen, and connections without a request."""

from __future__ import annotations

import socket
import time

import pytest
from sites import Sites

from rota.admin import connections, server
from rota.errors import ConfigError


def test_unfinished_head_is_closed(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADERS_S", 0.3)
    site = sites()
    for opening in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc"):
        with socket.create_connection(site.address, 10) as line:
            line.sendall(opening)
            assert line.recv(1000) == b""
    with socket.create_connection(site.address, 10) as line:  # the second request of a line, too
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in line.recv(4000)
        line.sendall(b"GET /healthz HT")
        until = time.monotonic() + 10
        while line.recv(1000):
            assert time.monotonic() < until


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "rota.example.com"])
def test_listening_beyond_loopback_needs_tls_or_a_proxy(host: str) -> None:
    with pytest.raises(ConfigError, match=r"--tls-cert.*--behind-proxy.*127\.0\.0\.1"):
        server.Listen(host=host).check()
    server.Listen(host=host, behind_proxy=True).check()
    server.Listen(host=host, tls_cert="cert.pem", tls_key="key.pem").check()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1", "localhost"])
def test_loopback_needs_neither(host: str) -> None:
    server.Listen(host=host).check()


def test_port_in_use_is_an_error_with_a_remedy() -> None:
    with server.bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(server.PortInUse, match=rf"port {port} .*--port"):
            server.bind("127.0.0.1", port)
