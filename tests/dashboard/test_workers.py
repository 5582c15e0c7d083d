"""Workers: running and lost ones, their slots and jobs."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from rows import cell, row
from scene import Visit
from staff import at_work, silent

from admin.sites import Site
from rota import __version__

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
expect = sync_api.expect


def test_running_worker_shows_slots_and_running_jobs(visit: Visit, site: Site, tmp_path: Path) -> None:
    with at_work(site, tmp_path, "--queues", "halls", "--concurrency", "3") as id:
        visitor = visit("/workers")
        expect(cell(visitor, id, "State")).to_have_text("running")
        expect(row(visitor, id)).to_contain_text(f"{os.uname().nodename} pid")
        expect(cell(visitor, id, "Queues")).to_have_text("halls2 tasks")
        expect(cell(visitor, id, "Version")).to_have_text(__version__)
        expect(cell(visitor, id, "Slots busy")).to_have_text("0 of 3")
        job = site.job("hold", queue="halls", payload={"until": f"{tmp_path / 'enough'}"})
        expect(cell(visitor, id, "Slots busy")).to_have_text("1 of 3")
        expect(cell(visitor, id, "Running")).to_have_text("hold")
        cell(visitor, id, "Running").get_by_role("link").click()
        expect(visitor.page.get_by_role("link", name=re.compile(f"hold.*{job[-6:]}"))).to_be_visible()
        (tmp_path / "enough").touch()
        visitor.open("/workers")
        expect(cell(visitor, id, "Running")).to_have_text("nothing")


def test_worker_appears_and_disappears_live(visit: Visit, site: Site, tmp_path: Path) -> None:
    visitor = visit("/workers")
    expect(visitor.page.get_by_text("No worker is running", exact=True)).to_be_visible()
    with at_work(site, tmp_path) as id:
        expect(row(visitor, id)).to_be_visible()


def test_lost_workers_are_listed_apart(visit: Visit, site: Site) -> None:
    silent(site, "attic-77-aa")
    visitor = visit("/workers")
    page = visitor.page
    lost = page.get_by_role("table", name="Lost workers")
    expect(lost.get_by_role("link", name="attic-77-aa")).to_be_visible()
    expect(page.get_by_role("table", name="Running workers")).to_have_count(0)
    expect(cell(visitor, "attic-77-aa", "State")).to_have_text("lost")
    expect(cell(visitor, "attic-77-aa", "Last seen")).to_contain_text("2 h ago")
    expect(page.get_by_text("No worker is running: no jobs are started.")).to_be_visible()
    lost.get_by_role("link", name="attic-77-aa").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("attic-77-aa")
    expect(page.get_by_text("This worker stopped responding.")).to_be_visible()
    expect(page.get_by_text("0.0.9")).to_be_visible()


def test_workers_are_filtered_by_queue_and_name(visit: Visit, site: Site) -> None:
    silent(site, "attic-77-aa")
    silent(site, "cellar-78-bb")
    visitor = visit("/workers?queue=attic&named=cellar")
    page = visitor.page
    expect(page.locator("table.workers tbody tr")).to_have_count(1)
    page.get_by_label("Find workers by name").fill("")
    expect(page.locator("table.workers tbody tr")).to_have_count(2)
    visitor.open("/workers?queue=mail")
    expect(page.get_by_text("No matching workers")).to_be_visible()
    page.get_by_role("button", name="Show all").first.click()
    expect(page.locator("table.workers tbody tr")).to_have_count(2)


def test_worker_page_lists_jobs_and_tasks(visit: Visit, site: Site, tmp_path: Path) -> None:
    with at_work(site, tmp_path) as id:
        job = site.job("hold", queue="halls", payload={"until": f"{tmp_path / 'enough'}"})
        visitor = visit(f"/workers/{id}")
        jobs = visitor.page.get_by_role("table", name="Running jobs")
        expect(jobs.get_by_role("link")).to_contain_text(job[-6:])
        expect(visitor.page.get_by_role("link", name="quick", exact=True)).to_be_visible()
        (tmp_path / "enough").touch()
        expect(visitor.page.get_by_text("It claims the next due job.")).to_be_visible()
        visitor.open("/workers/missing-1-aa")
        expect(visitor.page.get_by_text("This worker is not listed")).to_be_visible()


def test_worker_page_shows_when_services_succeeded(visit: Visit, site: Site) -> None:
    async def report() -> None:
        store, now = await site.rota.stores.get(), site.rota.clock.now()
        late = {"name": "rescue", "state": "late", "succeeded_at": now - timedelta(minutes=3)}
        services = [
            late,
            {"name": "gates", "state": "ok", "succeeded_at": now},
            {"name": "prune", "state": "ok"},
        ]
        body = msgspec.json.encode({"host": "h", "services": services}).decode()
        await store.put_document("worker", "cellar-78-bb", body, None, now)

    site.do(report)
    visitor = visit("/workers/cellar-78-bb")
    panel = visitor.page.get_by_role("region", name="Services")
    expect(panel).to_contain_text("1 needs attention")
    expect(panel.locator("dd").nth(0)).to_contain_text(re.compile("late.*3 min ago"))
    expect(panel.locator("dd").nth(1)).not_to_contain_text("ok")
    expect(panel.locator("dd").nth(2)).to_have_text("not yet")


def test_tenant_user_learns_that_workers_are_shared(visit: Visit) -> None:
    visitor = visit("/workers", role="operator", tenant="acme")
    expect(visitor.page.get_by_text("Workers cover all tenants")).to_be_visible()
