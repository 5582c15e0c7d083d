"""Dialogs: double clicks, Escape while an action runs, names in use, another session; and links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser_tools import Visitor, visiting
from playwright.sync_api import Locator, Page, Route, expect
from scene import stage

from admin.sites import Site, eventually
from rota.model import Schedule
from rota.operate.requests import CountRequest, JobsRequest, PutCalendarRequest, TenantRequest

PASSWORD = "a long enough sentence"


@pytest.fixture(scope="module", params=["sqlite"])
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One shop for all tests of this file: each creates what it needs under its own names."""
    staged = stage(f"sqlite:///{tmp_path_factory.mktemp('dialogs') / 'rota.db'}")
    yield staged
    staged.close()


@pytest.fixture(scope="module")
def guest(browser: Any, site: Site) -> Iterator[Visitor]:
    with visiting(browser, site, site.token("admin")) as guest:
        yield guest


@pytest.fixture
def visitor(guest: Visitor) -> Iterator[Visitor]:
    yield guest
    guest.page.unroute_all()
    guest.ignore_failed_requests()
    guest.assert_no_problems()


class HeldRequests:
    """Requests of a kind wait in the browser until they are let go; their number is known."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page, self.waiting = page, list[Route]()
        page.route(pattern, self._keep)

    def _keep(self, route: Route) -> None:
        if route.request.method == "GET":
            route.continue_()
        else:
            self.waiting.append(route)

    def arrived(self) -> None:
        expect(self._page.get_by_role("dialog").locator("[type=submit]")).to_be_disabled()
        assert len(self.waiting) == 1

    def release(self) -> None:
        for route in self.waiting:
            route.continue_()


def submit(page: Page) -> Locator:
    return page.get_by_role("dialog").locator("[type=submit]")


def enqueue_form(visitor: Visitor, task: str) -> None:
    visitor.go("/jobs")
    visitor.page.get_by_role("button", name="Enqueue job").click()
    visitor.page.get_by_role("dialog").get_by_label("Task").fill(task)


def how_many(site: Site, task: str) -> int:
    return site.do(lambda: site.operations().jobs.count(CountRequest(task=task))).count


def test_double_click_creates_one_token_and_shows_it(visitor: Visitor, site: Site) -> None:
    visitor.go("/settings")
    visitor.page.get_by_role("button", name="Create token").click()
    visitor.page.get_by_role("dialog").get_by_label("Name").fill("pressed twice")
    submit(visitor.page).dblclick()
    token = (
        visitor.page.get_by_role("dialog", name="Copy the API token now").locator("[data-token]").inner_text()
    )
    assert site.get("/api/admin/me", token=token).status == 200
    made = site.do(lambda: site.operations().access.tokens()).items
    assert [one.name for one in made].count("pressed twice") == 1
    visitor.page.get_by_role("button", name="Done").click()


def test_double_click_creates_one_job(visitor: Visitor, site: Site) -> None:
    enqueue_form(visitor, "twice")
    submit(visitor.page).dblclick()
    expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("twice")
    assert how_many(site, "twice") == 1


def test_calendar_name_in_use_is_rejected(visitor: Visitor, site: Site) -> None:
    site.do(
        lambda: site.operations().schedules.put_calendar("feasts", PutCalendarRequest(dates=("2040-12-25",)))
    )
    visitor.errors_expected = True
    visitor.go("/calendars")
    visitor.page.get_by_role("button", name="Create calendar").first.click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("feasts")
    dialog.get_by_role("textbox", name="Dates").fill("2041-01-01")
    submit(visitor.page).click()
    expect(dialog.get_by_role("alert")).to_contain_text("there is a calendar 'feasts' already")
    kept = site.do(lambda: site.rota.calendars.get("feasts"))
    assert {day.year for day in kept.dates} == {2040}
    dialog.get_by_label("Name").fill("others")
    submit(visitor.page).click()
    expect(visitor.page.get_by_role("table", name="Calendars")).to_contain_text("others")


def test_user_name_in_use_is_rejected(visitor: Visitor, site: Site) -> None:
    site.user("ada", PASSWORD, "admin")
    visitor.errors_expected = True
    visitor.go("/settings")
    visitor.page.get_by_role("button", name="Create user").click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("ada")
    dialog.get_by_label("Password").fill("another long sentence")
    submit(visitor.page).click()
    expect(dialog.get_by_role("alert")).to_contain_text("there is a user 'ada' already")
    assert [one.role for one in site.do(lambda: site.operations().access.users()).items] == ["admin"]
    assert site.post("/api/session", {"user": "ada", "password": PASSWORD}).status == 200
    visitor.page.keyboard.press("Escape")


def test_page_checkbox_selects_only_the_page(visitor: Visitor, site: Site) -> None:
    for _ in range(60):
        site.job("many")
    visitor.go("/jobs?task=many")
    box, bar = visitor.page.get_by_label("Select all shown jobs"), visitor.page.locator(".bulk")
    box.click()
    bar.get_by_role("button", name="Select all 60 matching jobs").click()
    expect(bar).to_contain_text("All 60 matching jobs selected.")
    box.click()
    expect(bar).to_have_count(0)
    box.click()
    expect(bar).to_contain_text("50 selected.")
    bar.get_by_role("button", name="Clear").click()


def test_mask_is_neither_stored_nor_copied(visitor: Visitor, site: Site) -> None:
    job = site.job("login", payload={"user": "ada", "password": "hunter2"})
    visitor.go(f"/jobs/{job}")
    visitor.page.get_by_role("button", name="Copy as").click()
    expect(visitor.page.get_by_role("dialog")).to_contain_text("the payload contains hidden secrets")
    expect(visitor.page.get_by_role("dialog")).not_to_contain_text("•••")
    visitor.page.get_by_role("button", name="Close").click()
    visitor.page.get_by_role("button", name="Duplicate…").click()
    payload = visitor.page.get_by_role("dialog").get_by_label("Payload")
    submit(visitor.page).click()
    expect(visitor.page.get_by_role("alert")).to_contain_text("Replace each ••• with the secret itself")
    payload.fill('{"user": "ada", "password": "hunter3"}')
    submit(visitor.page).click()
    made = eventually(
        lambda: site.do(lambda: site.operations().jobs.list(JobsRequest(parent=job))).items,
        "the copy is stored",
    )
    stored = site.do(lambda: site.rota.job(made[0].id))
    assert stored.payload["password"] == "hunter3"
    visitor.page.wait_for_url(f"**/jobs/{stored.id}")  # else it opens in the middle of the next test


def test_dialog_closes_when_its_session_ends(visitor: Visitor, site: Site) -> None:
    visitor.errors_expected = True
    enqueue_form(visitor, "left open")
    visitor.context.clear_cookies()
    submit(visitor.page).click()
    visitor.page.get_by_label("Token").fill(site.token("viewer"))
    visitor.page.get_by_role("button", name="Sign in").click()
    visitor.settled()
    expect(visitor.page.locator(".who")).to_contain_text("viewer")
    expect(visitor.page.locator("dialog[open]")).to_have_count(0)
    assert how_many(site, "left open") == 0
    visitor.sign_in(site.token("admin"))
    visitor.open("/settings")


def test_selecting_text_past_the_edge_keeps_the_dialog_open(visitor: Visitor) -> None:
    enqueue_form(visitor, "some long text")
    mouse, field = visitor.page.mouse, visitor.page.get_by_role("dialog").get_by_label("Task")
    box = field.bounding_box()
    assert box is not None
    mouse.move(box["x"] + 60, box["y"] + 10)
    mouse.down()
    mouse.move(5, box["y"] + 10, steps=5)
    mouse.up()
    expect(field).to_have_value("some long text")
    mouse.click(5, box["y"] + 10)
    expect(visitor.page.locator("dialog[open]")).to_have_count(0)


def test_dialog_stays_open_while_its_action_runs(visitor: Visitor, site: Site) -> None:
    job = site.job("cancelled soon")
    visitor.go(f"/jobs/{job}")
    held = HeldRequests(visitor.page, "**/api/admin/jobs/*/cancel")
    visitor.page.get_by_role("button", name="Cancel").click()
    submit(visitor.page).click()
    held.arrived()
    for _ in range(3):
        visitor.page.keyboard.press("Escape")
    visitor.page.mouse.click(5, 300)
    expect(visitor.page.locator("dialog[open]")).to_be_visible()
    held.release()
    expect(visitor.page.get_by_text("Cancelled.", exact=True)).to_be_visible()
    expect(visitor.page.locator("dialog[open]")).to_have_count(0)


def test_bulk_action_reports_its_result_after_escape(visitor: Visitor, site: Site) -> None:
    for _ in range(3):
        site.job("some")
    visitor.go("/jobs?task=some")
    visitor.page.get_by_label("Select all shown jobs").click()
    visitor.page.locator(".bulk").get_by_role("button", name="Cancel 3").click()
    expect(submit(visitor.page)).to_be_enabled()
    held = HeldRequests(visitor.page, "**/api/admin/jobs/bulk")
    submit(visitor.page).click()
    held.arrived()
    visitor.page.keyboard.press("Escape")
    held.release()
    expect(visitor.page.get_by_text("3 jobs cancelled.")).to_be_visible()
    expect(visitor.page.locator(".bulk")).to_have_count(0)


def test_links_open_the_schedule_they_name(visitor: Visitor, site: Site) -> None:
    for tenant in ("acme", "beta"):
        make(site, "report", tenant)
    new = make(site, "new")
    job = site.do(lambda: site.operations().schedules.trigger("report", TenantRequest(tenant="beta")))
    site.do(lambda: site.rota.pause(schedule="report", tenant="beta", reason="a check"))
    visitor.go(f"/jobs/{job.id}")
    visitor.page.get_by_role("link", name="report").click()
    is_report_of(visitor, "beta")
    visitor.go("/gates")
    visitor.page.get_by_role("link", name="Schedule report").click()
    is_report_of(visitor, "beta")
    visitor.go("/")
    fires = visitor.page.get_by_role("table", name="Next runs")
    fires.get_by_role("row").filter(has_text="acme").get_by_role("link").click()
    is_report_of(visitor, "acme")
    visitor.page.keyboard.press("Control+k")
    visitor.page.get_by_role("combobox").fill("schedule new")
    visitor.page.get_by_role("option", name="schedule new", exact=True).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("new")
    assert new.id in visitor.page.url
    visitor.go(f"/jobs/{site.do(lambda: site.operations().schedules.trigger(new.id, TenantRequest())).id}")
    visitor.page.get_by_role("link", name="new", exact=True).click()
    expect(visitor.page.get_by_role("table", name="Schedules")).to_contain_text("new")


def make(site: Site, name: str, tenant: str = "default") -> Schedule:
    return site.do(
        lambda: site.rota.schedules.create(name=name, task="poll_feed", cron="* * * * *", tenant=tenant)
    )


def is_report_of(visitor: Visitor, tenant: str) -> None:
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("report")
    visitor.settled()
    expect(visitor.page.locator("dl")).to_contain_text([f"Tenant{tenant}"])


def test_sign_in_from_another_tab_is_reported_before_acting(visitor: Visitor, site: Site) -> None:
    visitor.errors_expected = True
    enqueue_form(visitor, "whose")
    visitor.sign_in(site.token("operator"))
    submit(visitor.page).click()
    values = visitor.page.get_by_role("dialog").get_by_role("alert")
    expect(values).to_contain_text("Another tab signed in as token:operator of None#")
    expect(visitor.page.locator(".who")).to_contain_text("operator")
    assert how_many(site, "whose") == 0
    submit(visitor.page).click()
    expect(visitor.page.get_by_role("heading", level=1)).to_contain_text("whose")
    assert how_many(site, "whose") == 1
    visitor.sign_in(site.token("admin"))
    visitor.open("/settings")
