"""A cluster on each store that processes can share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from cluster import Cluster


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
async def cluster(shared_url: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    """A cluster on each store."""
    fresh = Cluster(shared_url, tmp_path)
    await fresh.app.migrate()
    yield fresh
    await fresh.close()


@pytest.fixture
async def sqlite_cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    fresh = Cluster(f"sqlite:///{tmp_path / 'rota.db'}", tmp_path)
    await fresh.app.migrate()
    yield fresh
    await fresh.close()


@pytest.fixture
async def postgres_cluster(migrated_postgres_url: str, tmp_path: Path) -> AsyncIterator[Cluster]:
    fresh = Cluster(migrated_postgres_url, tmp_path)
    yield fresh
    await fresh.close()
