"""A browser for all tests of this folder, and visitors of a staged shop."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser_tools import WITHIN_MS, Visitor, chromium, visiting
from scene import Visit, stage

from admin.sites import Site
from rota.model import Role

# A browser is slow: the usual run takes the first test of each file, on SQLite, but for the longest files.
# All of them: make dashboard.
WHOLE = bool(os.environ.get("ROTA_DASHBOARD"))
USUAL = 1
LONG = (
    "test_accessibility.py",
    "test_thousand_rows.py",
    "test_hostile_addresses.py",
    "test_column_widths.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if WHOLE:
        return
    taken: Counter[Path] = Counter()
    left = []
    for one in items:
        if one.path.parent != Path(__file__).parent:
            continue
        if "postgres" in one.name or one.path.name in LONG or taken[one.path] >= USUAL:
            left.append(one)
        else:
            taken[one.path] += 1
    items[:] = [one for one in items if one not in left]
    config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="module")
def browser(migrated_template: str) -> Iterator[Any]:
    """Comes after the database's template, which needs this thread's loop: the browser keeps it."""
    with chromium() as browser:
        pytest.importorskip("playwright.sync_api").expect.set_options(timeout=WITHIN_MS)
        yield browser


@pytest.fixture(params=["sqlite", "postgres"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """A fresh shop with work in every state, on each store."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'rota.db'}"
    else:
        url = request.getfixturevalue("migrated_postgres_url")
    staged = stage(url)
    yield staged
    staged.close()


@pytest.fixture
def visit(browser: Any, site: Site) -> Iterator[Visit]:
    """Open a page as a user of a role; any problem fails the test."""
    with ExitStack() as stack:

        def start(
            path: str = "/", role: Role = "admin", tenant: str | None = None, **context: Any
        ) -> Visitor:
            token = site.token(role, tenant)
            return stack.enter_context(visiting(browser, site, token, path, **context))

        yield start


@pytest.fixture
def visitor(visit: Visit) -> Visitor:
    return visit()
