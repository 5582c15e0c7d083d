"""A real browser on a real server, and what it must never see: errors, CSP reports, foreign requests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from admin.sites import Site, eventually

VIEWS = (
    "/",
    "/jobs",
    "/queues",
    "/tasks",
    "/schedules",
    "/schedules/new",
    "/calendars",
    "/workers",
    "/tenants",
    "/limits",
    "/gates",
    "/audit",
    "/doctor",
    "/settings",
)
WATCH = """
window.__seen = [];
addEventListener("securitypolicyviolation", (e) => __seen.push(`${e.violatedDirective} ${e.sample}`));
"""
# What is still loading; beside an error, nothing is.
LOADING = "#main:not(:has([role=alert])) :is([aria-busy=true], .skeleton-line)"
FRAMES = "async () => { for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame); }"
# As a link does; then some frames, so that the last view is gone.
GO = f"""
async (to) => {{
  history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
  await ({FRAMES})();
}}
"""
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# What can be seen and lies beyond the window, unless something cuts or scrolls it there.
OUTSIDE = """
() => {
  const edge = document.documentElement.clientWidth;
  const isCut = (one) => {
    for (let up = one.parentElement; up !== document.body; up = up.parentElement)
      if (getComputedStyle(up).overflowX !== "visible") return true;
    return false;
  };
  const isOut = (one) => {
    const box = one.getBoundingClientRect();
    return box.width && box.height && (box.right > edge + 1 || box.left < -1) && one.checkVisibility();
  };
  const all = [...document.querySelectorAll("body > * *:not(.skip)")];
  return all.filter((one) => isOut(one) && !isCut(one)).slice(0, 5).map((one) => one.outerHTML.slice(0, 160));
}
"""
WIDTHS = (360, 768, 1024, 1440, 2560)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHROMIUM = os.environ.get("ROTA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
WITHIN_MS = 20_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; the test is left out by name if there is none."""
    if CHROMIUM is None:
        pytest.skip("needs a browser: apt install chromium, or name one in ROTA_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


# What the page keeps when its form signs in; once, so that a sign-out stays one.
KEEP_PROOF = """(() => {
  const proof = "%s";
  if (location.protocol === "about:" || localStorage.getItem("test-proof") === proof) return;
  localStorage.setItem("test-proof", proof);
  localStorage.setItem("rota-session:", proof);
})();"""


class Visitor:
    """A user of the dashboard. ``problems`` collects what must not happen."""

    def __init__(self, context: BrowserContext, site: Site) -> None:
        self.site, self.context = site, context
        self.host = site.host
        self.problems: list[str] = []
        self.errors_expected = False  # the browser logs each one on its console
        context.add_init_script(WATCH)
        self.page = context.new_page()
        self.page.set_default_timeout(WITHIN_MS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if self.errors_expected and "Failed to load resource" in message.text:
            return
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text} ({self.page.url})")

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != self.host:
            self.problems.append(f"request to another host: {request.url}")

    def sign_in(self, token: str) -> None:
        """By a request, which sets the page's cookies; the form has its own tests."""
        answer = self.context.request.post(f"{self.site.server.url}/api/session", data={"token": token})
        assert answer.ok, answer.text()
        keep = KEEP_PROOF % answer.json()["csrf"]
        self.context.add_init_script(keep)
        if self.page.url.startswith(self.site.server.url):
            self.page.evaluate(keep)  # as another tab does

    def open(self, path: str) -> None:
        """Load a page, and wait until it shows its data."""
        self.page.goto(self.site.server.url + path)
        self.settled()

    def go(self, path: str) -> None:
        """The same without loading the page, as a link does."""
        self.page.evaluate(GO, path)
        self.settled()

    def resize(self, width: int) -> None:
        """Set another width, and wait until everything is drawn again."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.evaluate(FRAMES)

    def settled(self) -> None:
        """Wait until the view shows its data or an error."""
        self.page.locator("#main h1").wait_for()
        expect(self.page.locator(LOADING)).to_have_count(0, timeout=WITHIN_MS)

    def is_listening(self) -> None:
        """Wait until the event stream is open and the server watches for changes."""
        self.page.get_by_role("button", name="Live. Pause live updates").wait_for()
        feed = self.site.server.admin.events.feed
        eventually(lambda: feed.listeners and feed.passes, "the server watches for changes")

    def ignore_failed_requests(self) -> None:
        """Drop what the browser itself logs about failed requests."""
        self.problems = [one for one in self.problems if "Failed to load resource" not in one]

    def reports(self) -> list[str]:
        """What the content security policy stopped since the page was loaded."""
        found: list[str] = self.page.evaluate("window.__seen")
        return found

    def assert_no_problems(self) -> None:
        problems = [*self.problems, *self.reports()]
        assert not problems, "\n".join(problems)

    def ran(self) -> bool:
        """Whether a stored text ran as a program."""
        return self.page.evaluate("window.__xss") is not None

    def overflow(self) -> int:
        """By how many pixels the page is wider than its window."""
        found: int = self.page.evaluate(WIDER)
        return found

    def outside(self) -> list[str]:
        """What can be seen and lies beyond the window."""
        found: list[str] = self.page.evaluate(OUTSIDE)
        return found


@contextmanager
def visiting(
    browser: Browser, site: Site, token: str, path: str = "/settings", **context: Any
) -> Iterator[Visitor]:
    """Signed in with the token, at the path; fails if there were problems by the end."""
    made = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **context})
    try:
        visitor = Visitor(made, site)
        visitor.sign_in(token)
        visitor.open(path)
        visitor.is_listening()
        yield visitor
        visitor.assert_no_problems()
    finally:
        made.close()
