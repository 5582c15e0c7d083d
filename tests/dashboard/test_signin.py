"""Sign-in: tokens, passwords, one-time links, sign-out."""

from __future__ import annotations

from typing import Any

import pytest
from browser_tools import Visitor
from scene import Visit

from admin.sites import Site

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.parametrize("site", ["sqlite"], indirect=True)  # no store shows here


@pytest.fixture
def stranger(browser: Any, site: Site) -> Any:
    """A visitor who has not signed in."""
    context = browser.new_context()
    visitor = Visitor(context, site)
    yield visitor
    visitor.ignore_failed_requests()
    visitor.assert_no_problems()
    context.close()


def test_wrong_token_is_an_error_and_a_valid_one_opens_the_requested_page(
    stranger: Visitor, site: Site
) -> None:
    page = stranger.page
    page.goto(f"{site.server.url}/jobs?state=failed")
    page.get_by_label("Token").fill("rota_nobody_knows_this")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("invalid or expired")
    page.get_by_label("Token").fill(site.token())
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    assert page.url.endswith("/jobs?state=failed")


def test_user_signs_in_with_a_password(stranger: Visitor, site: Site) -> None:
    site.user("ada", "correct horse battery")
    page = stranger.page
    page.goto(site.server.url)
    page.get_by_role("button", name="Use a password").click()
    page.get_by_label("User").fill("ada")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_one_time_link_signs_in_and_leaves_the_address_clean(stranger: Visitor, site: Site) -> None:
    link = site.server.link()
    stranger.page.goto(link)
    expect(stranger.page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert "once" not in stranger.page.url
    assert stranger.page.evaluate("document.cookie") == ""  # out of reach for scripts


def test_sign_out_shows_the_sign_in_page(visit: Visit) -> None:
    visitor = visit()
    visitor.page.get_by_role("button", name="Sign out").click()
    expect(visitor.page.get_by_label("Token")).to_be_visible()
    visitor.page.reload()
    expect(visitor.page.get_by_label("Token")).to_be_visible()


def test_the_view_is_closed_before_its_session_ends(visit: Visit) -> None:
    """Its requests would fail with 401."""
    page = visit("/queues").page
    sign_outs: list[Any] = []
    page.route("**/api/session", lambda route: sign_outs.append(route))  # held
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Queues")).to_have_count(0)
    expect(page.get_by_label("Token")).to_have_count(0)
    sign_outs[0].continue_()
    expect(page.get_by_label("Token")).to_be_visible()


def test_failed_sign_out_leaves_the_user_signed_in(visit: Visit) -> None:
    visitor = visit("/queues")
    page = visitor.page
    page.route("**/api/session", lambda route: route.abort())
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("Can't reach the server")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queues")
    visitor.ignore_failed_requests()
