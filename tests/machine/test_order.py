"""Tenants and keys keep their order among held jobs, whatever held them up."""

from __future__ import annotations

import pytest

from machine.order_run import OrderRun
from machine.runs import LONG, in_memory
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import put_limit

SEEDS = range(600) if LONG else range(25)


@pytest.mark.timeout(0)
async def test_sqlite_keeps_the_order_of_tenants_and_keys() -> None:
    store = await in_memory()
    await put_limit(store, "key:*", running=1)
    for seed in SEEDS:
        await OrderRun(store, seed, some_tasks=True).check()
    await store.close()


@pytest.mark.timeout(0)
async def test_postgres_keeps_the_order_of_tenants_and_keys(migrated_postgres_url: str) -> None:
    store = PostgresStore(migrated_postgres_url)
    await store.open()
    await put_limit(store, "key:*", running=1)
    for seed in SEEDS:
        await OrderRun(store, seed, some_tasks=False).check()
    await store.close()
