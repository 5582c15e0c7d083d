"""Every store agrees with the model under random calls.

``ROTA_MACHINE=long`` runs much longer, with different examples each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from machine.store_machine import StoreMachine
from rota.store.open import open_store
from rota.store.protocol import Store

LONG = os.environ.get("ROTA_MACHINE") == "long"


def check_examples(make: Callable[[], Coroutine[Any, Any, Store]], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(make),
        settings=settings(
            max_examples=1000 if LONG else examples,
            stateful_step_count=200 if LONG else steps,
            derandomize=not LONG,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )


@pytest.mark.timeout(0)
def test_sqlite_in_memory_agrees_with_the_model() -> None:
    async def make() -> Store:
        store = open_store("sqlite://:memory:")
        await store.schema.migrate()
        await store.open()
        return store

    check_examples(make, examples=100, steps=40)


@pytest.mark.timeout(0)
def test_sqlite_file_agrees_with_the_model(tmp_path: Path) -> None:
    serial = iter(range(10**9))

    async def make() -> Store:
        store = open_store(f"sqlite:///{tmp_path / f'{next(serial)}.db'}")
        await store.schema.migrate()
        await store.open()
        return store

    check_examples(make, examples=15, steps=30)


@pytest.mark.timeout(0)
def test_postgres_agrees_with_the_model(migrated_postgres_url: str) -> None:
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

        check_examples(make, examples=35, steps=35)
