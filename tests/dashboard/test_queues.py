"""Queues and tasks: depth, throughput, pause and resume."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from browser_tools import visiting
from rows import cell, gates, row
from scene import Visit
from staff import at_work

from admin.sites import Site, eventually

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def test_queues_show_depth_and_missing_workers(visit: Visit) -> None:
    """Q10: queue stats."""
    visitor = visit("/queues")
    expect(cell(visitor, "pdf", "Due")).to_have_text("1")
    expect(cell(visitor, "pdf", "State")).to_have_text("no worker")
    expect(row(visitor, "pdf")).to_contain_text("rota worker -q pdf")
    expect(cell(visitor, "mail", "Later")).to_have_text("1")
    expect(cell(visitor, "bulk", "State")).to_have_text("paused")
    expect(row(visitor, "bulk")).to_contain_text("the provider is down")
    expect(cell(visitor, "billing", "Finished/min")).to_contain_text("failed")
    picture = cell(visitor, "billing", "Finished, last hour").get_by_role("img")
    expect(picture).to_have_attribute("aria-label", "4 jobs finished in the last hour, 4 failed")
    cell(visitor, "pdf", "Due").get_by_role("link").click()
    expect(visitor.page).to_have_url(re.compile(r"/jobs\?queue=pdf&state=queued$"))


def test_queue_is_paused_with_a_reason_and_an_end_and_resumed(visit: Visit, site: Site) -> None:
    visitor = visit("/queues", role="operator")
    page = visitor.page
    page.get_by_role("button", name="Pause pdf", exact=True).click()
    dialog = page.get_by_role("dialog", name="Pause queue pdf?")
    expect(dialog).to_contain_text("Affects 1 due job")
    expect(dialog).to_contain_text("Running jobs finish.")
    dialog.get_by_label("Reason").fill("the printer <b>burns</b>")
    dialog.get_by_label("Duration").select_option(label="for 1 hour")
    dialog.get_by_role("button", name="Pause").click()
    expect(cell(visitor, "pdf", "State")).to_contain_text("paused until")
    expect(row(visitor, "pdf")).to_contain_text("the printer <b>burns</b>")
    gate = gates(site)["queue:pdf"]
    assert gate.until_at == gate.since_at + timedelta(hours=1)
    page.get_by_role("button", name="Resume pdf", exact=True).click()
    expect(cell(visitor, "pdf", "State")).to_have_text("no worker")
    assert "queue:pdf" not in gates(site)


def test_pause_is_undone_from_its_toast(visit: Visit, site: Site) -> None:
    visitor = visit("/queues")
    visitor.page.get_by_role("button", name="Pause pdf", exact=True).click()
    visitor.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    visitor.page.get_by_role("button", name="Undo").click()
    eventually(lambda: "queue:pdf" not in gates(site), "the pause is lifted")
    expect(cell(visitor, "pdf", "State")).to_have_text("no worker")


def test_pause_can_end_at_a_chosen_time(visit: Visit, site: Site) -> None:
    visitor = visit("/queues", timezone_id="Europe/Stockholm")
    visitor.page.get_by_role("button", name="Pause pdf", exact=True).click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Duration").select_option(label="until a set time")
    expect(dialog).to_contain_text("Europe/Stockholm")
    dialog.get_by_label("Until", exact=True).fill("2001-01-01T08:00")
    dialog.get_by_role("button", name="Pause").click()
    expect(dialog.get_by_role("alert")).to_contain_text("in the past")
    dialog.get_by_label("Until", exact=True).fill("2098-07-01T08:00")
    dialog.get_by_role("button", name="Pause").click()
    expect(cell(visitor, "pdf", "State")).to_contain_text("paused until")
    until = gates(site)["queue:pdf"].until_at
    assert until is not None and until.isoformat() == "2098-07-01T06:00:00+00:00"
    visitor.ignore_failed_requests()


def test_filter_and_order_of_queues_are_in_the_address(visit: Visit) -> None:
    visitor = visit("/queues")
    page = visitor.page
    page.get_by_label("Paused", exact=True).check(force=True)
    expect(page).to_have_url(re.compile(r"show=paused"))
    expect(page.locator("table.queues tbody tr")).to_have_count(1)
    page.get_by_label("Find queues by name").fill("zzz")
    expect(page.get_by_text("No matching queues")).to_be_visible()
    page.get_by_role("link", name="Show all queues").click()
    expect(page.locator("table.queues tbody tr")).to_have_count(5)
    page.get_by_role("button", name="Due", exact=True).click()
    expect(page).to_have_url(re.compile(r"by=due"))
    expect(page.locator("table.queues tbody tr").first).to_contain_text("pdf")
    page.reload()
    expect(page.locator("table.queues tbody tr").first).to_contain_text("pdf")
    expect(page.get_by_role("columnheader", name="Due", exact=True)).to_have_attribute(
        "aria-sort", "descending"
    )


def test_new_job_is_counted_live_and_waits_while_updates_are_paused(visit: Visit, site: Site) -> None:
    visitor = visit("/queues")
    site.job("render_invoice", queue="pdf")
    expect(cell(visitor, "pdf", "Due")).to_have_text("2")
    visitor.page.keyboard.press("p")
    site.job("render_invoice", queue="pdf")
    expect(visitor.page.get_by_role("button", name=re.compile("^Paused"))).to_contain_text("new")
    expect(cell(visitor, "pdf", "Due")).to_have_text("2")
    visitor.page.keyboard.press("p")
    expect(cell(visitor, "pdf", "Due")).to_have_text("3")


def test_viewer_has_no_pause_button(visit: Visit) -> None:
    for path in ("/queues", "/tasks", "/queues/pdf"):
        page = visit(path, role="viewer").page
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^(Pause|Resume) (?!live updates)"))).to_have_count(
            0
        )


def test_tenant_user_sees_own_depth_and_no_false_zeros(visit: Visit) -> None:
    visitor = visit("/queues", role="operator", tenant="globex")
    expect(cell(visitor, "mail", "Later")).to_have_text("1")
    page = visitor.page
    expect(page.locator("table.queues tbody tr")).to_have_count(1)
    expect(page.get_by_role("columnheader", name="Finished/min")).to_have_count(0)
    expect(page.get_by_role("button", name="Pause mail")).to_have_count(0)
    visitor.go("/tasks")
    expect(page.get_by_text("Tasks cover all tenants")).to_be_visible()


def test_queue_page_shows_throughput_and_oldest_jobs(visit: Visit, site: Site) -> None:
    visitor = visit("/queues")
    page = visitor.page
    page.get_by_role("link", name="pdf", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("pdf")
    expect(page.get_by_role("table", name="Live jobs").get_by_role("link")).to_contain_text("render_invoice")
    expect(page.get_by_text("No running worker for this queue")).to_be_visible()
    expect(page.get_by_text("rota worker -q pdf")).to_be_visible()
    page.get_by_role("button", name="Pause pdf").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("paper jam")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paper jam")).to_be_visible()
    assert gates(site)["queue:pdf"].reason == "paper jam"
    visitor.open("/queues/billing?range=1h")
    chart = page.get_by_role("img", name=re.compile("4 jobs finished in 1 hour, 4 of them failed"))
    expect(chart).to_be_visible()
    visitor.open("/queues/unused")
    expect(page.get_by_text("No jobs in this queue")).to_be_visible()


def test_tasks_show_throughput_and_durations(visit: Visit, site: Site, tmp_path: Path) -> None:
    with at_work(site, tmp_path):
        site.job("quick", queue="halls")
        visitor = visit("/tasks")
        expect(cell(visitor, "quick", "Workers")).to_have_text("1")
        expect(cell(visitor, "quick", "p50")).to_contain_text(re.compile(r"\d m?s"))
        expect(cell(visitor, "charge_card", "Finished/min")).to_contain_text("failed")
        visitor.page.get_by_role("button", name="Pause quick", exact=True).click()
        visitor.page.get_by_role("dialog").get_by_role("button", name="Pause").click()
        expect(cell(visitor, "quick", "State")).to_have_text("paused")
        assert "task:quick" in gates(site)
        visitor.page.get_by_label("Failing", exact=True).check(force=True)
        expect(visitor.page.locator("table.tasks tbody tr")).to_have_count(1)


def test_empty_lists_show_the_first_command(browser: Any, tmp_path: Path) -> None:
    site = Site(f"sqlite:///{tmp_path / 'empty.db'}")
    try:
        with visiting(browser, site, site.token()) as visitor:
            for path, line in (
                ("/queues", "rota jobs enqueue"),
                ("/tasks", "rota worker --app"),
                ("/workers", "rota worker --app"),
                ("/tenants", "--tenant acme"),
                ("/gates", "rota pause --queue"),
            ):
                visitor.open(path)
                expect(visitor.page.locator(".empty .command")).to_contain_text(line)
    finally:
        site.close()


def test_command_quotes_a_hostile_queue_name(visit: Visit, site: Site) -> None:
    site.job("render_invoice", queue="x; rm -rf ~ #'")
    visitor = visit("/queues")
    expect(row(visitor, "x; rm -rf ~ #'")).to_contain_text(r"rota worker -q 'x; rm -rf ~ #'\'''")
    visitor.page.get_by_role("link", name="x; rm -rf ~ #'").click()
    expect(visitor.page.locator(".command").first).to_contain_text(r"rota worker -q 'x; rm -rf ~ #'\'''")
