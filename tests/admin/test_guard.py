"""What surrounds every request: headers, hosts, limits, errors, static files."""

from __future__ import annotations

import logging
import socket
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sites import API, Answer, Site, Sites

from rota.admin import requests as bounds
from rota.admin import server, static
from rota.errors import ConfigError, StoreUnavailable

NOBODY = "0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def is_dressed(answer: Answer) -> None:
    headers = answer.headers
    assert headers["Content-Security-Policy"] == CSP
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] in ("no-store", "no-cache")
    assert headers["X-Request-Id"]
    assert "Server" not in headers and "Access-Control-Allow-Origin" not in headers


def test_every_response_carries_the_security_headers(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    token = site.token()
    answers = [
        site.get("/"),
        site.get("/api/docs"),
        site.get("/healthz"),
        site.get("/readyz"),
        site.get("/metrics", token),
        site.get(f"{API}/jobs", token),
        site.get(f"{API}/jobs"),
        site.get(f"{API}/nothing", token),
        site.get("/nothing.js"),
        site.ask("PATCH", f"{API}/jobs", token=token),
        site.get("/", headers={"Host": "evil.test"}),
        site.post(f"{API}/jobs", {"task": 5}, token),
        site.ask("OPTIONS", f"{API}/jobs", headers={"Origin": "http://evil.test"}),
    ]
    monkeypatch.setattr("rota.operate.system.SystemActions._gates", _broken)
    answers.append(site.get(f"{API}/jobs/stats", token))
    for answer in answers:
        is_dressed(answer)
    assert [one.status for one in answers] == [
        200,
        200,
        200,
        200,
        200,
        200,
        401,
        404,
        404,
        405,
        421,
        422,
        405,
        500,
    ]


async def _broken(room: Any) -> None:
    raise RuntimeError("SELECT secret FROM /etc/passwd")


def test_unexpected_error_is_logged_and_not_shown_to_the_client(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.operate.system.SystemActions._gates", _broken)
    with caplog.at_level(logging.ERROR, "rota.http"):
        answer = site.get(f"{API}/jobs/stats", site.token())
    assert (answer.status, answer.code) == (500, "internal")
    assert b"SELECT" not in answer.body and b"RuntimeError" not in answer.body
    (record,) = [one for one in caplog.records if one.name == "rota.http"]
    assert answer.json["request_id"] in record.getMessage() and record.exc_info is not None


def test_unavailable_store_is_503_without_its_message(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(room: Any) -> None:
        raise StoreUnavailable("FATAL: password authentication failed at 10.0.0.7")

    token = site.token()
    monkeypatch.setattr("rota.operate.system.SystemActions._gates", away)
    answer = site.get(f"{API}/jobs/stats", token)
    assert (answer.status, answer.code) == (503, "store_unavailable") and b"10.0.0.7" not in answer.body


@pytest.mark.parametrize(
    "host", ["evil.test", "127.0.0.1.evil.test", "localhost.evil.test:80", "", "[::2]", "@"]
)
def test_unknown_host_is_421(site: Site, host: str) -> None:
    answer = site.get("/api/session", headers={"Host": host})
    assert (answer.status, answer.code) == (421, "unknown_host")


def test_known_hosts_are_accepted_and_probes_accept_any(sites: Sites) -> None:
    site = sites(listen=server.Listen(port=0, allowed_hosts=("Rota.Example.com",)))
    for host in ("localhost", "127.0.0.1:1", "[::1]:80", "rota.example.com", "ROTA.example.com:443"):
        assert site.get("/api/session", headers={"Host": host}).status == 200
    assert site.get("/healthz", headers={"Host": "10.1.2.3"}).status == 200
    assert site.get("/api/admin/jobs/healthz", headers={"Host": "10.1.2.3"}).status == 421


def test_valid_request_id_is_kept_and_another_is_replaced(site: Site) -> None:
    assert site.get("/healthz", headers={"X-Request-Id": "trace-0123456789"}).headers["X-Request-Id"] == (
        "trace-0123456789"
    )
    for wrong in ("short", "x" * 65, "with space in it", "<script>alert(1)"):
        assert site.get("/healthz", headers={"X-Request-Id": wrong}).headers["X-Request-Id"] != wrong


# --- bounds --------------------------------------------------------------------------------------


def test_long_body_is_413_before_it_is_read(site: Site) -> None:
    token = site.token()
    with socket.create_connection(site.address, 10) as line:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99999999\r\n\r\n".encode())
        assert b" 413 " in line.recv(1000)
    chunked = iter([b'{"task": "', b"x" * 2_000_000, b'"}'])
    connection = site.connect()
    connection.request("POST", f"{API}/jobs", chunked, {"Authorization": f"Bearer {token}",
                       "Content-Type": "application/json"}, encode_chunked=True)  # fmt: skip
    assert connection.getresponse().status == 413
    connection.close()


@pytest.mark.parametrize(
    "body",
    [b'{"a":' * 200 + b"1" + b"}" * 200, b"[" * 100_000, b'{"task":"x","payload":' + b'{"a":' * 99_999],
)
def test_deep_json_is_422(site: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    assert site.post(f"{API}/jobs", token=site.token(), headers=headers, raw=body).status == 422


def test_depth_is_counted_outside_of_strings() -> None:
    assert not bounds.is_too_deep(b'["' + b"[{" * 500 + b'\\"' + b"[" * 500 + b'"]')
    assert not bounds.is_too_deep(b"[" + b"[]," * 500 + b"[]]")
    assert bounds.is_too_deep(b"[" * 101 + b"]" * 101) and not bounds.is_too_deep(b"[" * 100 + b"]" * 100)


@pytest.mark.parametrize(
    "body", [b"{", b"nonsense", b"\xff\xfe", b'"text"', b"[]", b"null", b'{"task":"x","more":1}']
)
def test_invalid_body_is_422(site: Site, body: bytes) -> None:
    headers = {"Content-Type": "application/json"}
    answer = site.post(f"{API}/jobs", token=site.token(), headers=headers, raw=body)
    assert (answer.status, answer.code) == (422, "bad_input")


def test_long_head_and_long_address_are_rejected(site: Site) -> None:
    assert site.get("/api/session?a=" + "x" * 9000).status == 414
    assert site.get("/healthz", headers={"X-Long": "x" * 40_000}).status == 431


def test_slow_body_is_408(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "READ_S", 0.2)
    with socket.create_connection(site.address, 10) as line:
        head = f"POST {API}/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.token()}\r\n"
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert b" 408 " in line.recv(1000)


def test_unfinished_head_is_closed(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADERS_S", 0.3)
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


def test_a_page_has_at_most_200_rows_and_an_activity_at_most_90_days(site: Site) -> None:
    token = site.token()
    for query in (
        "jobs?limit=201",
        "jobs?limit=0",
        "audit?limit=1000",
        "activity?hours=2161",
        "jobs?limit=x",
    ):
        answer = site.get(f"{API}/{query}", token)
        assert answer.status == 422 and answer.json["field"] in query


# --- errors --------------------------------------------------------------------------------------


def test_each_kind_of_error_has_its_code_and_the_field_or_state(site: Site) -> None:
    token, job = site.token(), site.job(key="only-one")
    cases: list[tuple[Answer, int, str, dict[str, Any]]] = [
        (site.get(f"{API}/jobs/nonsense", token), 400, "bad_id", {"field": "id"}),
        (site.get(f"{API}/jobs/{NOBODY}", token), 404, "not_found", {}),
        (site.get(f"{API}/nothing", token), 404, "no_such_path", {}),
        (site.ask("PUT", f"{API}/jobs", {}, token=token), 405, "method_not_allowed", {}),
        (site.post(f"{API}/jobs/{job}/retry", None, token), 409, "illegal_move", {"state": "queued"}),
        (
            site.post(f"{API}/jobs", {"task": "w", "key": "only-one", "on_conflict": "raise"}, token),
            409, "duplicate_job", {"job": job},
        ),
        (site.post(f"{API}/jobs", {"task": "w", "delay": "x"}, token), 422, "bad_input", {"field": "delay"}),
        (site.post(f"{API}/jobs", {"payload": {}}, token), 422, "bad_input", {"field": "task"}),
        (site.post(f"{API}/jobs", {"task": "w", "nope": 1}, token), 422, "bad_input", {"field": "nope"}),
        (site.post(f"{API}/jobs", {"task": "w\0"}, token), 422, "bad_input", {"field": "task"}),
        (
            site.post(f"{API}/jobs", {"task": "w", "run_at": "2030-01-01T00:00:00"}, token),
            422, "bad_input", {"field": "run_at"},
        ),
        (
            site.post(f"{API}/schedules", {"name": "n", "task": "w", "cron": "61 * * * *"}, token),
            422, "bad_input", {"field": "cron"},
        ),
        (site.get(f"{API}/jobs?task=a&task=b", token), 422, "bad_input", {"field": "task"}),
        (site.get(f"{API}/jobs?since=0001-01-01T00:00:00Z", token), 422, "bad_input", {"field": "since"}),
    ]  # fmt: skip
    for answer, status, code, more in cases:
        told = answer.json
        assert (answer.status, told["status"], told["code"]) == (status, status, code), told
        assert {name: told.get(name) for name in more} == more, told
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert told["request_id"] == answer.headers["X-Request-Id"] and told["title"] and told["detail"]


def test_wrong_method_is_405_with_the_allowed_ones(site: Site) -> None:
    allowed = site.ask("PATCH", f"{API}/schedules/x", token=site.token()).headers["Allow"]
    assert {one.strip() for one in allowed.split(",")} == {"GET", "HEAD", "PUT", "DELETE"}


def test_lists_in_a_query_are_written_with_commas_or_repeated(site: Site) -> None:
    token = site.token()
    site.job()
    for query in ("state=queued,failed", "state=failed&state=queued"):
        assert len(site.get(f"{API}/jobs?{query}", token).json["items"]) == 1
    assert site.get(f"{API}/jobs?state=sleeping", token).status == 422


# --- static files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/../routes.py", "/..%2froutes.py", "/%2e%2e/routes.py", "/%2e%2e%2froutes.py",
        "/%252e%252e%252froutes.py", "/..\\routes.py", "/..%5croutes.py", "/index.html%00.js", "/%00",
        "//etc/passwd.js", "/%2fetc%2fpasswd.x",
        "/.git/config", "/index.html/", "/dashboard/index.html", "/api/docs/../application.py",
        "/api/docs/%2e%2e%2fapplication.py",
    ],
)  # fmt: skip
def test_file_outside_the_manifest_is_not_found(site: Site, path: str) -> None:
    answer = site.get(path)
    assert answer.status == 404 and answer.code == "no_such_path"


def test_symlinks_and_unknown_types_are_not_in_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("fine")
    (tmp_path / "secret.py").write_text("no")
    (tmp_path / "link.js").symlink_to("/etc/passwd")
    assert list(static.manifest(tmp_path)) == ["page.html"]


def test_path_without_a_dot_is_a_page_of_the_dashboard(site: Site) -> None:
    page = site.get("/")
    assert b'<meta name="rota-base" content="">' in page.body
    for path in ("/jobs", f"/jobs/{NOBODY}", "/schedules/nightly"):
        assert site.get(path).body == page.body
    assert site.get("/api/nothing").status == 404
    tag = page.headers["ETag"]
    for known in (tag, f"W/{tag}", f'"an older one", W/{tag}'):  # a proxy that packs the page weakens its tag
        assert site.get("/", headers={"If-None-Match": known}).status == 304
    assert site.get("/", headers={"If-None-Match": '"an older one"'}).status == 200


# --- where it may listen -------------------------------------------------------------------------


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


def test_probes_show_no_details(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    assert site.get("/healthz").json == {"status": "alive"}
    assert site.get("/readyz").json == {"status": "ready"}


def test_unavailable_store_is_alive_and_not_ready(sites: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(stores: Any) -> None:
        raise StoreUnavailable("10.0.0.7 does not answer")

    site = sites()
    monkeypatch.setattr("rota.runtime.stores.StorePerLoop.get", away)
    assert site.get("/healthz").status == 200
    answer = site.get("/readyz")
    assert (answer.status, msgspec.json.decode(answer.body)) == (503, {"status": "not ready"})
    monkeypatch.undo()
