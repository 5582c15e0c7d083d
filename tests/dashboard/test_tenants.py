"""Tenants: share of live jobs, links, pause and resume."""

from __future__ import annotations

import re

import pytest
from rows import cell, gates, row
from scene import Visit

from admin.sites import Site

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def test_tenants_show_their_share_of_live_jobs(visit: Visit) -> None:
    visitor = visit("/tenants")
    picture = cell(visitor, "globex", "Share of live jobs").get_by_role("img")
    expect(picture).to_have_attribute("aria-label", "33 % of live jobs: 0 running, 0 due, 1 due later")
    expect(cell(visitor, "default", "Share of live jobs")).to_have_text("67 %")
    expect(cell(visitor, "default", "Due")).to_have_text("1")
    expect(cell(visitor, "default", "Schedules")).to_have_text("2")
    expect(visitor.page.get_by_text("Most belong to default: 67 %.")).to_be_visible()


def test_tenant_links_to_its_jobs_schedules_and_audit_entries(visit: Visit) -> None:
    visitor = visit("/tenants")
    page = visitor.page
    expect(page.get_by_role("link", name="globex", exact=True)).to_have_attribute(
        "href", "/jobs?tenant=globex"
    )
    expect(page.get_by_role("link", name="Audit of globex")).to_have_attribute("href", "/audit?tenant=globex")
    schedules = cell(visitor, "default", "Schedules").get_by_role("link")
    expect(schedules).to_have_attribute("href", "/schedules?tenant=default")


def test_tenant_is_paused_and_resumed(visit: Visit, site: Site) -> None:
    visitor = visit("/tenants", role="operator")
    page = visitor.page
    page.get_by_role("button", name="Pause globex").click()
    dialog = page.get_by_role("dialog", name="Pause tenant globex?")
    expect(dialog).to_contain_text("Other tenants continue.")
    expect(dialog).to_contain_text("1 due later")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    assert "tenant:globex" not in gates(site)
    page.get_by_role("button", name="Pause globex").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("the bill is open")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(cell(visitor, "globex", "State")).to_have_text("paused")
    expect(row(visitor, "globex")).to_contain_text("the bill is open")
    assert gates(site)["tenant:globex"].reason == "the bill is open"
    page.get_by_role("button", name="Resume globex").click()
    expect(cell(visitor, "globex", "State")).to_have_text("active")


def test_tenant_operator_sees_and_pauses_own_tenant_only(visit: Visit, site: Site) -> None:
    visitor = visit("/tenants", role="operator", tenant="globex")
    expect(visitor.page.locator("table.tenants tbody tr")).to_have_count(1)
    visitor.page.get_by_role("button", name="Pause globex").click()
    visitor.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(cell(visitor, "globex", "State")).to_have_text("paused")
    assert "tenant:globex" in gates(site)


def test_viewer_has_neither_pause_button_nor_audit_link(visit: Visit) -> None:
    page = visit("/tenants", role="viewer").page
    expect(page.get_by_role("link", name="globex", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^(Pause|Resume) (?!live updates)"))).to_have_count(0)
    expect(page.get_by_role("link", name=re.compile("^Audit"))).to_have_count(0)


def test_filter_and_order_of_tenants_are_in_the_address(visit: Visit) -> None:
    visitor = visit("/tenants?by=share")
    rows = visitor.page.locator("table.tenants tbody tr")
    expect(rows.first).to_contain_text("default")
    visitor.page.get_by_label("Find tenants by name").fill("GLOB")
    expect(rows).to_have_count(1)
    expect(visitor.page).to_have_url(re.compile(r"by=share&named=GLOB"))
