"""Live updates: they arrive without a click, wait on hold, and survive a broken connection."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser_tools import Visitor, visiting
from playwright.sync_api import Browser, Route, expect
from scene import Visit, stage

from admin.sites import Site
from rota.admin.server import Listen
from rota.operate.sessions import KIND as SESSION

# A tab in the background, as far as a page can know.
SHOW = """
(isShown) => {
  Object.defineProperty(document, "hidden", { get: () => !isShown, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}
"""


def enqueue_elsewhere(site: Site, task: str) -> None:
    """By another process, as a program of theirs would."""
    command = [sys.executable, "-m", "rota", "--url", str(site.rota.settings.url), "jobs", "enqueue", task]
    subprocess.run(command, check=True, capture_output=True, timeout=60)


def live(visitor: Visitor, state: str) -> None:
    expect(visitor.page.get_by_role("button", name=re.compile(f"^{state}\\. "))).to_be_visible()


def row(visitor: Visitor, task: str) -> None:
    expect(visitor.page.get_by_role("link", name=task)).to_be_visible()


def no_row(visitor: Visitor, task: str) -> None:
    expect(visitor.page.get_by_role("link", name=task)).to_have_count(0)


def test_new_job_appears_live_and_waits_while_rows_are_selected(visit: Visit, site: Site) -> None:
    visitor = visit("/jobs")
    enqueue_elsewhere(site, "from_afar")
    row(visitor, "from_afar")
    box = visitor.page.locator("tbody tr").nth(1).get_by_role("checkbox")
    box.click()
    enqueue_elsewhere(site, "while_selected")
    live(visitor, "On hold")
    expect(visitor.page.locator(".live .more")).to_contain_text("new")
    no_row(visitor, "while_selected")
    box.click()
    row(visitor, "while_selected")
    live(visitor, "Live")


def test_hidden_tab_loads_nothing_and_catches_up_when_shown(visit: Visit, site: Site) -> None:
    visitor = visit("/jobs")
    visitor.page.evaluate(SHOW, False)
    live(visitor, "On hold")
    asked: list[str] = []
    visitor.page.on("request", lambda request: asked.append(request.url))
    enqueue_elsewhere(site, "while_away")
    no_row(visitor, "while_away")
    assert asked == []
    visitor.page.evaluate(SHOW, True)
    row(visitor, "while_away")
    live(visitor, "Live")


def test_paused_updates_arrive_when_resumed(visit: Visit) -> None:
    visitor = visit("/jobs")
    visitor.page.get_by_role("button", name="Live. Pause live updates").click()
    visitor.site.job("brand_new")
    resume = visitor.page.get_by_role("button", name="Paused. Resume live updates")
    expect(resume).to_contain_text("new")
    no_row(visitor, "brand_new")
    resume.click()
    row(visitor, "brand_new")


def test_unreachable_server_is_an_error_that_clears_when_it_returns(browser: Browser, tmp_path: Path) -> None:
    """Old data stays, nothing turns into a zero, and no reload is needed."""
    url = f"sqlite:///{tmp_path / 'rota.db'}"
    site = stage(url)
    try:
        with visiting(browser, site, site.token(), "/jobs?state=failed") as visitor:
            visitor.errors_expected = True
            rows = visitor.page.locator("tbody tr")
            expect(rows).to_have_count(4)
            port = site.address[1]
            site.close()
            live(visitor, "Reconnecting")
            visitor.page.get_by_role("link", name="Queued").click()
            expect(visitor.page.get_by_role("alert")).to_contain_text("Can't reach the server")
            expect(rows).to_have_count(0)
            expect(visitor.page.get_by_text("No matching jobs")).to_have_count(0)
            site = Site(url, listen=Listen(port=port))
            site.job("meanwhile")
            live(visitor, "Live")
            row(visitor, "meanwhile")
            expect(visitor.page.get_by_role("alert")).to_have_count(0)
    finally:
        site.close()


def test_ended_session_asks_for_sign_in_on_the_same_page(visit: Visit, site: Site) -> None:
    visitor = visit("/jobs?state=failed")
    visitor.errors_expected = True
    site.do(lambda: end_sessions(site))
    token = visitor.page.get_by_label("Token")
    expect(token).to_be_visible()  # without a click
    expect(visitor.page.locator("tbody tr")).to_have_count(0)
    token.fill(site.token())
    visitor.page.get_by_role("button", name="Sign in").click()
    expect(visitor.page.locator("tbody tr")).to_have_count(4)
    live(visitor, "Live")


async def end_sessions(site: Site) -> None:
    store = await site.operations().store()
    for one in await store.documents(SESSION):
        await store.delete_document(SESSION, one.key)


@pytest.mark.parametrize("path", ["/", "/jobs", "/queues", "/schedules", "/workers", "/tenants", "/gates"])
@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_skeleton_is_shown_while_loading_and_never_a_false_zero(visit: Visit, path: str) -> None:
    """Q10: loading states."""
    visitor = visit("/lost")
    held: list[Route] = []
    visitor.page.route("**/api/admin/**", lambda route: held.append(route))
    visitor.page.evaluate(
        "(to) => { history.pushState(null, '', to); dispatchEvent(new PopStateEvent('popstate')); }", path
    )
    main = visitor.page.locator("#main")
    expect(main.locator(".skeleton-line, [aria-busy=true]").first).to_be_visible()
    assert re.findall(r"\b\d+ (?:failed|queued|running|jobs?|workers?)\b|\b0\b", main.inner_text()) == []
    visitor.page.unroute("**/api/admin/**")
    for one in held:
        one.continue_()
    visitor.settled()
