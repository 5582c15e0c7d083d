"""Stores and apps for tests of the command line."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rota import Rota


@pytest.fixture(params=("sqlite", "postgres"))
def app_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'rota.db'}"
    url: str = request.getfixturevalue("migrated_postgres_url")
    return url


@pytest.fixture
async def app(app_url: str) -> AsyncIterator[Rota]:
    """An app on each store."""
    app = Rota(app_url)
    yield app
    await app.close()
