"""Stored text is hostile: it is shown and never runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from browser_tools import VIEWS, Visitor, visiting
from hostile import CORPUS, fill, is_innocent, worker_id
from playwright.sync_api import Browser

from admin.sites import Site


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def guest(
    request: pytest.FixtureRequest, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Visitor]:
    """An admin's browser on a store whose every field is hostile."""
    site = Site(_url(request, tmp_path_factory.mktemp("hostile")))
    try:
        site.do(lambda: fill(site.rota))
        with visiting(browser, site, site.token("admin")) as guest:
            yield guest
            guest.problems.clear()  # each test has looked at its own
    finally:
        site.close()


def _url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder / 'rota.db'}"
    server = request.getfixturevalue("postgres_server")
    return str(server.create_database("hostile", request.getfixturevalue("migrated_template")))


@pytest.fixture
def visitor(guest: Visitor) -> Visitor:
    guest.problems.clear()
    guest.errors_expected = False
    return guest


@pytest.mark.timeout(300)
def test_no_stored_text_runs_in_any_view(visitor: Visitor) -> None:
    for view in VIEWS:
        visitor.go(view)
        visitor.page.mouse.move(700, 500)  # over rows: what hides in onmouseover
        is_innocent(visitor)


@pytest.mark.timeout(300)
def test_no_stored_text_runs_on_the_page_of_a_job(visitor: Visitor) -> None:
    jobs = visitor.site.get("/api/admin/jobs?limit=200", token=visitor.site.token("admin")).json["items"]
    assert len(jobs) == len(CORPUS)
    for job in jobs:
        visitor.go(f"/jobs/{job['id']}")
        is_innocent(visitor)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["/schedules/{}", "/schedules/{}/edit", "/queues/{}", "/tenants/{}"])
def test_no_stored_text_runs_on_the_page_of_its_name(visitor: Visitor, page: str) -> None:
    visitor.open("/settings")
    visitor.errors_expected = page == "/tenants/{}"  # 422: no tenant can have a control character in its name
    for text in CORPUS:
        if "\n" in text:  # no name may hold one, and no path has it: see test_hostile_addresses
            continue
        name = quote(text, safe="")
        visitor.go(f"{page.format(name)}?tenant={name}")
        is_innocent(visitor)


@pytest.mark.timeout(300)
def test_no_stored_text_runs_on_the_page_of_a_worker(visitor: Visitor) -> None:
    visitor.open("/settings")
    for i, text in enumerate(CORPUS):
        visitor.go(f"/workers/{quote(worker_id(i, text), safe='')}")
        is_innocent(visitor)


def test_hostile_audit_entry_is_shown_in_full_and_does_not_run(visitor: Visitor) -> None:
    visitor.open(f"/audit?actor={quote(CORPUS[2], safe='')}")
    visitor.page.get_by_role("button", name=CORPUS[2], exact=True).first.click()
    dialog = visitor.page.get_by_role("dialog")
    dialog.get_by_role("table").wait_for()
    assert CORPUS[2] in dialog.inner_text()
    is_innocent(visitor)


def test_corpus_is_large_without_duplicates() -> None:
    assert len(CORPUS) >= 50
    assert len(set(CORPUS)) == len(CORPUS)
    assert all(len(text) <= 200 and "\0" not in text for text in CORPUS)
