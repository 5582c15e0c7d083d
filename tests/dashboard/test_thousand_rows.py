"""A thousand live rows: only changed rows render again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from scene import Visit
from staff import worked_off

from admin.sites import Site
from rota.core.ids import uuid7
from rota.model import JobFilter, NewJob, PageRequest, State

ROWS, CHANGED = 1000, 10
PAGES = ROWS // 50 - 1
# Which rows anything happened to, and how long the page kept the screen waiting.
WATCH = """
() => {
  window.__touched = new Set();
  window.__frames = [];
  const row = (node) => (node.nodeType === 1 ? node : node.parentElement)?.closest("tr");
  const note = (node) => __touched.add(row(node)?.querySelector("[data-job]")?.dataset.job ?? "the table");
  const all = { subtree: true, childList: true, attributes: true, characterData: true };
  const watch = new MutationObserver((changes) => changes.forEach((one) => note(one.target)));
  watch.observe(document.querySelector("table.jobs"), all);
  let last = performance.now();
  const tick = (now) => (__frames.push(now - last), (last = now), requestAnimationFrame(tick));
  requestAnimationFrame(tick);
}
"""
SEEN = "(n) => document.querySelectorAll('table.jobs .badge.tone-succeeded').length === n"


def many_jobs(site: Site) -> None:
    """Made hours ago, so that no row counts seconds; and more than are shown."""

    async def insert() -> None:
        then = site.rota.clock.now() - timedelta(hours=3, minutes=30)
        first = int(then.timestamp() * 1000)
        new = [NewJob(id=uuid7(first, i), task="quick", queue="halls") for i in range(ROWS)]
        await (await site.operations().store()).insert(new, then)

    site.do(insert)


def ended(site: Site) -> set[str]:
    async def read() -> set[str]:
        where = JobFilter(task="quick", states=(State.SUCCEEDED,))
        page = await (await site.operations().store()).jobs(where, PageRequest(limit=200))
        return {job.id for job in page.items}

    found: set[str] = site.do(read)
    return found


@pytest.mark.timeout(300)
def test_only_changed_rows_render_among_a_thousand(
    visit: Visit, site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many_jobs(site)
    visitor = visit("/jobs?task=quick")
    page, rows = visitor.page, visitor.page.locator("tbody tr")
    for shown in range(1, PAGES + 1):
        page.get_by_role("button", name="Show 50 more").click()
        expect(rows).to_have_count(50 * (shown + 1))
    page.evaluate(WATCH)
    worked_off(site, tmp_path, CHANGED)
    page.wait_for_function(SEEN, arg=CHANGED)
    touched: Any = page.evaluate("[...__touched]")
    assert set(touched) == ended(site)
    expect(rows).to_have_count(ROWS)
    longest, median = page.evaluate(
        "__frames.sort((a, b) => b - a) && [__frames[0], __frames.at(__frames.length / 2)]"
    )
    with capsys.disabled():
        print(f" the longest frame took {longest:.0f} ms, the median {median:.0f} ms ", end="")
