"""Authentication: tokens and sessions, invalid ones, and requests that another site made."""

from __future__ import annotations

from typing import Any

import pytest
from http_operations import OPEN, body_of, call, concrete, operations
from sites import API, Site, signed_in


def test_request_without_a_credential_is_401_on_loopback_too(each_site: Site) -> None:
    for method, path, operation in operations():
        if (method, path) not in OPEN:
            answer = each_site.ask(method.upper(), concrete(path), body_of(operation))
            assert (answer.status, answer.code) == (401, "unauthorized"), (method, path)
            assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_expired_revoked_and_invented_tokens_are_401_everywhere(site: Site) -> None:
    expired, revoked = site.token(expires_s=0), site.token()
    site.do(lambda: site.operations().access.revoke_token(revoked.split("_")[1]))
    good = site.token()
    wrong_secret = good[:-1] + ("A" if good[-1] != "A" else "B")
    for token in (expired, revoked, wrong_secret, "rota_x_y", "nonsense", ""):
        for method, path, operation in operations():
            if (method, path) not in OPEN:
                assert call(site, method, path, operation, token) == 401, (token[:8], method, path)


def test_revoked_token_fails_at_the_next_request(site: Site) -> None:
    admin, other = site.token(), site.token("viewer")
    assert site.get(f"{API}/jobs", other).status == 200
    assert site.ask("DELETE", f"{API}/tokens/{other.split('_')[1]}", token=admin).status == 204
    assert site.get(f"{API}/jobs", other).status == 401


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


def test_request_with_a_token_ignores_cookies(site: Site) -> None:
    browser = signed_in(site)
    wrong = browser.ask("GET", f"{API}/jobs", Authorization="Bearer rota_none_none")
    assert wrong.status == 401
    viewer = browser.ask(
        "POST", f"{API}/jobs", {"task": "work"}, Authorization=f"Bearer {site.token('viewer')}"
    )
    assert viewer.status == 403


def test_basic_credentials_of_a_proxy_do_not_disturb_a_session(site: Site) -> None:
    basic = "Basic cHJveHk6cHc="
    assert signed_in(site).ask("GET", f"{API}/jobs", Authorization=basic).status == 200
    assert site.ask("GET", f"{API}/jobs", headers={"Authorization": basic}).status == 401


def test_get_and_head_change_nothing(site: Site) -> None:
    browser = signed_in(site)
    job = site.job()
    browser.ask("GET", f"{API}/jobs")  # the first use of a token is noted
    before = site.do(lambda: _documents(site))
    for path in ("/jobs", f"/jobs/{job}/cancel", f"/jobs/{job}/retry", "/gates", "/queues/mail/pause"):
        for method in ("GET", "HEAD"):
            assert browser.ask(method, API + path).status in (200, 404, 405)
    assert site.do(lambda: _documents(site)) == before
    assert site.get(f"{API}/jobs/{job}", site.token()).json["state"] == "queued"


async def _documents(site: Site) -> Any:
    store = await site.rota.stores.get()
    return [await store.documents(kind) for kind in ("gate", "token", "user", "session")]
