"""Sessions of the dashboard: when they end."""

from __future__ import annotations

import http.client
import http.cookiejar
import json
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from sites import API, PASSWORD, Answer, Browser, Site, Sites, audited, signed_in

from rota.model import Role
from rota.operate.requests import RotateTokenRequest
from rota.testing import FakeClock


def test_session_ends_after_half_an_hour_without_a_request(timed: Site, clock: FakeClock) -> None:
    browser = signed_in(timed)
    for _ in range(3):
        clock.advance(29 * 60)
        assert browser.ask("GET", f"{API}/me").status == 200
    clock.advance(30 * 60)
    assert browser.ask("GET", f"{API}/me").status == 401


def test_session_ends_after_twelve_hours_even_if_used(timed: Site, clock: FakeClock) -> None:
    browser = signed_in(timed)
    for _ in range(12 * 3 - 1):
        clock.advance(20 * 60)
        assert browser.ask("GET", f"{API}/me").status == 200
    clock.advance(20 * 60)
    assert browser.ask("GET", f"{API}/me").status == 401


def test_revoked_token_new_password_and_deleted_user_end_their_sessions(site: Site) -> None:
    token = site.token()
    site.user("ada", PASSWORD)
    site.user("grace", PASSWORD)
    by_token = signed_in(site, token=token)
    ada, grace = (signed_in(site, user=name, password=PASSWORD) for name in ("ada", "grace"))
    site.do(lambda: site.operations().access.revoke_token(token.split("_")[1]))
    site.user("ada", PASSWORD, role="viewer")
    site.do(lambda: site.operations().access.delete_user("grace"))
    assert [one.ask("GET", f"{API}/me").status for one in (by_token, ada, grace)] == [401] * 3


