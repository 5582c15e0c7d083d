"""Keyboard alone: every view can be reached, every dialog left, and the focus is always visible."""

from __future__ import annotations

import re

from browser_tools import Visitor
from playwright.sync_api import expect
from scene import Visit

MOST_STOPS = 120
# The ring of what has the focus; a label or a search field may wear it for the control inside.
RINGED = """
() => {
  const it = document.activeElement;
  if (it === document.body) return "nowhere";
  const wearers = [it, it.closest("label, .search") ?? it];
  const ringed = wearers.some((one) => getComputedStyle(one).outlineStyle !== "none");
  return ringed ? "" : it.outerHTML.slice(0, 200);
}
"""


def title(visitor: Visitor, name: str) -> None:
    expect(visitor.page.get_by_role("heading", level=1, name=name)).to_be_visible()


def test_two_keys_open_each_view(visit: Visit) -> None:
    visitor = visit("/settings")
    for keys, name in (
        ("gj", "Jobs"),
        ("gq", "Queues"),
        ("gs", "Schedules"),
        ("ga", "Audit"),
        ("gw", "Workers"),
    ):
        for key in keys:
            visitor.page.keyboard.press(key)
        title(visitor, name)


def test_first_tab_stop_skips_to_the_content(visit: Visit) -> None:
    visitor = visit("/audit")
    visitor.page.keyboard.press("Tab")
    expect(visitor.page.get_by_role("link", name="Skip to content")).to_be_focused()
    visitor.page.keyboard.press("Enter")
    visitor.page.keyboard.press("Tab")
    assert visitor.page.evaluate("document.activeElement.closest('main')?.id") == "main"


def test_palette_finds_a_view_by_name(visit: Visit) -> None:
    visitor = visit("/settings")
    visitor.page.keyboard.press("/")
    expect(visitor.page.get_by_role("dialog")).to_be_visible()
    visitor.page.keyboard.type("doctor")
    visitor.page.keyboard.press("Enter")
    title(visitor, "Doctor")


def test_shortcuts_are_listed_and_escape_closes_the_dialog(visit: Visit) -> None:
    visitor = visit("/")
    visitor.page.keyboard.press("?")
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_job_is_selected_and_opened_with_the_keyboard(visit: Visit) -> None:
    visitor = visit("/jobs")
    for key in ("j", "x"):
        visitor.page.keyboard.press(key)
    expect(visitor.page.locator("tr.is-selected")).to_have_count(1)
    visitor.page.keyboard.press("x")
    visitor.page.keyboard.press("Enter")
    visitor.page.wait_for_url(re.compile(r"/jobs/[0-9a-f-]{36}$"))


def test_token_is_created_with_the_keyboard(visit: Visit) -> None:
    visitor = visit("/settings")
    make = visitor.page.get_by_role("button", name="Create token")
    make.focus()
    visitor.page.keyboard.press("Enter")
    dialog = visitor.page.get_by_role("dialog")
    expect(dialog.get_by_label("Name")).to_be_focused()
    visitor.page.keyboard.type("by keyboard")
    visitor.page.keyboard.press("Enter")
    expect(dialog.get_by_role("heading", name="Copy the API token now")).to_be_visible()
    visitor.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(visitor.page.get_by_role("table", name="API tokens")).to_contain_text("by keyboard")


def test_focus_is_visible_at_every_tab_stop(visit: Visit) -> None:
    visitor = visit("/")
    for view in ("/jobs", "/audit", "/settings"):
        visitor.open(view)
        invisible = set()
        for _ in range(MOST_STOPS):
            visitor.page.keyboard.press("Tab")
            if (shown := visitor.page.evaluate(RINGED)) == "nowhere":
                break
            invisible.add(shown)
        assert invisible <= {""}, (view, invisible)
