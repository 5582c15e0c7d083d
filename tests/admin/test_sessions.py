"""The dashboard's sessions: signing in and out, cookies, CSRF, limits, one-time links."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from sites import API, Browser, Site, Sites

from rota.admin.server import Listen
from rota.admin.sign_in_throttle import SignInThrottle
from rota.testing import FakeClock

PASSWORD = "correct horse battery"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(sites: Sites, clock: FakeClock) -> Site:
    return sites(clock=clock)


def signed_in(site: Site, **said: str) -> Browser:
    browser = Browser(site)
    assert browser.sign_in(**(said or {"token": site.token()})).status == 200
    return browser


def audited(site: Site, action: str) -> list[Any]:
    items: list[Any] = site.get(f"{API}/audit?action={action}", site.token()).json["items"]
    return items


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
    assert name == "rota_session"
    assert {"httponly", "samesite=strict", "path=/"} <= set(attributes)
    assert "secure" not in attributes and not any("domain" in one for one in attributes)

    async def stored() -> list[str]:
        return [one.key + one.body for one in await (await site.rota.stores.get()).find("session")]

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


# --- cross-site requests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"X_CSRF_Token": None}, "csrf"),
        ({"X_CSRF_Token": "guessed"}, "csrf"),
        ({"Origin": "http://evil.test"}, "cross_site"),
        ({"Origin": "null"}, "cross_site"),
        ({"Sec_Fetch_Site": "cross-site"}, "cross_site"),
        ({"Sec_Fetch_Site": "same-site", "Origin": None}, "cross_site"),
        ({"Sec_Fetch_Site": None, "Origin": None}, "cross_site"),
    ],
)
def test_write_with_a_cookie_requires_the_csrf_token_and_the_own_origin(
    site: Site, wrong: dict[str, str | None], code: str
) -> None:
    answer = signed_in(site).ask("POST", f"{API}/jobs", {"task": "work"}, **wrong)
    assert (answer.status, answer.code) == (403, code)
    assert site.get(f"{API}/jobs/count", site.token()).json["count"] == 0


def test_one_header_of_the_own_origin_is_enough(site: Site) -> None:
    browser = signed_in(site)
    for wrong in ({"Origin": None}, {"Sec_Fetch_Site": None}):
        assert browser.ask("POST", f"{API}/jobs", {"task": "work"}, **wrong).status == 201


def test_a_bearer_request_ignores_cookies(site: Site) -> None:
    browser = signed_in(site)
    wrong = browser.ask("GET", f"{API}/jobs", Authorization="Bearer rota_none_none")
    assert wrong.status == 401
    viewer = browser.ask(
        "POST", f"{API}/jobs", {"task": "work"}, Authorization=f"Bearer {site.token('viewer')}"
    )
    assert viewer.status == 403


def test_get_and_head_change_nothing(site: Site) -> None:
    browser = signed_in(site)
    job = site.job()
    before = site.do(lambda: _documents(site))
    for path in ("/jobs", f"/jobs/{job}/cancel", f"/jobs/{job}/retry", "/gates", "/queues/mail/pause"):
        for method in ("GET", "HEAD"):
            assert browser.ask(method, API + path).status in (200, 404, 405)
    assert site.do(lambda: _documents(site)) == before
    assert site.get(f"{API}/jobs/{job}", site.token()).json["state"] == "queued"


async def _documents(site: Site) -> Any:
    store = await site.rota.stores.get()
    return [await store.find(kind) for kind in ("gate", "token", "user", "session")]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_only_json_is_accepted_also_for_sign_in(site: Site, kind: str) -> None:
    headers = {"Content-Type": kind}
    assert site.post("/api/session", headers=headers, raw=b'{"token": "x"}').status == 415
    assert site.post(f"{API}/jobs", token=site.token(), headers=headers, raw=b'{"task": "x"}').status == 415


# --- limits --------------------------------------------------------------------------------------


def test_five_failures_a_minute_block_sign_in_for_a_growing_time(timed: Site, clock: FakeClock) -> None:
    timed.user("ada", PASSWORD)
    wrong = {"user": "ada", "password": "wrong password"}
    assert [timed.post("/api/session", wrong).status for _ in range(5)] == [401] * 5
    waits = []
    for _ in range(6):
        answer = timed.post("/api/session", {"user": "ada", "password": PASSWORD})
        assert (answer.status, answer.code) == (429, "too_many_tries")
        waits.append(int(answer.headers["Retry-After"]))
        clock.advance(waits[-1])
        assert timed.post("/api/session", wrong).status == 401
    assert waits == sorted(waits) and waits[0] <= 61 and waits[1] > 100 and waits[-1] <= 15 * 60 + 1
    clock.advance(15 * 60 + 1)
    assert timed.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 200
    lines = audited(timed, "session.login")
    assert {line["result"] for line in lines} == {"done", "refused"}
    assert PASSWORD not in str(lines) and "wrong password" not in str(lines)


def test_failures_are_counted_by_account_whatever_the_address(sites: Sites, clock: FakeClock) -> None:
    site = sites(clock=clock, listen=Listen(port=0, behind_proxy=True))
    site.user("ada", PASSWORD)
    for number in range(5):
        headers = {"X-Forwarded-For": f"203.0.113.{number}", "X-Forwarded-Proto": "https"}
        wrong = {"user": "ada", "password": "wrong password"}
        assert site.post("/api/session", wrong, headers=headers).status == 401
    fresh = {"X-Forwarded-For": "203.0.113.77", "X-Forwarded-Proto": "https"}
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}, headers=fresh).status == 429
    assert site.post("/api/session", {"user": "bob", "password": PASSWORD}, headers=fresh).status == 401


# --- links ---------------------------------------------------------------------------------------


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


def test_link_session_ends_with_the_process_that_created_the_link(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = signed_in(site, once=site.server.admin.links.new())
    monkeypatch.setattr("rota.admin.sessions.INSTANCE", "another process")
    assert browser.ask("GET", f"{API}/me").status == 401


def test_sign_in_without_or_with_unknown_fields_is_422(site: Site) -> None:
    for said in ({}, {"user": "ada"}, {"pass": "x"}):
        assert site.post("/api/session", said).status == 422


def test_success_after_four_failures_does_not_block_sign_in(clock: FakeClock) -> None:
    limit = SignInThrottle(clock)
    for _ in range(4):
        limit.failed("address:a")
    limit.failed("address:a")
    limit.took_back("address:a")
    assert limit.wait("address:a") == 0
    limit.failed("address:a")
    assert limit.wait("address:a") > 0
    limit.failed("address:a")
    limit.took_back("address:a")
    assert limit.wait("address:a") > 0  # others have failed too often meanwhile
