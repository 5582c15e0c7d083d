"""PostgreSQL: migrations, versions, and the address of the store."""

from __future__ import annotations

import asyncio
import sys

import psycopg
import pytest

from rota.errors import ConfigError, SchemaMismatch, StoreUnavailable
from rota.store.postgres.schema import MIGRATIONS
from rota.store.postgres.store import PostgresStore

MIGRATE = """
import asyncio, sys
from rota.store.postgres.store import PostgresStore

async def main():
    store = PostgresStore(sys.argv[1])
    print(",".join(await store.schema.migrate()))
    await store.open()
    await store.close()

asyncio.run(main())
"""
NAMES = [migration.name for migration in MIGRATIONS]


async def test_an_empty_database_is_refused_with_the_remedy(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with pytest.raises(SchemaMismatch, match="rota migrate"):
        await store.open()
    assert await store.schema.pending() == NAMES
    await store.close()


async def test_migrating_twice_does_nothing_the_second_time(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    assert await store.schema.migrate() == NAMES
    assert await store.schema.migrate() == []
    assert await store.schema.pending() == []
    await store.open()
    await store.close()


async def test_several_processes_migrate_at_once_and_each_migration_runs_once(postgres_url: str) -> None:
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", MIGRATE, postgres_url, stdout=asyncio.subprocess.PIPE
        )
        for _ in range(4)
    ]
    applied: list[str] = []
    for child in children:
        out, _ = await child.communicate()
        assert child.returncode == 0
        applied += [name for name in out.decode().strip().split(",") if name]
    assert sorted(applied) == NAMES


async def test_a_newer_schema_is_refused(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO rota.migrations (version, name) VALUES (9999, 'future')")
    store = PostgresStore(migrated_postgres_url)
    with pytest.raises(SchemaMismatch, match="9999"):
        await store.open()
    with pytest.raises(SchemaMismatch, match="upgrade rota"):
        await store.schema.migrate()
    await store.close()


async def test_the_printed_migrations_do_what_migrate_does(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(store.schema.text.encode())
    await store.open()
    assert await store.schema.pending() == []
    await store.close()


async def test_a_schema_that_was_removed_is_named_with_the_remedy(migrated_postgres_url: str) -> None:
    store = PostgresStore(migrated_postgres_url)
    await store.open()
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA rota CASCADE")
    with pytest.raises(SchemaMismatch, match="rota migrate"):
        await store.documents("worker")
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:secret@host/shop",
        "postgres://ann:secret@host:5433/shop?sslmode=require",
        "postgresql://host/shop?user=ann&password=secret",
        "postgresql://ann:secret@host/shop?listen=postgresql%3A//ann%3Asecret%40direct/shop",
    ],
)
def test_a_password_is_never_shown(url: str) -> None:
    assert "secret" not in PostgresStore(url).url
    assert "secret" not in repr(PostgresStore(url))


@pytest.mark.parametrize(
    "url", ["mysql://host/shop", "postgresql://host/shop?nonsense=1", "postgresql://[host"]
)
def test_an_unusable_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError):
        PostgresStore(url)


@pytest.mark.parametrize("url", ["postgresql:///shop", "postgresql:///shop?host=/run/db", "postgres://host"])
def test_an_address_without_a_host_or_a_database_is_left_to_libpq(url: str) -> None:
    assert PostgresStore(url).url == url


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    store = PostgresStore("postgresql://ann:secret@127.0.0.1:1/shop")
    with pytest.raises(StoreUnavailable) as caught:
        await store.open()
    assert "127.0.0.1:1" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    await store.close()
