"""Hostile text in an address, as a filter, a path or a fragment: it is shown and never runs."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote, urlencode

import pytest
from browser_tools import Visitor, visiting
from hostile import CORPUS, fill, is_innocent
from playwright.sync_api import Browser, expect

from admin.sites import Site

ODD_IN_A_PATH = ("{}", "%7B%7D", "%", "a b/c?d=e&f#g%h", "//evil.invalid/a.js")
PARAMETERS = {
    "/jobs": ("state", "task", "queue", "tenant", "tag", "error", "worker", "schedule", "since", "not_task"),
    "/schedules": ("tenant", "task"),
    "/audit": ("actor", "action", "object", "tenant", "result", "since", "until"),
    "/limits": ("edit", "named", "show", "by"),
    "/settings": ("settings",),
}


@pytest.fixture(scope="module")
def guest(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    site = Site(f"sqlite:///{tmp_path_factory.mktemp('hostile') / 'rota.db'}")
    try:
        site.do(lambda: fill(site.rota))
        with visiting(browser, site, site.token("admin")) as guest:
            yield guest
            guest.problems.clear()  # each test has looked at its own
    finally:
        site.close()


@pytest.fixture
def visitor(guest: Visitor) -> Visitor:
    guest.problems.clear()
    guest.errors_expected = True
    return guest


@pytest.mark.timeout(300)
@pytest.mark.parametrize("view", PARAMETERS)
def test_no_text_runs_as_a_parameter(visitor: Visitor, view: str) -> None:
    visitor.open(view)
    for text in CORPUS:
        visitor.go(f"{view}?{urlencode(dict.fromkeys(PARAMETERS[view], text))}")
        is_innocent(visitor)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["/{}", "/jobs/{}#{}"])
def test_no_text_runs_as_a_path_or_a_fragment(visitor: Visitor, page: str) -> None:
    visitor.open("/settings")
    for text in CORPUS:
        visitor.go(page.replace("{}", quote(text, safe="")))
        is_innocent(visitor)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", ["/schedules/{}", "/schedules/{}/edit", "/queues/{}", "/workers/{}"])
def test_page_of_a_hostile_name_is_the_right_one(visitor: Visitor, page: str) -> None:
    """From nothing, as by a link in a mail: the server, too, must read the address right."""
    for text in ODD_IN_A_PATH:
        name = quote(text, safe="")
        visitor.open(f"{page.replace('{}', name)}?tenant={name}")
        expect(visitor.page.get_by_role("heading", level=1)).to_contain_text(text)
        is_innocent(visitor)
