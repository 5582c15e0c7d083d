"""The shipped stores keep the rules for several processes, killed ones among them."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

pytest.register_assert_rewrite("rota.testing.conformance")

from hosts import PostgresHost, SqliteHost  # noqa: E402

from rota.store.open import open_store  # noqa: E402
from rota.store.protocol import Store  # noqa: E402
from rota.testing.store_conformance import StoreCrashConformance, StoreHost  # noqa: E402
from servers import Postgres  # noqa: E402

_serial = itertools.count(1)


@pytest.fixture(scope="module")
def fragile_server() -> Iterator[Postgres]:
    """A server that the rules may kill: not the one that other tests use."""
    with Postgres() as server:
        yield server


@pytest.fixture(params=["sqlite-file", "postgres"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> StoreHost:
    if request.param == "sqlite-file":
        return SqliteHost(tmp_path / "rota.db")
    server: Postgres = request.getfixturevalue("fragile_server")
    name = f"crash_{next(_serial)}"
    server.create_database(name)
    return PostgresHost(server, name)


@pytest.fixture
async def store(host: StoreHost) -> AsyncIterator[Store]:
    opened = open_store(host.url)
    try:
        await opened.schema.migrate()
        await opened.open()
        yield opened
    finally:
        await opened.close()


class TestStoreCrashes(StoreCrashConformance):
    """Each rule runs on each kind of store that several processes can share."""
