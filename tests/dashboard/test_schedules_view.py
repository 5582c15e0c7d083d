"""Schedules: the list, the day ahead, the switch and the trigger."""

from __future__ import annotations

import re

import pytest
from browsing import Visitor
from rows import cell, row
from scene import Visit
from timetable import caught_up, clear, made_by, make, overdue, run, stored

from admin.sites import Site
from rota.operate.asks import GateAsk

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect

TURN = re.compile("^(Trigger|Edit|Create schedule|Backfill|Disable|Enable|Delete|Pause (?!live updates))")
SMALL = {"viewport": {"width": 360, "height": 780}, "color_scheme": "dark"}


def switch(visitor: Visitor, name: str) -> object:
    return visitor.page.get_by_role("switch", name=f"{name} enabled")


def test_a_schedule_is_told_in_words_and_in_both_zones(visit: Visit, site: Site) -> None:
    """Q10: schedules table with the next run."""
    make(site, "digest", timezone="Europe/Stockholm")
    visitor = visit("/schedules")
    told = cell(visitor, "digest", "Schedule")
    expect(told).to_contain_text("At 08:00, every day, Stockholm time")
    expect(told.locator("code")).to_have_text("0 8 * * *")
    expect(cell(visitor, "digest", "Next run")).to_contain_text(
        re.compile(r"in .*0[67]:00:00.*08:00 Stockholm")
    )
    expect(cell(visitor, "digest", "Source")).to_have_text("user")
    expect(cell(visitor, "digest", "Last 10 runs")).to_have_text("no runs yet")
    expect(visitor.page.get_by_role("columnheader", name="Schedule")).to_be_visible()


def test_the_last_runs_are_a_strip_in_which_failure_is_taller(visit: Visit, site: Site) -> None:
    """Q10: schedules table with the last run."""
    make(site, "bill", task="charge_card")
    run(site, "bill")
    run(site, "nightly")
    visitor = visit("/schedules")
    failed = row(visitor, "bill").get_by_role("img", name="Last 1 run, 1 failed").locator("rect")
    good = row(visitor, "nightly").get_by_role("img", name="Last 1 run, 0 failed").locator("rect")
    assert int(failed.get_attribute("height")) > int(good.get_attribute("height"))
    expect(failed.locator("title")).to_contain_text("failed: 'vat_rate'")


def test_a_run_that_makes_up_for_a_missed_fire_has_its_own_mark(visit: Visit, site: Site) -> None:
    make(site, "hourly", cron="0 * * * *")
    caught_up(site, "hourly")
    visitor = visit("/schedules")
    mark = row(visitor, "hourly").locator(".strip rect.missed").first
    expect(mark.locator("title")).to_contain_text("succeeded, caught up")
    visitor.go("/schedules/hourly")
    expect(visitor.page.get_by_role("table", name="Runs").locator("tbody tr").first).to_contain_text(
        "made up"
    )


def test_late_off_and_paused_are_told_apart(visit: Visit, site: Site) -> None:
    for name in ("slow", "frozen", "resting"):
        make(site, name)
    overdue(site, "slow")
    site.do(lambda: site.rota.schedules.disable("resting", reason="moved to the other house"))
    site.do(lambda: site.desk().gates.pause(GateAsk(scope="schedule", name="frozen", reason="frost")))
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


def test_the_switch_turns_a_schedule_off_and_on(visit: Visit, site: Site) -> None:
    """Q10, S7: the enable toggle."""
    visitor = visit("/schedules", role="operator")
    expect(switch(visitor, "nightly")).to_have_attribute("aria-checked", "true")
    visitor.page.get_by_role("switch", name="nightly enabled").click()
    expect(switch(visitor, "nightly")).to_have_attribute("aria-checked", "false")
    assert not stored(site, "nightly").enabled
    visitor.page.get_by_role("button", name="Undo").click()
    expect(switch(visitor, "nightly")).to_have_attribute("aria-checked", "true")
    assert stored(site, "nightly").enabled


def test_a_trigger_makes_one_job_and_can_be_taken_back(visit: Visit, site: Site) -> None:
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


def test_a_schedule_made_elsewhere_appears_by_itself(visit: Visit, site: Site) -> None:
    visitor = visit("/schedules")
    expect(row(visitor, "nightly")).to_be_visible()
    make(site, "newcomer", every=3600)
    expect(cell(visitor, "newcomer", "Schedule")).to_contain_text("Every hour")


def test_every_filter_lives_in_the_address(visit: Visit, site: Site) -> None:
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


def test_the_day_ahead_is_a_map_and_a_lane_each(visit: Visit, site: Site) -> None:
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
    expect(page.get_by_text("Without pulse with more than")).to_be_visible()


def test_a_name_that_no_path_can_hold_still_has_its_page(visit: Visit, site: Site) -> None:
    name = "a/b?c=#<img src=x onerror=window.__xss=1>"
    make(site, name)
    visitor = visit("/schedules")
    visitor.page.get_by_role("link", name=name, exact=True).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(name)
    visitor.page.get_by_role("link", name="Edit", exact=True).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text(f"Edit {name}")
    assert not visitor.ran()


def test_without_schedules_the_first_step_is_taught(visit: Visit, site: Site) -> None:
    clear(site)
    page = visit("/schedules").page
    expect(page.get_by_text("No schedules yet")).to_be_visible()
    expect(page.locator(".command code")).to_have_text(re.compile("^rota schedules create"))
    page.get_by_role("button", name="Create schedule").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Create schedule")


def test_who_only_reads_has_nothing_to_press(visit: Visit) -> None:
    visitor = visit("/schedules", role="viewer")
    expect(cell(visitor, "nightly", "On")).to_have_text("on")
    for path in ("/schedules", "/schedules/nightly", "/calendars"):
        visitor.go(path)
        expect(visitor.page.get_by_role("switch")).to_have_count(0)
        expect(visitor.page.get_by_role("button", name=TURN)).to_have_count(0)
        expect(visitor.page.get_by_role("link", name=TURN)).to_have_count(0)
    visitor.go("/schedules/nightly/edit")
    expect(visitor.page.get_by_text("You don't have access")).to_be_visible()


def test_a_tenant_sees_its_own_only(visit: Visit, site: Site) -> None:
    make(site, "acme_digest", tenant="acme")
    visitor = visit("/schedules", role="operator", tenant="acme")
    expect(row(visitor, "acme_digest acme")).to_be_visible()
    expect(row(visitor, "nightly")).to_have_count(0)
    visitor.go("/schedules/nightly")
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Schedule not found")
    visitor.forgive_refusals()


def test_all_of_it_fits_a_small_dark_screen(visit: Visit, site: Site) -> None:
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
