"""Jobs: search, live rows, bulk actions."""

from __future__ import annotations

import re

import pytest
from scene import Visit

from admin.sites import Site

expect = pytest.importorskip("playwright.sync_api").expect

COLOUR = "(glyph) => getComputedStyle(glyph).color"


def test_row_shows_state_task_age_attempts_error_and_the_matching_action(visit: Visit, site: Site) -> None:
    """Q10: coloured badges, type, created, attempts, error preview, retry and cancel on eligible rows."""
    visitor = visit("/jobs", role="operator", viewport={"width": 2560, "height": 1200})
    rows = visitor.page.locator("tbody tr")
    failed, sent = rows.filter(has_text="charge_card").first, rows.filter(has_text="succeeded").first
    queued = rows.filter(has_text="render_invoice")
    expect(failed.locator("td[data-label=State]")).to_have_text("failed")
    expect(failed.locator("td[data-label=Attempts]")).to_contain_text("1/1")
    expect(failed.locator("td[data-label=Created]")).to_contain_text(re.compile(r"(ago|now).*\d\d:\d\d:\d\d"))
    expect(failed.locator("td.head")).to_contain_text("KeyError: 'vat_rate'")
    assert len({one.locator(".badge svg").evaluate(COLOUR) for one in (failed, sent, queued)}) == 3
    expect(sent.locator("td.act")).to_be_empty()
    queued.get_by_role("button", name="Cancel render_invoice").click()
    visitor.page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(queued).to_contain_text("cancelled")
    expect(queued.get_by_role("button", name="Retry render_invoice")).to_be_visible()
    failed.get_by_role("button", name="Retry charge_card").click()
    expect(rows.filter(has_text="charge_card").filter(has_text="queued")).to_have_count(1)
    stats = site.do(site.operations().system.stats)
    assert (stats.failed, stats.cancelled) == (3, 1)


def test_tab_shows_one_state_with_its_count_and_is_in_the_address(visit: Visit) -> None:
    visitor = visit("/jobs")
    tab = visitor.page.get_by_role("navigation", name="States").get_by_role("link", name="Failed")
    expect(tab).to_contain_text("4")
    tab.click()
    visitor.settled()
    expect(visitor.page.locator("tbody tr")).to_have_count(4)
    assert visitor.page.url.endswith("/jobs?state=failed")


def test_search_tokens_become_chips_and_parameters_and_can_be_removed(visit: Visit) -> None:
    """Q10: filters."""
    visitor = visit("/jobs")
    page, rows = visitor.page, visitor.page.locator("tbody tr")
    search = page.get_by_role("combobox", name="Search jobs")
    search.fill("task:send_receipt -queue:pdf")
    search.press("Enter")
    expect(rows).to_have_count(4)
    assert "task=send_receipt" in page.url and "not_queue=pdf" in page.url
    search.fill("tenant:globex")
    search.press("Enter")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Remove tenant:globex").click()
    expect(rows).to_have_count(4)
    page.go_back()
    expect(rows).to_have_count(1)


def test_search_token_is_completed_from_known_values(visit: Visit) -> None:
    visitor = visit("/jobs")
    search = visitor.page.get_by_role("combobox", name="Search jobs")
    search.fill("queue:bil")
    visitor.page.get_by_role("option", name="queue:billing").click()
    expect(visitor.page.locator("tbody tr")).to_have_count(4)


def test_address_restores_the_same_rows(visit: Visit) -> None:
    page = visit("/jobs?state=failed&error=vat_rate&since=1h").page
    expect(page.locator("tbody tr")).to_have_count(4)
    expect(page.locator(".chip")).to_have_count(2)


def test_id_opens_its_job(visit: Visit) -> None:
    visitor = visit("/jobs")
    id = visitor.site.job("looked_for")
    search = visitor.page.get_by_role("combobox", name="Search jobs")
    search.fill(id)
    search.press("Enter")
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("looked_for")


