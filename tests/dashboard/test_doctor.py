"""Doctor: problems first with their remedies, then passed checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_tools import visiting
from playwright.sync_api import Browser, expect
from scene import Visit

from admin.sites import Site
from rota.operate.requests import CancelRequest


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Site]:
    """A site where nothing is to be done."""
    site = Site(f"sqlite:///{tmp_path / 'idle.db'}")
    yield site
    site.close()


def test_problems_come_first_with_a_command_to_copy(visit: Visit) -> None:
    visitor = visit("/doctor")
    first = visitor.page.get_by_role("table", name="Findings that need fixing").locator("tbody tr").first
    expect(first).to_contain_text("no worker is running")
    expect(first).to_contain_text("problem")
    expect(first.locator(".command code")).to_have_text("rota worker --app MODULE:APP")
    expect(first.get_by_role("button", name="Copy command")).to_be_visible()
    expect(visitor.page.get_by_role("table", name="Passed checks")).to_contain_text("clocks agree")


def test_all_checks_pass_and_a_second_run_finds_what_broke(browser: Browser, idle: Site) -> None:
    with visiting(browser, idle, idle.token("operator", expires_s=3600)) as visitor:
        visitor.open("/doctor")
        well = visitor.page.get_by_role("heading", name="All checks passed")
        expect(well).to_be_visible()
        id = idle.job("nobody_knows")
        visitor.page.get_by_role("button", name="Run again").click()
        mend = visitor.page.get_by_role("table", name="Findings that need fixing")
        expect(mend).to_contain_text("no worker is running")
        expect(well).to_have_count(0)
        idle.do(lambda: idle.operations().jobs.cancel(id, CancelRequest()))
        visitor.page.get_by_role("button", name="Run again").click()
        expect(well).to_be_visible()
        expect(mend).to_have_count(0)
