"""Sessions of the dashboard: when they end."""

from __future__ import annotations

import pytest
from sites import API, PASSWORD, Site, signed_in

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
    monkeypatch.setattr("rota.admin.sessions.INSTANCE", "another process")
    assert browser.ask("GET", f"{API}/me").status == 401