def test_selected_jobs_are_retried_after_confirmation(visit: Visit) -> None:
    visitor = visit("/jobs?state=failed")
    page = visitor.page
    for i in range(2):
        page.locator("tbody tr").nth(i).get_by_role("checkbox").click()
    expect(page.get_by_role("button", name="On hold. Pause live updates")).to_be_visible()
    page.get_by_role("button", name="Retry 2").click()
    dialog = page.get_by_role("dialog", name="Retry 2 jobs?")
    expect(dialog).to_contain_text("charge_card")
    dialog.get_by_role("button", name="Retry 2").click()
    expect(page.get_by_text("2 jobs queued.")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert visitor.site.do(visitor.site.operations().system.stats).failed == 2


def test_matching_jobs_are_deleted_only_after_their_number_is_typed(visit: Visit) -> None:
    visitor = visit("/jobs?task=send_receipt&tenant=acme")
    page = visitor.page
    page.get_by_role("checkbox", name="Select all shown jobs").click()
    page.get_by_role("button", name="Delete 3").click()
    dialog = page.get_by_role("dialog", name="Delete 3 jobs?")
    verb = dialog.get_by_role("button", name="Delete 3")
    expect(verb).to_be_disabled()
    dialog.get_by_label("Type 3 to confirm").fill("3")
    verb.click()
    expect(page.get_by_role("heading", name="No matching jobs")).to_be_visible()


def test_select_all_matching_includes_jobs_not_shown(visit: Visit) -> None:
    visitor = visit()
    for order in range(60):
        visitor.site.job("many", payload={"order": order}, delay=3600)
    visitor.go("/jobs?task=many")
    page = visitor.page
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("checkbox", name="Select all shown jobs").click()
    page.get_by_role("button", name="Select all 60 matching jobs").click()
    page.get_by_role("button", name="Cancel 60").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel 60").click()
    expect(page.get_by_text("60 jobs cancelled.")).to_be_visible()
    assert visitor.site.do(visitor.site.operations().system.stats).cancelled == 60


def test_more_rows_load_without_duplicates(visit: Visit) -> None:
    visitor = visit()
    for order in range(60):
        visitor.site.job("many", payload={"order": order}, delay=3600)
    visitor.go("/jobs?task=many")
    visitor.page.get_by_role("button", name="Show 50 more").click()
    expect(visitor.page.locator("tbody tr")).to_have_count(60)
    links = visitor.page.locator("tbody a.name").evaluate_all("all => all.map((one) => one.href)")
    assert len(set(links)) == 60


def test_rows_are_selected_and_opened_with_keys(visit: Visit) -> None:
    page = visit("/jobs?state=failed").page
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator("tbody tr").nth(1).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("charge_card")


def test_view_is_saved_by_name_and_deleted(visit: Visit) -> None:
    visitor = visit("/jobs?task=charge_card")
    page = visitor.page
    page.get_by_role("button", name="Save this view").click()
    page.get_by_role("dialog").get_by_label("Name").fill("charges")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    visitor.open("/jobs")
    page.get_by_role("link", name="charges").click()
    expect(page.locator("tbody tr")).to_have_count(4)
    page.get_by_role("button", name="Delete this view").click()
    expect(page.get_by_role("link", name="charges")).to_have_count(0)


def test_job_is_enqueued_and_errors_appear_at_their_field(visit: Visit) -> None:
    visitor = visit("/jobs")
    page = visitor.page
    page.get_by_role("button", name="Enqueue job").click()
    dialog = page.get_by_role("dialog", name="Enqueue job")
    dialog.get_by_label("Task").fill("render_invoice")
    dialog.get_by_label("Payload").fill("{oops")
    dialog.get_by_role("button", name="Enqueue job").click()
    expect(dialog.get_by_label("Payload")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Payload").fill('{"id": 9007199254740993}')
    dialog.get_by_role("button", name="Enqueue job").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("render_invoice")
    expect(page.get_by_role("group", name="Payload")).to_contain_text("9007199254740993")
