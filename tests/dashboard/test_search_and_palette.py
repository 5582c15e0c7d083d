"""Search, command palette, range selection, and the hints that explain why a job is not running."""

from __future__ import annotations

from typing import Any

import pytest
from browser_tools import FRAMES, Visitor
from scene import Visit

from admin.sites import Site
from rota.operate.requests import CancelRequest, GateRequest, JobsRequest

expect = pytest.importorskip("playwright.sync_api").expect


def typed(visitor: Visitor, text: str) -> Any:
    search = visitor.page.get_by_role("combobox", name="Search jobs")
    search.fill(text)
    search.press("Enter")
    return search


def jump(page: Any, text: str) -> None:
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or jump to").fill(text)


def id_of(site: Site, **ask: Any) -> str:
    return site.do(lambda: site.operations().jobs.list(JobsRequest(**ask))).items[0].id


def test_state_token_selects_the_tab(visit: Visit) -> None:
    visitor = visit("/jobs")
    search = visitor.page.get_by_role("combobox", name="Search jobs")
    search.fill("state:fa")
    expect(visitor.page.get_by_role("option", name="state:failed")).to_be_visible()
    typed(visitor, "state:failed queue:billing")
    expect(visitor.page.locator("tbody tr")).to_have_count(4)
    expect(search).to_have_value("")
    tabs = visitor.page.get_by_role("navigation", name="States")
    expect(tabs.get_by_role("link", name="Failed")).to_have_attribute("aria-current", "page")
    assert "state=failed" in visitor.page.url and "task=" not in visitor.page.url


def test_unknown_key_stays_in_the_field_with_a_list_of_keys(visit: Visit) -> None:
    visitor = visit("/jobs")
    search = typed(visitor, "stat:failed tenant:acme")
    expect(search).to_have_value("stat:failed")
    expect(visitor.page.get_by_text("Unknown key “stat”. Use one of state, task, queue")).to_be_visible()
    expect(search).to_have_attribute("aria-invalid", "true")
    assert visitor.page.url.endswith("/jobs?tenant=acme")
    search.press("Backspace")
    expect(visitor.page.get_by_text("Unknown key")).to_have_count(0)


def test_plain_word_searches_errors_unless_a_name_matches(visit: Visit) -> None:
    visitor = visit("/jobs")
    page = visitor.page
    search = typed(visitor, "partner hung up")
    expect(page.get_by_role("button", name="Remove error:partner hung up")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("button", name="Remove error:partner hung up").click()
    typed(visitor, "bil")
    expect(page.get_by_text("“bil” has several meanings")).to_be_visible()
    expect(search).to_have_value("bil")
    offers = page.get_by_role("listbox", name="Completions").get_by_role("option")
    expect(offers).to_have_text(["queue:billing", "tag:bil has this tag", "error:bil error contains it"])
    search.press("Enter")
    expect(page.get_by_role("button", name="Remove queue:billing")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(4)


def test_invalid_time_stays_in_the_search_field(visit: Visit) -> None:
    visitor = visit("/jobs")
    search = typed(visitor, "since:yesterday")
    values = "since: a duration such as 2h, or a time such as 2026-11-16T08:00."
    expect(visitor.page.get_by_text(values)).to_be_visible()
    expect(search).to_have_value("since:yesterday")
    assert visitor.page.url.endswith("/jobs")
    typed(visitor, "since:2h")
    expect(visitor.page.get_by_role("button", name="Remove since:2h")).to_be_visible()
    expect(visitor.page.get_by_text(values)).to_have_count(0)


def test_rejected_request_is_not_repeated_for_each_event(visit: Visit, site: Site) -> None:
    visitor = visit("/jobs")
    visitor.errors_expected = True
    page = visitor.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "since=" in request.url else None)
    visitor.go("/jobs?since=yesterday")
    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.get_by_role("alert").first).to_contain_text("since")
    queued = page.get_by_role("navigation", name="States").get_by_role("link", name="Queued")
    before = [url for url in asked if "/api/" in url]
    for more in (1, 2):
        site.job("news", queue="nowhere")
        expect(queued).to_contain_text(f"{3 + more}")
    page.evaluate(FRAMES)
    assert [url for url in asked if "/api/" in url] == before


