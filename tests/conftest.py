"""Fixtures that every folder shares: a PostgreSQL server per test process, and a fresh store of each kind."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import zlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rota.operate import passwords
from rota.store.open import open_store
from rota.store.protocol import Store
from servers import Postgres, in_memory

if "PYTEST_XDIST_WORKER" not in os.environ and (quick := in_memory()) is not None:
    # Where tmp_path is. One for each checkout: a session removes the folders of all but the last three.
    root = quick / f"rota-tests-{zlib.crc32(__file__.encode()):x}"
    root.mkdir(exist_ok=True)
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(root))

# A shell's background job ignores Ctrl-C, and so would every program the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

passwords.CURRENT = passwords.Parameters(16, 8, 1)  # the real cost is for attackers, not for the suite

STORES = ("sqlite-memory", "sqlite-file", "postgres")
TEMPLATE = "rota_template"

_serial = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest as one file begins first, so that two processes end at about the same time."""
    items.sort(key=lambda item: item.path.name != "test_docs.py")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A real server for this test process; each worker of pytest-xdist has its own."""
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_template(postgres_server: Postgres) -> str:
    """The name of a database with rota's schema, to be copied and never written to."""
    url = postgres_server.create_database(TEMPLATE)

    async def migrate() -> None:
        store = open_store(url)
        try:
            await store.schema.migrate()
        finally:
            await store.close()

    with ThreadPoolExecutor(1) as pool:  # a browser's event loop may run in this thread
        pool.submit(asyncio.run, migrate()).result()
    return TEMPLATE


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> Iterator[str]:
    """A fresh database without rota's schema."""
    name = f"fresh_{next(_serial)}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture
def migrated_postgres_url(postgres_server: Postgres, migrated_template: str) -> Iterator[str]:
    """A fresh database with rota's schema."""
    name = f"migrated_{next(_serial)}"
    yield postgres_server.create_database(name, migrated_template)
    postgres_server.drop_database(name)


@pytest.fixture(params=STORES)
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a fresh store of each kind."""
    if request.param == "sqlite-memory":
        return "sqlite://:memory:"
    if request.param == "sqlite-file":
        return f"sqlite:///{tmp_path / 'rota.db'}"
    url: str = request.getfixturevalue("migrated_postgres_url")
    return url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """A fresh store of each kind, migrated and open."""
    opened = open_store(store_url)
    try:
        await opened.schema.migrate()
        await opened.open()
        yield opened
    finally:
        await opened.close()


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own ROTA_* settings must not steer a test."""
    for name in list(os.environ):
        if (name.startswith("ROTA_") and name != "ROTA_MACHINE") or name == "DATABASE_URL":
            monkeypatch.delenv(name)
