"""Tenants: share, spend, quotas, why their jobs wait; pause and resume, and what each may."""

from __future__ import annotations

import re

import pytest
from rows import cell, gates, row
from scene import Visit

from admin.sites import Site
from rota import Context
from rota.testing import drain

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def test_tenants_show_share_spend_and_fullest_quota(visit: Visit, site: Site) -> None:
    async def act() -> None:
        await site.rota.tenants.set("default", weight=3, schedules=2, budget="50.00/day", budget_alert=0.8)
        await site.rota.enqueue("send_receipt", {"order_id": 7}, tenant="globex")

    site.do(act)
    visitor = visit("/tenants")
    expect(row(visitor, "default")).to_contain_text("weight 3")
    expect(cell(visitor, "default", "Share of running")).to_contain_text("fair 75 %")
    expect(cell(visitor, "globex", "Share of running")).to_contain_text("fair 25 %")
    expect(cell(visitor, "acme", "Share of running")).to_have_text("nothing runs")
    expect(cell(visitor, "default", "Due")).to_have_text("1")
    expect(cell(visitor, "default", "Spent")).to_contain_text("0.00 of 50.00 today")
    expect(cell(visitor, "globex", "Spent")).to_have_text("no budget")
    expect(cell(visitor, "default", "Fullest quota")).to_contain_text("Schedules: 2 of 2")
    expect(visitor.page.get_by_text("Most jobs belong to default: ")).to_be_visible()


def test_tenant_page_says_why_its_jobs_wait_and_changes_what_it_may(visit: Visit, site: Site) -> None:
    async def act() -> None:
        await site.rota.tenants.set("globex", budget="0.01/day", budget_alert=0.5)
        await site.rota.enqueue("dear", {}, tenant="globex")
        await drain(site.rota)
        await site.rota.enqueue("send_receipt", {"order_id": 8}, tenant="globex")

    @site.rota.task(name="dear", queue="dear")
    async def dear(ctx: Context) -> None:
        ctx.cost(cents=5)

    site.do(act)
    visitor = visit("/tenants", role="operator")
    page = visitor.page
    page.get_by_role("link", name="globex", exact=True).click()
    why = page.get_by_role("region", name="Why do its jobs wait?")
    expect(why).to_contain_text("0.05 of 0.01 spent today.")
    expect(page.locator(".page-header")).to_contain_text("budget spent")
    why.get_by_role("button", name="Raise budget…").click()
    dialog = page.get_by_role("dialog", name="Settings of globex")
    expect(dialog).to_contain_text("Nothing changes yet.")
    dialog.get_by_label("Budget").fill("50")
    expect(dialog).to_contain_text("0.05 of 50.00 spent today: 49.95 left, alert at 25.00.")
    dialog.get_by_label("Waiting jobs").fill("1")
    expect(dialog).to_contain_text("Enqueueing is refused until it is below; what is there stays.")
    dialog.get_by_label("Weight").fill("-1")
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_label("Weight").fill("3")
    dialog.get_by_role("button", name="Save").click()
    expect(why).to_have_count(0)
    expect(page.locator(".page-header")).to_contain_text("weight 3")
    quotas = page.get_by_role("region", name="Quotas")
    expect(quotas.get_by_role("listitem").filter(has_text="Waiting jobs")).to_contain_text(" of 1")
    tenant = site.do(lambda: site.rota.tenants.get("globex"))
    assert tenant.budget is not None
    assert (tenant.weight, tenant.budget.budget, tenant.budget.alert) == (3.0, "50.00/day", 0.5)
    page.get_by_role("button", name="Undo").click()
    expect(why).to_be_visible()


def test_tenant_page_leads_to_its_jobs_and_audit_entries(visit: Visit) -> None:
    page = visit("/tenants/globex").page
    expect(page.get_by_role("link", name="Waiting")).to_have_attribute(
        "href", "/jobs?tenant=globex&state=queued"
    )
    expect(page.get_by_role("link", name="Audit", exact=True).last).to_have_attribute(
        "href", "/audit?tenant=globex"
    )
    expect(page.get_by_role("table", name="Live jobs").locator("tbody tr")).to_have_count(1)


def test_limit_of_a_tenant_is_set_from_its_page(visit: Visit, site: Site) -> None:
    page = visit("/tenants/globex").page
    page.get_by_role("button", name="Set a limit").click()
    dialog = page.get_by_role("dialog", name="Set a limit")
    dialog.get_by_label("Running at once").fill("20")
    expect(dialog).to_contain_text("At most 20 jobs of tenant globex run at once; none runs now.")
    dialog.get_by_role("button", name="Set limit").click()
    expect(page.get_by_role("region", name="Limit")).to_contain_text("0 of 20 running")
    page.get_by_role("link", name="Change limit").click()
    expect(page.get_by_role("form", name="Edit tenant:globex")).to_be_visible()


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


def test_tenant_operator_sees_its_own_page_without_settings_and_shares_of_others(visit: Visit) -> None:
    visitor = visit("/tenants/globex", role="operator", tenant="globex")
    page = visitor.page
    expect(page.get_by_role("region", name="Quotas")).to_be_visible()
    expect(page.get_by_role("region", name="Share")).to_have_count(0)
    expect(page.get_by_role("button", name="Edit settings")).to_have_count(0)
    expect(page.get_by_role("button", name="Set a limit")).to_have_count(0)
    visitor.errors_expected = True
    visitor.go("/tenants/acme")
    expect(page.get_by_role("alert")).to_be_visible()


def test_viewer_has_neither_buttons_nor_audit_link(visit: Visit) -> None:
    visitor = visit("/tenants", role="viewer")
    page = visitor.page
    expect(page.get_by_role("link", name="globex", exact=True)).to_be_visible()
    verbs = re.compile("^(Pause|Resume|Edit|Set) (?!live updates)")
    expect(page.get_by_role("button", name=verbs)).to_have_count(0)
    visitor.go("/tenants/globex")
    expect(page.get_by_role("button", name=verbs)).to_have_count(0)
    expect(page.get_by_role("link", name=re.compile("^Audit"))).to_have_count(0)


def test_filter_and_order_of_tenants_are_in_the_address(visit: Visit) -> None:
    visitor = visit("/tenants?by=due")
    rows = visitor.page.locator("table.tenants tbody tr")
    expect(rows.first).to_contain_text("default")
    visitor.page.get_by_label("Find tenants by name").fill("GLOB")
    expect(rows).to_have_count(1)
    expect(visitor.page).to_have_url(re.compile(r"by=due&named=GLOB"))
