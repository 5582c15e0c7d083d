"""Takes screenshots of every view, in both themes, from a real server with sample data.

python tools/screenshots.py [FOLDER]       FOLDER is docs/screenshots by default
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright, expect
from sample_data import fill

from rota import Rota
from rota.admin.server import Listen, serving
from rota.model import JobFilter, PageRequest, State

FOLDER = Path(__file__).absolute().parent.parent / "docs" / "screenshots"
WIDE, SMALL = {"width": 1440, "height": 900}, {"width": 360, "height": 740}
VIEWS = {
    "overview": "/",
    "jobs": "/jobs",
    "queues": "/queues",
    "tasks": "/tasks",
    "schedules": "/schedules",
    "schedule": "/schedules/sync_stock?tenant=acme",
    "schedule-edit": "/schedules/new",
    "workers": "/workers",
    "tenants": "/tenants",
    "tenant": "/tenants/acme",
    "limits": "/limits?edit=queue:mail",
    "gates": "/gates",
    "audit": "/audit",
    "doctor": "/doctor",
    "settings": "/settings",
}
SMALL_VIEWS = ("overview", "jobs", "job", "schedules")
LOADING = "#main:not(:has([role=alert])) :is([aria-busy=true], .skeleton-line)"


async def main(folder: Path) -> None:
    app = Rota("sqlite:///shop.db", lease_duration_s=3600)  # long: the sample workers send no heartbeats
    try:
        await app.migrate()
        await fill(app)
        await _screenshot_all(app, folder)
    finally:
        await app.close()


async def _screenshot_all(app: Rota, folder: Path) -> None:
    views = {**VIEWS, "job": f"/jobs/{await _failed_job(app)}"}
    browser_path = os.environ.get("ROTA_CHROMIUM") or shutil.which("chromium")
    async with serving(app, Listen(port=0)) as server, async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            page = await _page(browser, server.url, theme, WIDE)
            await page.screenshot(path=folder / f"signin-{theme}.png")
            await page.goto("about:blank")  # otherwise only the fragment changes and nothing is loaded
            await page.goto(server.link())
            await page.locator("#main").wait_for()
            for name, path in views.items():
                await _screenshot(page, server.url + path, folder / f"{name}-{theme}.png")
            await page.set_viewport_size(SMALL)  # type: ignore[arg-type]
            for name in SMALL_VIEWS:
                await _screenshot(page, server.url + views[name], folder / f"{name}-{theme}-small.png")
            await page.context.close()
        await browser.close()


async def _failed_job(app: Rota) -> str:
    """A job with several attempts to compare."""
    store = await app.stores.get()
    failed = (await store.jobs(JobFilter(states=(State.FAILED,)), PageRequest(limit=50))).items
    return max(failed, key=lambda job: job.attempt).id


async def _page(browser: Browser, url: str, theme: str, size: dict[str, int]) -> Page:
    context = await browser.new_context(
        color_scheme=theme,  # type: ignore[arg-type]
        viewport=size,  # type: ignore[arg-type]
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page = await context.new_page()
    await page.goto(url)
    await page.get_by_role("button", name="Sign in").wait_for()
    return page


async def _screenshot(page: Page, address: str, file: Path) -> None:
    await page.goto(address)
    await page.locator("#main h1").wait_for()
    await expect(page.locator(LOADING)).to_have_count(0, timeout=20_000)
    await page.screenshot(path=file)
    print(file.name)


if __name__ == "__main__":
    chosen = (Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER).absolute()
    chosen.mkdir(parents=True, exist_ok=True)
    # In an empty folder, so that no screenshot shows a path of this machine.
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        asyncio.run(main(chosen))
