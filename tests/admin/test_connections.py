"""Connections: how many, and how long each may wait for its client. Probes are always answered."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from sites import API, DEADLINE_S, Site, Sites

from rota.admin import connections
from rota.admin.connections import RESERVE, most_connections
from rota.admin.server import Listen

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW_BODY = (
    b"POST /api/admin/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100000\r\n\r\n{"
)


def received(line: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    parts = []
    try:
        while part := line.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def open_line(address: tuple[str, int], sent: bytes = b"") -> socket.socket:
    line = socket.create_connection(address, DEADLINE_S)
    line.sendall(sent)
    return line


def health(address: tuple[str, int]) -> int:
    line = http.client.HTTPConnection(*address, timeout=DEADLINE_S)
    try:
        line.request("GET", "/healthz")
        return line.getresponse().status
    finally:
        line.close()


# --- how many ------------------------------------------------------------------------------------

SERVE = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))
from rota import Rota
from rota.admin import connections, server as web
from rota.admin.server import Listen, Server

connections.HEADERS_S = connections.REST_S = web.IDLE_S = 3600  # nothing is freed by waiting

async def main():
    rota = Rota(sys.argv[1])
    await rota.migrate()
    server = Server(rota, Listen(port=0))
    await server.start()
    print(server.url, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@contextmanager
def served_with_few_files(folder: Path) -> Iterator[tuple[str, int]]:
    """A server in a process of its own that may open 200 files."""
    command = [sys.executable, "-c", SERVE, f"sqlite:///{folder / 'rota.db'}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            host, _, port = url.removeprefix("http://").partition(":")
            yield host, int(port)
        finally:
            process.kill()


def test_slow_bodies_beyond_the_file_limit_do_not_take_the_probe_down(tmp_path: Path) -> None:
    with served_with_few_files(tmp_path) as address, ExitStack() as open_lines:
        for number in range(260):
            open_lines.enter_context(open_line(address, SLOW_BODY if number % 2 else SLOW_BODY[:40]))
            if number % 20 == 0:
                assert health(address) == 200
        assert [health(address) for _ in range(10)] == [200] * 10


def test_beyond_the_limit_only_probes_are_answered_and_the_line_closes(sites: Sites) -> None:
    site = sites(admin_connections=20)
    token = site.token("viewer")
    with ExitStack() as lines:
        for _ in range(20):
            lines.enter_context(open_line(site.address))
        refused = lines.enter_context(open_line(site.address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"))
        head, _, body = received(refused).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after: 5" in head.lower()
        assert json.loads(body)["code"] == "too_many_connections"
        assert received(lines.enter_context(open_line(site.address, HEALTH))).startswith(b"HTTP/1.1 200 ")
        for _ in range(RESERVE + 5):  # lines that say nothing do not use the reserve up
            lines.enter_context(open_line(site.address))
        assert health(site.address) == 200
    until(lambda: site.ask("GET", f"{API}/me", token=token).status == 200)


def test_one_address_has_a_quarter_of_all_connections(sites: Sites) -> None:
    site = sites(admin_connections=100)
    assert site.server.connections.most_each == 25
    with ExitStack() as lines:
        for _ in range(25):
            lines.enter_context(open_line(site.address))
        assert site.ask("GET", "/api/session").status == 503
        assert health(site.address) == 200


def test_full_is_logged_once(sites: Sites, caplog: pytest.LogCaptureFixture) -> None:
    site = sites(admin_connections=20)
    with ExitStack() as lines:
        for _ in range(30):
            lines.enter_context(open_line(site.address))
        assert health(site.address) == 200
    assert len([one for one in caplog.records if "connections are open" in one.getMessage()]) == 1


def test_the_limit_follows_the_file_limit_and_leaves_some_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited(files: int) -> int:
        monkeypatch.setattr(resource, "getrlimit", lambda what: (files, files))
        return most_connections(0)

    assert [limited(files) for files in (64, 200, 1024, 1 << 20)] == [16, 120, 752, 1000]
    assert limited(resource.RLIM_INFINITY) == 1000
    assert most_connections(77) == 77


def until(is_true: object) -> None:
    """Poll the condition."""
    end = time.monotonic() + DEADLINE_S
    while not is_true():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


# --- how long ------------------------------------------------------------------------------------


def test_a_body_that_dribbles_in_after_its_response_is_not_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "REST_S", 0.2)
    with open_line(site.address, SLOW_BODY) as line:
        assert b" 401 " in line.recv(4000)
        end = time.monotonic() + DEADLINE_S
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                line.sendall(b" ")
                time.sleep(0.02)


def test_a_client_that_takes_no_response_is_cut_off(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_S", 0.3)
    monkeypatch.setattr(connections, "SWEEP_S", 0.05)
    site = sites()
    token = site.token("admin")
    asking = f"GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
    with socket.socket() as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.settimeout(DEADLINE_S)
        line.connect(site.address)
        line.sendall(asking.encode() * 40)  # more than the buffers of both systems hold
        until(lambda: not site.server.connections._counted)
    assert health(site.address) == 200


def test_a_client_that_reads_slowly_gets_all_of_it(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SWEEP_S", 0.01)
    site = sites()
    token = site.token("admin")
    asking = (
        "GET /api/openapi.json HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Authorization: Bearer {token}\r\n\r\n"
    )
    with open_line(site.address, asking.encode()) as line:
        taken = b""
        while part := line.recv(2048):
            taken += part
    assert json.loads(taken.partition(b"\r\n\r\n")[2])["openapi"]


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1, with its key."""
    path = tmp_path_factory.mktemp("tls") / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=x"]
    subprocess.run([*command, "-keyout", f"{path}.key", "-out", path], check=True, capture_output=True)
    return path


def secure_health(address: tuple[str, int]) -> int:
    line = http.client.HTTPSConnection(*address, timeout=DEADLINE_S, context=ssl._create_unverified_context())
    try:
        line.request("GET", "/healthz")
        return line.getresponse().status
    finally:
        line.close()


def test_handshakes_that_never_end_do_not_take_the_probe_down(sites: Sites, certificate: Path) -> None:
    listen = Listen(port=0, tls_cert=str(certificate), tls_key=f"{certificate}.key")
    site = sites(admin_connections=20, listen=listen)
    with ExitStack() as lines:
        for _ in range(120):
            lines.enter_context(open_line(site.address))
        assert secure_health(site.address) == 200
        assert (
            len([one for one in site.server.connections._accepted if one.fileno() >= 0]) <= 20 + 3 * RESERVE
        )
