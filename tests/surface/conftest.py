"""Apps for tests of the surface, on each store. PostgreSQL is emptied between tests, not recreated."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rota import Rota
from rota.testing import FakeClock
from servers import Postgres

SHARED = "rota_surface"
_EMPTY = """
DO $$ DECLARE place regclass; BEGIN
  FOR place IN SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = 'rota'::regnamespace
     AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname NOT IN ('migrations', 'audit')
  LOOP EXECUTE format('DELETE FROM %s', place); END LOOP;
  PERFORM rota.prune_audit('infinity', 1000000);
END $$
"""


@pytest.fixture(scope="session")
def shared_database(postgres_server: Postgres, migrated_template: str) -> str:
    """One database for all tests of this folder: a fresh one for each would cost most of their time."""
    return postgres_server.create_database(SHARED, migrated_template)


@pytest.fixture
def emptied_postgres_url(postgres_server: Postgres, shared_database: str) -> Iterator[str]:
    """A migrated PostgreSQL database without jobs."""
    yield shared_database
    postgres_server.execute(f"SET lock_timeout = '5s'; {_EMPTY}", SHARED)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'rota.db'}"


@pytest.fixture(params=("sqlite", "postgres"))
def app_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty store of each kind."""
    name = "sqlite_url" if request.param == "sqlite" else "emptied_postgres_url"
    url: str = request.getfixturevalue(name)
    return url


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def make_app() -> AsyncIterator[Callable[..., Rota]]:
    """``make_app(url, …)``: an app that is closed at the end; nothing of it may be left over."""
    apps: list[Rota] = []
    before = set(threading.enumerate())

    def make(url: str, **given: Any) -> Rota:
        apps.append(Rota(url, **given))
        return apps[-1]

    yield make
    for app in apps:
        await app.close()
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("rota-")]
    deadline = time.monotonic() + 5
    while left := [
        thread for thread in set(threading.enumerate()) - before if thread.name.startswith("rota-")
    ]:
        assert time.monotonic() < deadline, f"threads left over: {left}"
        await asyncio.sleep(0.002)


@pytest.fixture
def app(make_app: Callable[..., Rota], app_url: str) -> Rota:
    """An app on each store, by the real clock."""
    return make_app(app_url)


@pytest.fixture
def still_app(make_app: Callable[..., Rota], app_url: str, clock: FakeClock) -> Rota:
    """An app on each store, whose time moves only when told to."""
    return make_app(app_url, clock=clock)


@pytest.fixture
def lite(make_app: Callable[..., Rota], clock: FakeClock) -> Rota:
    """An app on SQLite in memory, for what does not depend on the store."""
    return make_app("sqlite://:memory:", clock=clock)


@pytest.fixture
def until() -> Callable[..., Any]:
    """``await until(condition)``: look again and again, and fail if it has not come true in time."""

    async def wait(condition: Callable[[], Any], seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while True:
            answer = condition()
            if await answer if asyncio.iscoroutine(answer) else answer:
                return
            assert time.monotonic() < deadline, "it did not happen in time"
            await asyncio.sleep(0.005)

    return wait
