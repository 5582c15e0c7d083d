"""The frame of every view: landmarks, keys, themes, the day line."""

from __future__ import annotations

import re

import pytest
from browser_tools import Visitor

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.parametrize("site", ["sqlite"], indirect=True)  # no store shows here

NAMES = ("Overview", "Jobs", "Queues", "Schedules", "Workers", "Tenants", "Audit", "Settings")


def test_navigation_opens_every_view_with_its_heading(visitor: Visitor) -> None:
    page = visitor.page
    for name in NAMES:
        page.get_by_role("navigation", name="Main").get_by_role("link", name=name).click()
        visitor.settled()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        assert name in page.title()


def test_two_keys_open_a_view_and_slash_the_search(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search jobs")).to_be_focused()
    page.keyboard.type("gq")  # typing is not pressing keys
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


def test_palette_finds_a_schedule_by_part_of_its_name(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("/")
    page.get_by_role("combobox", name="Search or jump to").fill("night")
    expect(page.get_by_role("option", name="schedule nightly")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{visitor.site.server.url}/schedules/nightly")


def test_chosen_theme_is_kept(visitor: Visitor) -> None:
    page = visitor.page
    page.get_by_text("Dark", exact=True).click()
    ground = "getComputedStyle(document.querySelector('#main')).backgroundColor"
    assert page.evaluate(ground) == "rgb(17, 23, 21)"
    page.reload()
    visitor.settled()
    assert page.evaluate(ground) == "rgb(17, 23, 21)"


def test_day_line_has_a_text_alternative(visitor: Visitor) -> None:
    line = visitor.page.get_by_role("img", name="Twelve hours back and twelve ahead")
    expect(line).to_have_accessible_name(re.compile("7 jobs finished, 4 of them failed.*bulk paused"))
