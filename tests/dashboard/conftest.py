"""A browser for all tests of this folder, and visitors of a staged shop."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browsing import WITHIN_MS, Visitor, chromium, visiting
from scene import Visit, stage

from admin.sites import Site
from rota.model import Role

# With every test of it: make dashboard. A browser is slow, so the usual run takes each view and each action
# once, on SQLite, and one walk through all views with hostile texts.
WHOLE = bool(os.environ.get("ROTA_DASHBOARD"))
SLOW_FILES = ("test_hostile_addresses", "test_small", "test_lists", "test_keyboard")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    left = [one for one in items if one.path.parent == here and not WHOLE and _is_slow(one)]
    if left:
        items[:] = [one for one in items if one not in left]
        config.hook.pytest_deselected(items=left)


def _is_slow(item: pytest.Item) -> bool:
    is_walk = item.path.stem == "test_hostile" and "runs_in_a_view" not in item.name
    return item.path.stem in SLOW_FILES or "postgres" in item.name or is_walk


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
    """Opens a page as somebody of a role; any trouble fails the test."""
    with ExitStack() as stack:

        def start(
            path: str = "/", role: Role = "admin", tenant: str | None = None, **context: Any
        ) -> Visitor:
            visitor = stack.enter_context(visiting(browser, site, site.token(role, tenant), **context))
            visitor.go(path)
            return visitor

        yield start


@pytest.fixture
def visitor(visit: Visit) -> Visitor:
    return visit()
