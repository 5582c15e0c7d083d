"""From 360 to 2560 pixels, in both themes: nothing sticks out, and no reader or tool is shut out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import VIEWS, Visitor, visiting
from playwright.sync_api import Browser, expect
from scene import stage

from admin.sites import Site

SERIOUS = ("serious", "critical")
RUN_AXE = """
async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const told = (node) => `${node.target}: ${node.failureSummary}`;
  return violations.map(({ id, impact, nodes }) => ({ id, impact, nodes: nodes.slice(0, 5).map(told) }));
}
"""
NAMELESS = "document.getElementById('main').append(document.createElement('button'))"
NO_MORE = "document.querySelector('#main > button').remove()"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = stage(f"sqlite:///{tmp_path_factory.mktemp('small') / 'rota.db'}")
    site.user("a.person.with.a.very.long.name@example.com", "a long enough sentence")
    site.job("a_task_whose_name_goes_on_and_on." * 5, queue="q" * 100, payload={"text": "x" * 500})
    yield site
    site.close()


def everything(site: Site) -> list[str]:
    """Each view, and a page of each thing."""
    jobs = site.get("/api/admin/jobs?state=failed,succeeded&limit=200", token=site.token()).json["items"]
    ended = {job["state"]: f"/jobs/{job['id']}" for job in jobs}
    return [*VIEWS, *ended.values(), "/queues/mail", "/schedules/nightly", "/schedules/nightly/edit", "/lost"]


@pytest.mark.parametrize("width", [360, 768, 1024, 2560])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_view_is_wider_than_its_window(browser: Browser, shop: Site, width: int, theme: str) -> None:
    size = {"width": width, "height": 800}
    with visiting(browser, shop, shop.token(), viewport=size, color_scheme=theme) as visitor:
        wide = []
        for view in everything(shop):
            visitor.go(view)
            if visitor.overflow() > 0:
                wide.append((view, visitor.overflow()))
        assert wide == []


def test_rows_are_cards_with_labels_on_a_small_screen(browser: Browser, shop: Site) -> None:
    with visiting(browser, shop, shop.token(), viewport={"width": 360, "height": 800}) as visitor:
        visitor.open("/audit?action=queue.pause")
        table = visitor.page.get_by_role("table", name="Audit log")
        first = table.locator("tbody tr").first
        assert first.evaluate("(row) => getComputedStyle(row).display") == "grid"
        assert first.get_by_role("cell").count() == 5  # still cells of a table, to a screen reader
        label = first.locator("td[data-label=Result]")
        assert "Result" in label.evaluate("(cell) => getComputedStyle(cell, '::before').content")


def test_the_menu_opens_and_leads_on_a_small_screen(browser: Browser, shop: Site) -> None:
    with visiting(browser, shop, shop.token(), viewport={"width": 360, "height": 800}) as visitor:
        menu = visitor.page.get_by_role("navigation", name="Main")
        expect(menu).to_be_hidden()
        visitor.page.get_by_role("button", name="Open menu").click()
        menu.get_by_role("link", name="Settings").click()
        expect(visitor.page.get_by_role("heading", level=1, name="Settings")).to_be_visible()
        expect(menu).to_be_hidden()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, shop: Site, theme: str) -> None:
    script = _axe().read_text()
    with visiting(browser, shop, shop.token(), color_scheme=theme, reduced_motion="reduce") as visitor:
        visitor.open("/lost")
        visitor.page.evaluate(script)  # by the debugger: the page's own policy would not let it in
        visitor.page.evaluate(NAMELESS)
        assert [one["id"] for one in _serious(visitor)] == ["button-name"], "axe must see a planted fault"
        visitor.page.evaluate(NO_MORE)
        found = {}
        for view in everything(shop):
            visitor.go(view)
            if serious := _serious(visitor):
                found[view] = serious
        assert found == {}, found


def _axe() -> Path:
    package = pytest.importorskip("axe_playwright_python", reason="needs pip install axe-playwright-python")
    return Path(package.__file__).with_name("axe.min.js")


def _serious(visitor: Visitor) -> list[Any]:
    return [one for one in visitor.page.evaluate(RUN_AXE) if one["impact"] in SERIOUS]
