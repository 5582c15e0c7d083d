"""From 360 to 2560 pixels, in both themes: no overflow, and nothing serious for axe."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from browser_tools import THEMES, VIEWS, WIDTHS, Visitor, visiting
from playwright.sync_api import Browser, expect
from scene import stage

from admin.sites import Site

SERIOUS = ("serious", "critical")
RUN_AXE = """
async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const shown = (node) => `${node.target}: ${node.failureSummary}`;
  return violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 5).map(shown) }));
}
"""
NAMELESS = "document.getElementById('main').append(document.createElement('button'))"
NO_MORE = "document.querySelector('#main > button').remove()"


class Door(NamedTuple):
    """A dialog: the page it is opened from, and what is pressed there; a key, if it is a single letter."""

    path: str
    presses: tuple[str, ...]


DIALOGS = (
    Door("/", ("?",)),
    Door("/", ("/",)),
    Door("/jobs", ("Enqueue job",)),
    Door("/jobs", ("Copy as",)),
    Door("/jobs?state=failed", ("j", "x", "Retry 1")),
    Door("/jobs?state=succeeded", ("j", "x", "Delete 1")),
    Door("/jobs?task=charge_card", ("Save this view",)),
    Door("{failed}", ("Retry with edits…",)),
    Door("{failed}", ("Delete",)),
    Door("{queued}", ("Move",)),
    Door("{queued}", ("Cancel",)),
    Door("/queues", ("Pause mail",)),
    Door("/gates", ("Pause…",)),
    Door("/gates", ("Pause everything",)),
    Door("/schedules/nightly", ("Backfill",)),
    Door("/schedules/nightly", ("Disable",)),
    Door("/schedules/nightly", ("Delete",)),
    Door("/calendars", ("Create calendar",)),
    Door("/limits", ("Set a limit",)),
    Door("/limits?edit=queue:mail", ("Remove limit",)),
    Door("/tenants/globex", ("Edit settings",)),
    Door("/settings", ("Create token",)),
    Door("/settings", ("Create user",)),
    Door("/audit", ("queue.pause",)),
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = stage(f"sqlite:///{tmp_path_factory.mktemp('accessibility') / 'rota.db'}")
    site.user("a.person.with.a.very.long.name@example.com", "a long enough sentence")
    site.job("a_task_whose_name_goes_on_and_on." * 5, queue="q" * 100, payload={"text": "x" * 500})
    site.do(lambda: put_rules(site))
    yield site
    site.close()


async def put_rules(site: Site) -> None:
    await site.rota.limits.set("queue:mail", running=2, rate="100/m")
    await site.rota.limits.set("key:account:*", running=1)
    await site.rota.tenants.set(
        "globex", weight=3, waiting=1, schedules=5, budget="0.01/day", budget_alert=0.5
    )


def jobs(site: Site) -> dict[str, str]:
    """The page of a job of each state."""
    found = site.get("/api/admin/jobs?limit=200", token=site.token()).json["items"]
    return {job["state"]: f"/jobs/{job['id']}" for job in found}


def everything(site: Site) -> list[str]:
    """Each view, and a page of each thing."""
    return [
        *VIEWS,
        *jobs(site).values(),
        "/queues/mail",
        "/limits?edit=queue:mail",
        "/tenants/globex",
        "/schedules/nightly",
        "/schedules/nightly/edit",
        "/workers/missing",
        "/lost",
    ]


@pytest.mark.timeout(300)
def test_no_view_overflows_its_window(browser: Browser, shop: Site) -> None:
    found = {}
    with visiting(browser, shop, shop.token(), reduced_motion="reduce") as visitor:
        for view in everything(shop):
            visitor.go(view)
            for theme in THEMES:
                visitor.page.emulate_media(color_scheme=theme)
                for width in WIDTHS:
                    visitor.resize(width)
                    if visitor.overflow() > 0 or visitor.outside():
                        found[view, theme, width] = visitor.outside()
    assert found == {}


def test_rows_become_labelled_cards_on_a_small_screen(browser: Browser, shop: Site) -> None:
    with visiting(
        browser, shop, shop.token(), "/audit?action=queue.pause", viewport={"width": 360, "height": 800}
    ) as visitor:
        table = visitor.page.get_by_role("table", name="Audit log")
        first = table.locator("tbody tr").first
        assert first.evaluate("(row) => getComputedStyle(row).display") == "grid"
        assert first.get_by_role("cell").count() == 5  # still cells of a table, to a screen reader
        label = first.locator("td[data-label=Result]")
        assert "Result" in label.evaluate("(cell) => getComputedStyle(cell, '::before').content")


def test_menu_opens_and_navigates_on_a_small_screen(browser: Browser, shop: Site) -> None:
    with visiting(browser, shop, shop.token(), "/jobs", viewport={"width": 360, "height": 800}) as visitor:
        menu = visitor.page.get_by_role("navigation", name="Main")
        expect(menu).to_be_hidden()
        visitor.page.get_by_role("button", name="Open menu").click()
        menu.get_by_role("link", name="Settings").click()
        expect(visitor.page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
        expect(menu).to_be_hidden()


@pytest.fixture
def examined(browser: Browser, shop: Site) -> Iterator[Visitor]:
    """A page that axe looks at; it must see a planted fault."""
    script = _axe().read_text()
    with visiting(browser, shop, shop.token(), "/lost", reduced_motion="reduce") as visitor:
        visitor.page.evaluate(script)  # by the debugger: the page's own policy would not let it in
        visitor.page.evaluate(NAMELESS)
        assert [one["id"] for one in _serious(visitor)] == ["button-name"]
        visitor.page.evaluate(NO_MORE)
        yield visitor


@pytest.mark.timeout(300)
def test_axe_finds_nothing_serious_in_any_view(examined: Visitor, shop: Site) -> None:
    found = {}
    for view in everything(shop):
        examined.go(view)
        found |= _faults(examined, view)
    assert found == {}


@pytest.mark.timeout(300)
def test_axe_finds_nothing_serious_in_any_dialog(examined: Visitor, shop: Site) -> None:
    found, known = {}, jobs(shop)
    for door in DIALOGS:
        examined.go(door.path.format(**known))
        for what in door.presses:
            _press(examined, what)
        expect(examined.page.get_by_role("dialog")).to_be_visible()
        expect(examined.page.locator("dialog .skeleton-line")).to_have_count(0)
        found |= _faults(examined, f"{door.path} {door.presses}")
        examined.page.keyboard.press("Escape")
        expect(examined.page.get_by_role("dialog")).to_have_count(0)
    assert found == {}


def _press(visitor: Visitor, what: str) -> None:
    if len(what) == 1:
        visitor.page.keyboard.press(what)
    else:
        visitor.page.locator("#main").get_by_role("button", name=what, exact=True).first.click()


def _faults(visitor: Visitor, where: str) -> dict[str, Any]:
    """What is serious, in either theme."""
    found = {}
    for theme in THEMES:
        visitor.page.emulate_media(color_scheme=theme)
        if serious := _serious(visitor):
            found[f"{where} {theme}"] = serious
    return found


def _axe() -> Path:
    package = pytest.importorskip("axe_playwright_python", reason="needs pip install axe-playwright-python")
    return Path(package.__file__).with_name("axe.min.js")


def _serious(visitor: Visitor) -> list[Any]:
    return [one for one in visitor.page.evaluate(RUN_AXE) if one["impact"] in SERIOUS]
