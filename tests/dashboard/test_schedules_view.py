"""Schedules: the list, the next 24 hours, enable and trigger."""

from __future__ import annotations

import re

import pytest
from browser_tools import Visitor
from rows import cell, row
from scene import Visit
from timetable import caught_up, clear, made_by, make, overdue, run, stored

from admin.sites import Site
from rota.operate.requests import GateRequest

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect

TURN = re.compile("^(Trigger|Edit|Create schedule|Backfill|Disable|Enable|Delete|Pause (?!live updates))")
SMALL = {"viewport": {"width": 360, "height": 780}, "color_scheme": "dark"}


def switch(visitor: Visitor, name: str) -> object:
    return visitor.page.get_by_role("switch", name=f"{name} enabled")


def test_schedule_shows_its_rule_in_words_and_both_zones(visit: Visit, site: Site) -> None:
    """Q10: schedules table with the next run."""
    make(site, "digest", timezone="Europe/Stockholm")
    visitor = visit("/schedules")
    shown = cell(visitor, "digest", "Schedule")
    expect(shown).to_contain_text("At 08:00, every day, Stockholm time")
    expect(shown.locator("code")).to_have_text("0 8 * * *")
    expect(cell(visitor, "digest", "Next run")).to_contain_text(
        re.compile(r"in .*0[67]:00:00.*08:00 Stockholm")
    )
    expect(cell(visitor, "digest", "Source")).to_have_text("user")
    expect(cell(visitor, "digest", "Last 10 runs")).to_have_text("no runs yet")
    expect(visitor.page.get_by_role("columnheader", name="Schedule")).to_be_visible()


def test_failed_run_is_taller_in_the_strip_of_last_runs(visit: Visit, site: Site) -> None:
    """Q10: schedules table with the last run."""
    make(site, "bill", task="charge_card")
    run(site, "bill")
    run(site, "nightly")
    visitor = visit("/schedules")
    failed = row(visitor, "bill").get_by_role("img", name="Last 1 run, 1 failed").locator("rect")
    good = row(visitor, "nightly").get_by_role("img", name="Last 1 run, 0 failed").locator("rect")
    assert int(failed.get_attribute("height")) > int(good.get_attribute("height"))
    expect(failed.locator("title")).to_contain_text("failed: 'vat_rate'")


def test_catch_up_run_has_its_own_mark(visit: Visit, site: Site) -> None:
    make(site, "hourly", cron="0 * * * *")
    caught_up(site, "hourly")
    visitor = visit("/schedules")
    mark = row(visitor, "hourly").locator(".strip rect.missed").first
    expect(mark.locator("title")).to_contain_text("succeeded, caught up")
    visitor.go("/schedules/hourly")
    expect(
        visitor.page.get_by_role("table", name="Runs", exact=True).locator("tbody tr").first
    ).to_contain_text("caught up")


def test_late_disabled_and_paused_schedules_are_distinct(visit: Visit, site: Site) -> None:
    for name in ("slow", "frozen", "resting"):
        make(site, name)
    overdue(site, "slow")
    site.do(lambda: site.rota.schedules.disable("resting", reason="moved to the other house"))
    site.do(
        lambda: site.operations().gates.pause(GateRequest(scope="schedule", name="frozen", reason="frost"))
    )
    visitor = visit("/schedules")
    expect(cell(visitor, "slow", "Next run")).to_contain_text("2 h late")
    expect(cell(visitor, "frozen", "Next run")).to_contain_text("paused")
    expect(cell(visitor, "resting", "Next run")).to_have_text("disabled")
    expect(cell(visitor, "resting", "Schedule")).to_contain_text("disabled: moved to the other house")
    expect(visitor.page.locator(".page-header")).to_contain_text(
        "4 enabled, 1 disabled, 1 paused. slow is late."
    )
    visitor.page.get_by_role("link", name="slow is late").click()
    expect(row(visitor, "frozen")).to_have_count(0)
    expect(row(visitor, "slow")).to_be_visible()


def test_switch_disables_and_enables_a_schedule(visit: Visit, site: Site) -> None:
    """Q10, S7: the enable toggle."""
    visitor = visit("/schedules", role="operator")
    expect(switch(visitor, "nightly")).to_have_attribute("aria-checked", "true")
    visitor.page.get_by_role("switch", name="nightly enabled").click()
    expect(switch(visitor, "nightly")).to_have_attribute("aria-checked", "false")
    assert not stored(site, "nightly").enabled
    visitor.page.get_by_role("button", name="Undo").click()
    expect(switch(visitor, "nightly")).to_have_attribute("aria-checked", "true")
    assert stored(site, "nightly").enabled


