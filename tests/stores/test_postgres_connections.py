"""PostgreSQL: how many connections there are, at most and at rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from rota.errors import ConfigError
from rota.store.postgres import connections
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.url import parse
from rota.testing.conformance.factories import T0, new
from servers import Postgres

WITHIN_S = 30.0
COUNT = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'rota' AND datname = '{}'"


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(migrated_postgres_url)
    await opened.open()
    yield opened
    await opened.close()


def backends(server: Postgres, url: str) -> int:
    ((count,),) = server.execute(COUNT.format(url.rpartition("/")[2].partition("?")[0]))
    return int(count)


async def until_open(store: PostgresStore, count: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        while store.gauges["connections_open"] != count:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_unused_connections_are_given_back_but_one(
    store: PostgresStore,
    migrated_postgres_url: str,
    postgres_server: Postgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.3)
    await asyncio.gather(*(store.clock() for _ in range(8)))
    assert store.gauges["connections_open"] == 4
    await until_open(store, 1)
    assert store.gauges["connections_idle"] == 1
    async with asyncio.timeout(WITHIN_S):
        while backends(postgres_server, migrated_postgres_url) != 1:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await asyncio.gather(*(store.clock() for _ in range(8)))
    assert store.gauges["connections_open"] > 1
    await until_open(store, 1)


async def test_a_connection_in_use_is_not_given_back(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "IDLE_S", 0.05)
    async with store._connections.borrow() as mine:
        await asyncio.gather(*(store.clock() for _ in range(4)))
        await until_open(store, 2)
        assert await mine.ask(b"SELECT 1", ()) == [(1,)]


async def test_the_url_limits_the_connections(migrated_postgres_url: str, postgres_server: Postgres) -> None:
    store = PostgresStore(f"{migrated_postgres_url}?connections=2")
    await store.open()
    await asyncio.gather(*(store.insert([new()], T0) for _ in range(20)), *(store.clock() for _ in range(20)))
    assert store.gauges["connections_open"] == 2
    assert backends(postgres_server, migrated_postgres_url) == 2
    await store.close()
    assert store.gauges["connections_open"] == 0


async def test_one_connection_is_enough_for_everything(migrated_postgres_url: str) -> None:
    store = PostgresStore(f"{migrated_postgres_url}?connections=1")
    await store.open()
    async with asyncio.timeout(WITHIN_S):
        inserts = [store.insert([new() for _ in range(count)], T0) for count in (1, 5, 200)]
        await asyncio.gather(*inserts, store.check_health(T0), store.clock())
    assert store.gauges["connections_open"] == 1
    await store.close()


async def test_the_listener_is_counted_apart(store: PostgresStore) -> None:
    assert store.gauges["connections_listening"] == 0
    waker = store.waker()
    async with asyncio.timeout(WITHIN_S):
        while not store.gauges["connections_listening"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await waker.close()


@pytest.mark.parametrize("value", ["0", "-1", "1001", "many", "", "1.5", "²"])
def test_a_url_with_a_senseless_number_of_connections_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match="connections="):
        parse(f"postgresql://u:secret@host/db?connections={value}")


def test_our_options_do_not_reach_the_driver() -> None:
    address = parse("postgresql://host/db?connections=7&listen=off&sslmode=require")
    assert (address.connections, address.listen) == (7, None)
    assert address.conninfo == "postgresql://host/db?sslmode=require"
