"""A browser for all tests of this folder, and visitors of a staged shop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browsing import WITHIN_MS, Visitor, chromium, visiting
from scene import Visit, stage

from admin.sites import Site
from rota.model import Role


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