def test_header_shows_name_role_and_both_ends_of_the_store(visit: Visit, site: Site) -> None:
    page = visit("/jobs").page
    who, where = page.locator(".who"), page.locator(".where")
    expect(who).to_contain_text("· admin")
    assert not (who.inner_text().startswith("token:") or "#" in who.inner_text())
    cut = "(one) => one.scrollWidth > one.clientWidth"
    assert not any(who.locator(part).evaluate(cut) for part in ("span", "small"))
    whole = str(where.get_attribute("title"))
    head, tail = where.inner_text().split("…")
    assert whole.startswith(head) and whole.endswith(tail) and tail.endswith(whole.rpartition("/")[2])
    assert not where.evaluate(cut)


def test_paused_queue_is_shown_above_jobs_on_rows_and_at_tasks(visit: Visit, site: Site) -> None:
    site.job("charge_card", payload={"order_id": 20}, queue="billing")
    ask = GateRequest(scope="queue", name="billing", reason="the bank is closed", for_s=1800)
    site.do(lambda: site.operations().gates.pause(ask))
    visitor = visit("/tasks")
    page = visitor.page
    row = page.locator("tbody tr", has_text="charge_card")
    expect(row).to_contain_text("paused until")
    expect(row).to_contain_text("the bank is closed")
    visitor.go("/jobs?queue=billing")
    note = page.get_by_role("status").filter(has_text="Queue billing is paused until")
    expect(note).to_contain_text("“the bank is closed”")
    held = page.locator("tbody tr", has_text="queued").locator("td[data-label=State]")
    expect(held).to_contain_text("paused")
    note.get_by_role("button", name="Resume billing").click()
    expect(note).to_have_count(0)
    expect(held).not_to_contain_text("paused")


def test_why_is_shown_only_for_the_current_state_of_the_job(visit: Visit, site: Site) -> None:
    """The answer to "why" comes a moment later, when the job may be another one already."""
    id = id_of(site, task="render_invoice")
    visitor = visit("/jobs")
    page = visitor.page
    page.keyboard.press("p")  # the job stays as it was loaded

    def late(route: Any) -> None:
        site.do(lambda: site.operations().jobs.cancel(id, CancelRequest()))
        route.fulfill(response=route.fetch())

    page.route("**/why", late, times=1)
    with page.expect_response("**/why"):
        visitor.go(f"/jobs/{id}")
    page.evaluate(FRAMES)
    expect(page.locator(".page-header .badge")).to_have_text("queued")
    expect(page.get_by_role("heading", name="Why is it not running?")).to_have_count(0)
    page.get_by_role("button", name="Resume live updates").click()
    expect(page.locator(".page-header .badge")).to_have_text("cancelled")


def test_palette_finds_a_job_by_the_end_of_its_id(visit: Visit, site: Site) -> None:
    id = id_of(site, task="render_invoice")
    page = visit("/queues").page
    jump(page, id[-6:])
    page.get_by_role("option", name=f"render_invoice {id[-6:]}, queued").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("render_invoice")


def test_palette_pauses_and_resumes_for_operators_only(visit: Visit, site: Site) -> None:
    visitor = visit("/queues")
    page = visitor.page
    jump(page, "pause")
    expect(page.get_by_role("option", name="Pause everything…")).to_be_visible()
    page.get_by_role("option", name="Pause queue billing…").click()
    page.get_by_role("dialog", name="Pause queue billing?").get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused queue billing.")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    jump(page, "resume")
    page.get_by_role("option", name="Resume queue billing").click()
    expect(page.get_by_text("Resumed queue billing.")).to_be_visible()
    viewer = visit("/queues", role="viewer").page
    jump(viewer, "pause")
    expect(viewer.get_by_role("option", name="jobs whose error contains")).to_be_visible()
    expect(viewer.get_by_role("option", name="action Pause")).to_have_count(0)


def test_shift_click_selects_and_deselects_a_range(visit: Visit) -> None:
    page = visit("/jobs").page
    boxes = page.locator("tbody").get_by_role("checkbox")
    boxes.nth(1).click()
    boxes.nth(4).click(modifiers=["Shift"])
    for i, checked in enumerate((False, True, True, True, True, False)):
        expect(boxes.nth(i)).to_be_checked(checked=checked)
    expect(page.get_by_role("button", name="Cancel 4")).to_be_visible()
    boxes.nth(2).click(modifiers=["Shift"])
    for i, checked in enumerate((False, True, False, False, False, False)):
        expect(boxes.nth(i)).to_be_checked(checked=checked)


def test_undo_is_not_offered_to_the_next_user(visit: Visit) -> None:
    page = visit("/gates").page
    page.get_by_role("button", name="Resume bulk").click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
