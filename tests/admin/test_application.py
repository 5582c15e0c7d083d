"""The application: headers, errors, hosts and request ids of every response."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from http_operations import NOBODY
from sites import API, Answer, Site, Sites

from rota.admin import server
from rota.errors import StoreUnavailable

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def has_security_headers(answer: Answer) -> None:
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
    monkeypatch.setattr("rota.operate.actions.ActionContext.active_gates", _broken)
    answers.append(site.get(f"{API}/jobs/stats", token))
    for answer in answers:
        has_security_headers(answer)
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


async def _broken(context: Any) -> None:
    raise RuntimeError("SELECT secret FROM /etc/passwd")


def test_unexpected_error_is_logged_and_not_shown_to_the_client(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rota.operate.actions.ActionContext.active_gates", _broken)
    with caplog.at_level(logging.ERROR, "rota.http"):
        answer = site.get(f"{API}/jobs/stats", site.token())
    assert (answer.status, answer.code) == (500, "internal")
    assert b"SELECT" not in answer.body and b"RuntimeError" not in answer.body
    (record,) = [one for one in caplog.records if one.name == "rota.http"]
    assert answer.json["request_id"] in record.getMessage() and record.exc_info is not None


def test_unavailable_store_is_503_without_its_message(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unavailable(context: Any) -> None:
        raise StoreUnavailable("FATAL: password authentication failed at 10.0.0.7")

    token = site.token()
    monkeypatch.setattr("rota.operate.actions.ActionContext.active_gates", unavailable)
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


def test_long_head_and_long_address_are_rejected(site: Site) -> None:
    assert site.get("/api/session?a=" + "x" * 9000).status == 414
    assert site.get("/healthz", headers={"X-Long": "x" * 40_000}).status == 431


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
