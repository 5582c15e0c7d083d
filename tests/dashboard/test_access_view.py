"""Roles and tenants: no button without permission, nothing of another tenant."""

from __future__ import annotations

import re

import pytest
from browser_tools import VIEWS, Visitor
from playwright.sync_api import expect
from scene import Visit

from admin.sites import Site
from rota.operate.requests import EnqueueRequest

VERBS = (
    "Retry", "Cancel", "Delete", "Pause", "Resume", "Trigger", "Backfill", "Move", "Run now", "Edit", "Save",
    "Create", "Enqueue", "Revoke", "Remove", "Add", "Change",
)  # fmt: skip
ACTS = re.compile(rf"^({'|'.join(VERBS)})\b")
NOT_FOR_VIEWERS = {"/audit": "operator", "/doctor": "operator"}


def acts(visitor: Visitor) -> list[str]:
    """The buttons and links of the view that would change something."""
    main = visitor.page.locator("#main")
    found = [*main.get_by_role("button").all(), *main.get_by_role("link").all()]
    names = [one.get_attribute("aria-label") or one.inner_text() for one in found]
    return [name for name in names if ACTS.match(name.strip())]


def last_job(site: Site, **given: object) -> str:
    ask = EnqueueRequest(task="send_receipt", payload={"order_id": 77}, **given)  # type: ignore[arg-type]
    return site.do(lambda: site.operations().jobs.enqueue(ask)).id


def test_viewer_sees_every_view_and_no_changing_button(visit: Visit, site: Site) -> None:
    job = last_job(site)
    visitor = visit("/", role="viewer")
    for view in (*VIEWS, f"/jobs/{job}", "/schedules/nightly"):
        visitor.go(view)
        if view != "/schedules/new":
            assert acts(visitor) == [], view
            expect(visitor.page.get_by_role("switch")).to_have_count(0)


def test_operator_sees_job_actions_and_no_admin_actions(visit: Visit, site: Site) -> None:
    job = last_job(site, delay=3600.0)
    visitor = visit(f"/jobs/{job}", role="operator")
    expect(visitor.page.get_by_role("button", name="Cancel").first).to_be_visible()
    visitor.go("/settings")
    assert acts(visitor) == []
    visitor.go("/audit")
    expect(visitor.page.get_by_role("table", name="Audit log")).to_be_visible()


@pytest.mark.parametrize("view", NOT_FOR_VIEWERS)
def test_forbidden_view_names_the_role_it_needs(visit: Visit, view: str) -> None:
    visitor = visit(view, role="viewer")
    expect(visitor.page.get_by_role("heading", name="You don't have access")).to_be_visible()
    expect(visitor.page.locator("#main")).to_contain_text(f"--role {NOT_FOR_VIEWERS[view]}")
    name = view.strip("/").title()
    expect(visitor.page.get_by_role("navigation").get_by_role("link", name=name)).to_have_count(0)


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_tenant_user_sees_own_tenant_only(visit: Visit, site: Site, role: str) -> None:
    own = last_job(site, tenant="acme")
    other = last_job(site, tenant="globex", tags=("of-globex",))
    visitor = visit("/", role=role, tenant="acme")
    for view in VIEWS:
        visitor.go(view)  # a request that is refused would be problems
        shown = visitor.page.locator("body").inner_text()
        assert "globex" not in shown, view
        assert other[-6:] not in shown, view
    visitor.go(f"/jobs/{own}")
    expect(visitor.page.locator("#main")).to_contain_text("acme")
    visitor.errors_expected = True
    visitor.go(f"/jobs/{other}")
    expect(visitor.page.get_by_role("alert")).to_contain_text("there is no job")


def test_revoked_token_leads_to_sign_in(visit: Visit, site: Site) -> None:
    visitor = visit("/jobs", role="operator")
    visitor.errors_expected = True
    mine = [one for one in site.do(lambda: site.operations().access.tokens()).items if one.role == "operator"]
    site.do(lambda: site.operations().access.revoke_token(mine[0].id))
    visitor.page.get_by_role("navigation").get_by_role("link", name="Queues").click()
    expect(visitor.page.get_by_role("button", name="Sign in")).to_be_visible()
