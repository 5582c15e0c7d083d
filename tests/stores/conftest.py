"""The store of the tests in this folder, unless a file has one of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from rota.store.postgres.store import PostgresStore


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(migrated_postgres_url)
    await opened.open()
    yield opened
    await opened.close()
