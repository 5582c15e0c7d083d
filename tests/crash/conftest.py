"""A site for each store that processes can share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from attack import Site


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.crash)


@pytest.fixture(params=("sqlite", "postgres"))
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'rota.db'}"
    url: str = request.getfixturevalue("migrated_postgres_url")
    return url


@pytest.fixture
async def site(shared_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    """On each store."""
    made = Site(shared_url, tmp_path)
    await made.app.migrate()
    yield made
    await made.close()


@pytest.fixture
async def sqlite_site(tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(f"sqlite:///{tmp_path / 'rota.db'}", tmp_path)
    await made.app.migrate()
    yield made
    await made.close()


@pytest.fixture
async def postgres_site(migrated_postgres_url: str, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(migrated_postgres_url, tmp_path)
    yield made
    await made.close()
