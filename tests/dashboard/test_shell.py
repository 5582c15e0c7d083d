"""What stands around every view: landmarks, keys, themes, small screens, roles, news."""

from __future__ import annotations

import re

import pytest
from browsing import VIEWS, Visitor
from scene import Visit

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.parametrize("site", ["sqlite"], indirect=True)  # no store shows here

NAMES = ("Overview", "Jobs", "Queues", "Schedules", "Workers", "Tenants", "Audit", "Settings")
CHANGES = ("Retry", "Cancel", "Delete", "Trigger", "Pause everything", "Resume", "Enqueue job", "Create")
PHONE = {"viewport": {"width": 360, "height": 780}}


def test_the_main_landmark_leads_to_every_view_and_each_says_where_one_is(visitor: Visitor) -> None:
    page = visitor.page
    for name in NAMES:
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()
        visitor.settled()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        assert name in page.title()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_fits_a_small_screen(visit: Visit, theme: str) -> None:
    visitor = visit("/", color_scheme=theme, **PHONE)
    for view in VIEWS:
        visitor.go(view)
        assert visitor.overflow() <= 0, view


def test_every_view_uses_a_wide_screen_without_trouble(visit: Visit) -> None:
    visitor = visit("/", viewport={"width": 2560, "height": 1200})
    for view in VIEWS:
        visitor.go(view)
        assert visitor.overflow() <= 0, view


def test_on_a_small_screen_the_menu_opens_and_closes_by_going_somewhere(visit: Visit) -> None:
    page = visit("/", **PHONE).page
    link = page.get_by_role("link", name="Jobs", exact=True)
    expect(link).to_be_hidden()
    page.get_by_role("button", name="Open menu").click()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    expect(link).to_be_hidden()


def test_two_keys_lead_to_a_view_and_a_slash_to_the_search(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search jobs")).to_be_focused()
    page.keyboard.type("gq")  # typing is not pressing keys
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


def test_the_palette_finds_a_schedule_by_a_part_of_its_name(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search, or jump to").fill("night")
    expect(page.get_by_role("option", name="schedule nightly")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visitor.site.server.url}/schedules/nightly")


def test_a_question_mark_shows_the_keys(visitor: Visitor) -> None:
    visitor.page.keyboard.press("?")
    dialog = visitor.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Queues")
    visitor.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_chosen_theme_is_kept(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_text("Dark", exact=True).click()
    ground = "getComputedStyle(document.querySelector('#main')).backgroundColor"
    assert page.evaluate(ground) == "rgb(17, 23, 21)"
    page.reload()
    visitor.settled()
    assert page.evaluate(ground) == "rgb(17, 23, 21)"


def test_the_day_line_tells_in_words_what_it_shows(visitor: Visitor) -> None:
    line = visitor.page.get_by_role("img", name="The day, twelve hours back and twelve ahead")
    expect(line).to_have_accessible_name(re.compile("7 jobs ended, 4 of them failed.*bulk paused"))


@pytest.mark.parametrize("view", ["/", "/jobs", "/queues", "/schedules", "/workers", "/tenants"])
def test_who_may_only_read_sees_no_button_that_changes_anything(visit: Visit, view: str) -> None:
    page = visit(view, role="viewer").page
    for verb in (
        "Retry",
        "Cancel",
        "Delete",
        "Trigger",
        "Pause everything",
        "Resume",
        "Enqueue job",
        "Create schedule",
    ):
        assert page.get_by_role("button", name=verb).count() == 0, verb
    assert page.get_by_role("switch").count() == 0


def test_who_is_bound_to_a_tenant_sees_that_tenant_alone(visit: Visit) -> None:
    page = visit("/jobs", role="operator", tenant="acme").page
    expect(page.get_by_role("row").filter(has_text="send_receipt")).to_have_count(3)
    expect(page.get_by_role("row").filter(has_text="charge_card")).to_have_count(0)


def test_paused_news_waits_and_comes_when_resumed(visit: Visit) -> None:
    visitor = visit("/jobs")
    page = visitor.page
    page.get_by_role("button", name="Live. Pause updates").click()
    visitor.site.job("brand_new")
    expect(page.get_by_role("button", name="Paused. Resume updates")).to_contain_text("new")
    expect(page.get_by_role("link", name="brand_new")).to_have_count(0)
    page.get_by_role("button", name="Paused. Resume updates").click()
    expect(page.get_by_role("link", name="brand_new")).to_be_visible()