def test_trigger_creates_one_job_and_can_be_undone(visit: Visit, site: Site) -> None:
    """S7: the trigger button."""
    before = stored(site, "nightly").next_run_at
    page = visit("/schedules", role="operator").page
    page.get_by_role("button", name="Trigger nightly").click()
    expect(page.get_by_text("nightly runs now as job")).to_be_visible()
    (job,) = made_by(site, "nightly")
    assert (job.origin, job.state) == ("manual", "queued")
    assert stored(site, "nightly").next_run_at == before
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    page.goto(f"{site.server.url}/jobs/{job.id}")
    expect(page.locator(".page-header")).to_contain_text("cancelled")


def test_schedule_created_elsewhere_appears_live(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules")
    expect(row(visitor, "nightly")).to_be_visible()
    make(site, "newcomer", every=3600)
    expect(cell(visitor, "newcomer", "Schedule")).to_contain_text("Every hour")


def test_filters_of_schedules_are_in_the_address(visit: Visit, site: Site) -> None:
    make(site, "acme_digest", tenant="acme")
    site.do(lambda: site.rota.schedules.disable("nightly"))
    visitor = visit("/schedules?show=off")
    page = visitor.page
    expect(row(visitor, "nightly")).to_be_visible()
    expect(row(visitor, "each_quarter")).to_have_count(0)
    page.get_by_role("radio", name="All").check(force=True)
    page.get_by_label("Tenant", exact=True).select_option("acme")
    expect(page).to_have_url(re.compile(r"\?tenant=acme$"))
    expect(row(visitor, "nightly")).to_have_count(0)
    expect(row(visitor, "acme_digest acme")).to_be_visible()
    visitor.open("/schedules?named=quarter")
    expect(row(visitor, "each_quarter")).to_be_visible()
    expect(row(visitor, "nightly")).to_have_count(0)
    page.get_by_label("Find schedules by name").fill("nothing like it")
    expect(page.get_by_text("No matching schedules")).to_be_visible()


def test_next_day_is_shown_as_a_map_and_a_timeline_per_schedule(visit: Visit, site: Site) -> None:
    make(site, "pulse", every=60)
    visitor = visit("/schedules")
    page = visitor.page
    expect(
        page.get_by_role("img", name=re.compile("^nightly: 1 run within 24 hours, the first at 03:00$"))
    ).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^each_quarter: 9[56] runs"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^pulse: 200 runs and more"))).to_be_visible()
    expect(
        page.get_by_role("img", name=re.compile("^9[67] runs within 24 hours, by quarter hour"))
    ).to_be_visible()
    expect(page.get_by_text("Not shown: pulse (more than")).to_be_visible()


def test_schedule_whose_name_breaks_a_path_has_a_page(visit: Visit, site: Site) -> None:
    name = "a/b?c=#<img src=x onerror=window.__xss=1>"
    make(site, name)
    visitor = visit("/schedules")
    visitor.page.get_by_role("link", name=name, exact=True).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(name)
    visitor.page.get_by_role("link", name="Edit", exact=True).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(f"Edit {name}")
    assert not visitor.ran()


def test_empty_schedules_view_shows_the_first_command(visit: Visit, site: Site) -> None:
    clear(site)
    page = visit("/schedules").page
    expect(page.get_by_text("No schedules yet")).to_be_visible()
    expect(page.locator(".command code")).to_have_text(re.compile("^rota schedules create"))
    page.get_by_role("button", name="Create schedule").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Create schedule")


def test_viewer_has_no_buttons_on_schedules(visit: Visit) -> None:
    visitor = visit("/schedules", role="viewer")
    expect(cell(visitor, "nightly", "On")).to_have_text("on")
    for path in ("/schedules", "/schedules/nightly", "/calendars"):
        visitor.go(path)
        expect(visitor.page.get_by_role("switch")).to_have_count(0)
        expect(visitor.page.get_by_role("button", name=TURN)).to_have_count(0)
        expect(visitor.page.get_by_role("link", name=TURN)).to_have_count(0)
    visitor.go("/schedules/nightly/edit")
    expect(visitor.page.get_by_text("You don't have access")).to_be_visible()


def test_tenant_user_sees_own_schedules_only(visit: Visit, site: Site) -> None:
    make(site, "acme_digest", tenant="acme")
    visitor = visit("/schedules", role="operator", tenant="acme")
    expect(row(visitor, "acme_digest acme")).to_be_visible()
    expect(row(visitor, "nightly")).to_have_count(0)
    visitor.go("/schedules/nightly")
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Schedule not found")
    visitor.ignore_failed_requests()


def test_schedule_views_fit_a_small_dark_screen(visit: Visit, site: Site) -> None:
    make(site, "n" * 120, description="d" * 300, timezone="America/Argentina/ComodRivadavia")
    run(site, "nightly")
    visitor = visit("/schedules", **SMALL)
    assert visitor.overflow() <= 0
    for path in (
        "/schedules/nightly",
        f"/schedules/{'n' * 120}",
        "/schedules/nightly/edit",
        "/schedules/new",
        "/calendars",
    ):
        visitor.go(path)
        assert visitor.overflow() <= 0, path
