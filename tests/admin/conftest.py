"""Sites: a server per test, on SQLite or on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sites import Site, Sites

from rota.testing import FakeClock


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[Sites]:
    """Starts servers, and stops them when the test is over."""
    started: list[Site] = []

    def start(url: str | None = None, **given: Any) -> Site:
        started.append(Site(url or f"sqlite:///{tmp_path / 'rota.db'}", **given))
        return started[-1]

    yield start
    for site in started:
        site.close()


@pytest.fixture
def site(sites: Sites) -> Site:
    return sites()


@pytest.fixture(params=["sqlite", "postgres"])
def each_site(request: pytest.FixtureRequest, sites: Sites) -> Site:
    """A site on each store."""
    return sites(request.getfixturevalue("migrated_postgres_url") if request.param == "postgres" else None)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def timed(sites: Sites, clock: FakeClock) -> Site:
    return sites(clock=clock)
