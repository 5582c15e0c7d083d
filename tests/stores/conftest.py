"""The store of the tests in this folder, unless a file has one of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from rota.store.postgres.store import PostgresStore


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(migrated_postgres_url)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def admin(migrated_postgres_url: str) -> AsyncIterator[psycopg.Connection]:
    """A connection to the store's database."""
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        yield connection
