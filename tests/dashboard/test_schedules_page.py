"""One schedule: rule, next runs, history, changes and actions."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from rows import gates
from scene import Visit
from timetable import made_by, make, names, run, stored

from admin.sites import Site

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def test_page_shows_rule_settings_and_payload(visit: Visit, site: Site) -> None:
    make(site, "digest", timezone="Europe/Stockholm", description="For the board.", overlap="skip", jitter=90)
    page = visit("/schedules/digest").page
    expect(page.get_by_role("heading", level=1)).to_have_text("digest")
    expect(page.locator(".page-header")).to_contain_text("At 08:00, every day, Stockholm time")
    expect(page.locator(".page-header")).to_contain_text("For the board.")
    fires = page.get_by_role("table", name="Next runs").locator("tbody tr")
    expect(fires).to_have_count(10)
    expect(fires.first).to_contain_text(re.compile(r"in .*08:00 CES?T.*0[67]:00"))
    expect(page.get_by_text("each up to 1 min 30 s later (jitter)")).to_be_visible()
    expect(page.get_by_text("Skip this run.")).to_be_visible()
    expect(page.get_by_role("group", name="Payload")).to_contain_text("order_id: 1")


def test_clock_change_is_shown_at_the_affected_run(visit: Visit, site: Site) -> None:
    make(site, "gap", cron="30 2 * * *", timezone="Europe/Stockholm", start_at="2040-03-23T00:00:00Z")
    page = visit("/schedules/gap").page
    odd = page.locator(".fires tr.is-odd")
    expect(odd).to_have_count(1)
    expect(odd).to_contain_text("03:00 CEST")
    expect(odd).to_contain_text("02:30 does not exist, runs at 03:00")
    expect(page.get_by_text("A clock change affects an upcoming run.")).to_be_visible()


def test_history_has_totals_charts_and_every_run(visit: Visit, site: Site) -> None:
    """S7: history; its logs stand on the page of each run."""
    make(site, "bill", task="charge_card")
    run(site, "bill")
    run(site, "bill")
    site.do(lambda: site.rota.schedules.update("bill", task="send_receipt", payload={"order_id": 1}))
    run(site, "bill")
    visitor = visit("/schedules/bill")
    page = visitor.page
    expect(page.locator(".figures")).to_contain_text(
        re.compile(r"Runs\s*3.*33\.3 %.*1 of 3.*Failed\s*2", re.S)
    )
    expect(page.get_by_role("img", name="3 runs finished, 2 of them failed.")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Longest run per"))).to_be_visible()
    runs = page.get_by_role("table", name="Runs", exact=True).locator("tbody tr")
    expect(runs).to_have_count(3)
    expect(runs.first).to_contain_text("succeeded")
    expect(runs.last).to_contain_text("'vat_rate'")
    expect(runs.last).to_contain_text("triggered")
    page.get_by_role("radio", name="Failed only").check(force=True)
    expect(page).to_have_url(re.compile(r"failed=1"))
    expect(runs).to_have_count(2)
    page.get_by_role("table", name="Runs", exact=True).get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("/jobs/"))


def test_run_elsewhere_appears_live(visit: Visit, site: Site) -> None:
    page = visit("/schedules/nightly").page
    expect(page.get_by_text("No runs yet")).to_be_visible()
    run(site, "nightly")
    runs = page.get_by_role("table", name="Runs", exact=True).locator("tbody tr")
    expect(runs).to_have_count(1)
    expect(runs).to_contain_text("succeeded")


def test_trigger_starts_a_run(visit: Visit, site: Site) -> None:
    page = visit("/schedules/nightly", role="operator").page
    page.get_by_role("button", name="Trigger").click()
    expect(page.get_by_role("table", name="Runs", exact=True).locator("tbody tr")).to_contain_text("queued")
    assert [job.origin for job in made_by(site, "nightly")] == ["manual"]


def test_schedule_is_disabled_with_a_reason_and_enabled(visit: Visit, site: Site) -> None:
    page = visit("/schedules/nightly", role="operator").page
    page.get_by_role("button", name="Disable").click()
    dialog = page.get_by_role("dialog", name="Disable nightly?")
    expect(dialog).to_contain_text("existing jobs continue")
    dialog.get_by_label("Reason").fill("the books are closed")
    dialog.get_by_role("button", name="Disable").click()
    expect(page.locator(".note")).to_contain_text("the books are closed")
    assert stored(site, "nightly").reason == "the books are closed"
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()
    assert stored(site, "nightly").enabled


def test_schedule_is_paused_and_resumed(visit: Visit, site: Site) -> None:
    page = visit("/schedules/nightly", role="operator").page
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("dialog").get_by_label("Reason").fill("provider down")
    page.get_by_role("dialog").get_by_role("button", name="Pause", exact=True).click()
    expect(page.locator(".note")).to_contain_text("provider down")
    assert gates(site)["schedule:default/nightly"].reason == "provider down"
    page.get_by_role("button", name="Resume", exact=True).click()
    expect(page.locator(".note")).to_have_count(0)
    assert "schedule:default/nightly" not in gates(site)


def test_backfill_lists_runs_before_creating_jobs(visit: Visit, site: Site) -> None:
    page = visit("/schedules/nightly", role="operator").page
    page.get_by_role("button", name="Backfill").click()
    dialog = page.get_by_role("dialog", name="Backfill nightly?")
    day = site.rota.clock.now().date() - timedelta(days=4)
    dialog.get_by_label("From").fill(f"{day}T00:00")
    dialog.get_by_label("To").fill(f"{day + timedelta(days=2)}T12:00")
    expect(dialog).to_contain_text("3 jobs will be created")
    expect(dialog.get_by_role("listitem")).to_have_count(3)
    expect(dialog.get_by_role("listitem").first).to_contain_text("03:00 UTC")
    assert made_by(site, "nightly") == []
    dialog.get_by_role("button", name="Backfill 3").click()
    expect(page.get_by_text("Created 3 jobs of nightly, due now.")).to_be_visible()
    assert {job.origin for job in made_by(site, "nightly")} == {"catchup"}
    assert len(made_by(site, "nightly")) == 3
    page.get_by_role("button", name="Backfill").click()
    dialog.get_by_label("From").fill(f"{day}T00:00")
    dialog.get_by_label("To").fill(f"{day + timedelta(days=2)}T12:00")
    expect(dialog).to_contain_text("Nothing is missing")
    expect(dialog.get_by_role("button", name="Backfill")).to_be_disabled()


def test_invalid_backfill_range_is_an_error(visit: Visit) -> None:
    visitor = visit("/schedules/nightly")
    visitor.page.get_by_role("button", name="Backfill").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("To").fill("2001-01-01T00:00")
    expect(dialog.get_by_role("alert")).to_contain_text("swap them")
    visitor.ignore_failed_requests()


def test_schedule_is_deleted_only_after_its_name_is_typed(visit: Visit, site: Site) -> None:
    """Q10: delete confirmation."""
    page = visit("/schedules/nightly", role="operator").page
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog", name="Delete nightly?")
    expect(dialog).to_contain_text("Its jobs and audit entries stay")
    sure = dialog.get_by_role("button", name="Delete")
    expect(sure).to_be_disabled()
    dialog.get_by_label("Type nightly to confirm").fill("nightly")
    sure.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Schedules")
    assert names(site) == {"each_quarter"}


def test_changes_show_who_changed_what(visit: Visit, site: Site) -> None:
    site.do(lambda: site.rota.schedules.update("nightly", cron="0 4 * * *", payload={"order_id": 7}))
    page = visit("/schedules/nightly", role="operator").page
    versions = page.get_by_role("table", name="Changes").locator("tbody tr")
    expect(versions).to_have_count(2)
    expect(versions.first).to_contain_text("update")
    expect(versions.first.locator("li").filter(has_text="cron").locator("del")).to_have_text('"0 3 * * *"')
    expect(versions.first.locator("li").filter(has_text="cron").locator("ins")).to_have_text('"0 4 * * *"')
    expect(versions.first).to_contain_text("payload.order_id")
    expect(versions.last).to_contain_text("create")


def test_user_without_audit_access_sees_no_changes(visit: Visit) -> None:
    page = visit("/schedules/nightly", role="viewer").page
    expect(page.get_by_role("table", name="Next runs")).to_be_visible()
    expect(page.get_by_role("heading", name="Changes")).to_have_count(0)
    expect(page.get_by_role("group", name="Payload")).to_contain_text("hidden")


def test_unknown_schedule_is_not_found(visit: Visit) -> None:
    visitor = visit("/schedules/never-was")
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Schedule not found")
    visitor.page.get_by_role("link", name="View schedules").click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Schedules")
    visitor.ignore_failed_requests()


def test_trigger_is_copied_as_a_command(visit: Visit) -> None:
    page = visit("/schedules/nightly").page
    page.get_by_role("button", name="Copy as").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("rota schedules trigger nightly")
    expect(dialog).to_contain_text('await app.schedules.trigger("nightly")')
