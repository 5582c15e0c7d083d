"""Empty stores for the machines, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import psycopg
import pytest

from rota.store.open import open_store
from rota.store.protocol import Store


@pytest.fixture
def emptied_postgres(migrated_postgres_url: str) -> Iterator[Callable[[], Coroutine[Any, Any, Store]]]:
    """Opens the same database again and again, emptied."""
    with psycopg.connect(migrated_postgres_url, autocommit=True) as admin:
        tables = admin.execute(
            "SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ') FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'rota' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            " AND c.relname NOT IN ('migrations', 'audit')"
        ).fetchone()
        assert tables is not None

        async def make() -> Store:
            admin.execute(f"TRUNCATE {tables[0]}".encode())
            store = open_store(migrated_postgres_url)
            await store.open()
            return store

        yield make
