"""Signing in and out: by token, password and one-time link, and the cookie."""

from __future__ import annotations

import hashlib

from sites import API, PASSWORD, Browser, Site, Sites, audited, signed_in

from rota.admin.server import Listen
from rota.testing import FakeClock


def test_token_or_password_begins_a_session(each_site: Site) -> None:
    each_site.user("ada", PASSWORD)
    assert each_site.get("/api/session").json == {
        "me": None, "csrf": None, "ends_at": None, "passwords": True,
    }  # fmt: skip
    for said in ({"token": each_site.token()}, {"user": "ada", "password": PASSWORD}):
        browser = signed_in(each_site, **said)
        told = browser.ask("GET", "/api/session").json
        assert told["me"]["role"] == "admin" and told["csrf"] == browser.csrf
        assert browser.ask("POST", f"{API}/jobs", {"task": "work"}).status == 201


def test_cookie_on_loopback_is_httponly_strict_and_holds_no_stored_value(site: Site) -> None:
    answer = Browser(site).sign_in(token=site.token())
    cookie = answer.headers["Set-Cookie"]
    name, _, rest = cookie.partition("=")
    _, *attributes = [part.strip().lower() for part in rest.split(";")]
    assert name == f"rota_session_{site.address[1]}"
    assert {"httponly", "samesite=strict", "path=/"} <= set(attributes)
    assert "secure" not in attributes and not any("domain" in one for one in attributes)

    async def stored() -> list[str]:
        return [one.key + one.body for one in await (await site.rota.stores.get()).documents("session")]

    raw = rest.partition(";")[0]
    (document,) = site.do(stored)
    assert raw not in document and hashlib.sha256(raw.encode()).hexdigest() in document


def test_cookie_behind_a_tls_proxy_is_secure_and_host_bound(sites: Sites) -> None:
    site = sites(listen=Listen(port=0, behind_proxy=True, allowed_hosts=("rota.example.com",)))
    proxy = {"Host": "rota.example.com", "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    answer = site.post("/api/session", {"token": site.token()}, headers=proxy)
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith("__Host-rota=") and "secure" in cookie.lower() and "Path=/" in cookie
    assert "max-age" in answer.headers["Strict-Transport-Security"]
    headers = {**proxy, "Cookie": cookie.partition(";")[0], "X-CSRF-Token": answer.json["csrf"],
               "Origin": "https://rota.example.com"}  # fmt: skip
    assert site.post(f"{API}/jobs", {"task": "work"}, headers=headers).status == 201
    plain = {**proxy, "X-Forwarded-Proto": "http"}
    refused = site.post("/api/session", {"token": site.token()}, headers=plain)
    assert (refused.status, refused.code) == (403, "insecure")


def test_session_id_is_new_at_each_sign_in_and_invalid_after_sign_out(site: Site) -> None:
    token = site.token()
    first, second = signed_in(site, token=token), signed_in(site, token=token)
    assert first.cookie != second.cookie
    assert first.ask("DELETE", "/api/session").status == 204
    assert first.ask("GET", f"{API}/jobs").status == 401
    assert second.ask("GET", f"{API}/jobs").status == 200
    assert [line["result"] for line in audited(site, "session.")] == ["done"] * 3


def test_sign_in_without_or_with_unknown_fields_is_422(site: Site) -> None:
    for said in ({}, {"user": "ada"}, {"pass": "x"}):
        assert site.post("/api/session", said).status == 422


def test_link_signs_in_once_within_ten_minutes(timed: Site, clock: FakeClock) -> None:
    link = timed.server.link()
    code = link.partition("#once=")[2]
    assert link.startswith(timed.server.url) and len(code) >= 43
    browser = signed_in(timed, once=code)
    assert browser.ask("POST", f"{API}/jobs", {"task": "work"}).status == 201
    assert Browser(timed).sign_in(once=code).status == 401
    late = timed.server.admin.links.new()
    clock.advance(601)
    assert Browser(timed).sign_in(once=late).status == 401


def test_link_works_on_this_machine_only(sites: Sites) -> None:
    site = sites(listen=Listen(port=0, behind_proxy=True))
    headers = {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "https"}
    code = site.server.admin.links.new()
    assert Browser(site).sign_in(headers, once=code).status == 401