def test_link_session_ends_with_the_process_that_created_the_link(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = signed_in(site, once=site.server.admin.links.new())
    monkeypatch.setattr("rota.operate.sessions.INSTANCE", "another process")
    assert browser.ask("GET", f"{API}/me").status == 401


# --- the cookie and its server -------------------------------------------------------------------


class Eavesdropper(ThreadingHTTPServer):
    """Another program on another port of the same host: it gets what a browser sends to that host."""

    def __init__(self) -> None:
        self.received: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.received.append(self.headers.get("Cookie", ""))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


def test_cookie_that_another_server_of_the_host_received_cannot_be_replayed(site: Site) -> None:
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    body = json.dumps({"token": site.token()}).encode()
    headers = {"Content-Type": "application/json"}
    said = browser.open(urllib.request.Request(f"{site.server.url}/api/session", body, headers), timeout=30)
    assert said.status == 200
    with Eavesdropper() as other:
        browser.open(f"http://127.0.0.1:{other.server_port}/", timeout=30)
        (cookie,) = other.received
        other.shutdown()
    assert "rota_session_" in cookie, "cookies do not keep to a port"
    replayed = {"Cookie": cookie, "Origin": site.server.url, "Sec-Fetch-Site": "same-origin"}
    assert site.get("/api/session", headers=replayed).json["me"] is None
    assert site.get("/api/session", headers=replayed).json["csrf"] is None
    for method, path, sent in (
        ("GET", "/jobs", None), ("GET", "/events", None), ("POST", "/tokens", {"role": "admin"}),
    ):  # fmt: skip
        answer = site.ask(method, API + path, sent, headers=replayed)
        assert (answer.status, answer.code) == (403, "csrf")
    assert site.get("/metrics", headers=replayed).status == 403


def test_servers_of_one_host_do_not_sign_each_other_out(sites: Sites, tmp_path: Path) -> None:
    one, two = (sites(url=f"sqlite:///{tmp_path / name}.db") for name in ("one", "two"))
    browsers = [signed_in(one), signed_in(two)]
    both = "; ".join(browser.cookie for browser in browsers)  # as a browser sends them
    for browser in browsers:
        assert browser.ask("GET", f"{API}/me", Cookie=both).status == 200
    assert browsers[0].ask("DELETE", "/api/session", Cookie=both).status == 204
    assert browsers[1].ask("GET", f"{API}/me", Cookie=both).status == 200


def test_signing_in_again_ends_the_session_that_the_browser_had(site: Site) -> None:
    browser = signed_in(site)
    old = Browser(site)
    old.cookie, old.csrf = browser.cookie, browser.csrf
    assert browser.sign_in({"Cookie": browser.cookie}, token=site.token()).status == 200
    assert browser.ask("GET", f"{API}/me").status == 200
    assert old.ask("GET", f"{API}/me").status == 401


# --- listing and ending --------------------------------------------------------------------------


def listed(browser: Browser) -> list[dict[str, Any]]:
    answer: Answer = browser.ask("GET", f"{API}/sessions")
    assert answer.status == 200
    items: list[dict[str, Any]] = answer.json["items"]
    return items


def test_users_see_and_end_their_own_sessions_only(each_site: Site) -> None:
    for name, role in (("ada", "viewer"), ("grace", "admin")):
        each_site.user(name, PASSWORD, role=cast(Role, role))
    here, there, grace = (
        signed_in(each_site, user=name, password=PASSWORD) for name in ("ada", "ada", "grace")
    )
    own = listed(here)
    assert [(one["name"], one["current"]) for one in own if one["current"]] == [("user:ada", True)]
    assert {one["name"] for one in own} == {"user:ada"} and len(own) == 2
    assert all(one["address"] == "127.0.0.1" for one in own)
    foreign = next(one["id"] for one in listed(grace) if one["name"] == "user:grace")
    assert here.ask("DELETE", f"{API}/sessions/{foreign}").status == 404
    assert here.ask("DELETE", f"{API}/sessions?keep_current=true").json == {"count": 1}
    assert [one.ask("GET", f"{API}/me").status for one in (here, there, grace)] == [200, 401, 200]
    assert here.ask("DELETE", f"{API}/sessions").json == {"count": 1}
    assert here.ask("GET", f"{API}/me").status == 401
    assert {line["object"][:8] for line in audited(each_site, "session.end")} == {"session:"}


def test_admins_see_and_end_all_sessions_in_their_reach_with_those_of_links(site: Site) -> None:
    link = signed_in(site, once=site.server.admin.links.new())
    acme, admin = signed_in(site, token=site.token("admin", "acme")), signed_in(site)
    assert len(listed(admin)) == 3 and len(listed(acme)) == 1
    (of_link,) = [one["id"] for one in listed(admin) if one["name"] == "sign-in link"]
    assert acme.ask("DELETE", f"{API}/sessions/{of_link}").status == 404
    assert admin.ask("DELETE", f"{API}/sessions/{of_link}").status == 204
    assert link.ask("GET", f"{API}/me").status == 401
    name = next(one["name"] for one in listed(acme))
    assert admin.ask("DELETE", f"{API}/sessions?name={quote(name)}").json == {"count": 1}
    assert acme.ask("GET", f"{API}/me").status == 401


def test_rotated_token_ends_sessions_that_began_with_its_old_secret(site: Site) -> None:
    token = site.token()
    browser = signed_in(site, token=token)
    site.do(lambda: site.operations().access.rotate_token(token.split("_")[1], RotateTokenRequest()))
    assert browser.ask("GET", f"{API}/me").status == 401


def test_secret_that_was_replaced_begins_no_session(site: Site) -> None:
    token = site.token()
    rotated = site.do(
        lambda: site.operations().access.rotate_token(token.split("_")[1], RotateTokenRequest())
    ).token
    assert site.get(f"{API}/me", token=token).status == 200  # within the overlap
    assert site.post("/api/session", {"token": token}).status == 401
    assert site.post("/api/session", {"token": rotated}).status == 200


def test_rotation_without_overlap_ends_the_streams_of_the_old_secret(site: Site) -> None:
    token = site.token()
    line = http.client.HTTPConnection(*site.address, timeout=60)
    line.request("GET", f"{API}/events", headers={"Authorization": f"Bearer {token}"})
    stream = line.getresponse()
    assert stream.status == 200 and stream.readline()
    site.do(
        lambda: site.operations().access.rotate_token(token.split("_")[1], RotateTokenRequest(overlap_s=0))
    )
    while stream.readline():  # until it ends
        pass
    line.close()


def test_a_tenant_sees_who_of_its_own_signed_in(site: Site) -> None:
    signed_in(site, token=site.token("admin", "acme"))
    seen = site.get(f"{API}/audit?action=session.login", token=site.token("operator", "acme")).json
    assert [one["actor"].partition("#")[0] for one in seen["items"]] == ["token:admin of acme"]
