"""PostgreSQL: what is said between processes about new jobs, also by and to other versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from rota.store.postgres.store import PostgresStore
from rota.store.postgres.waker import hint_of
from rota.testing.conformance.factories import T0, new

WITHIN_S = 30.0
MAIL = hint_of("mail")


@pytest.fixture
async def store(migrated_postgres_url: str) -> AsyncIterator[PostgresStore]:
    opened = PostgresStore(migrated_postgres_url)
    await opened.open()
    yield opened
    await opened.close()


async def received(store: PostgresStore, url: str, *statements: str) -> list[int | None]:
    """What a worker on ``store`` learns about ``mail`` after these statements of another program."""
    waker = store.waker()
    found: list[int | None] = []
    async with asyncio.timeout(WITHIN_S):
        await waker.wait(["mail"], WITHIN_S)  # it listens now
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
            for statement in statements:
                await other.execute(statement.encode())
                found.append(await waker.wait(["mail"], WITHIN_S))
    await waker.close()
    return found


async def test_a_program_of_the_previous_version_announces_one_job(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    statements = ("NOTIFY rota_wake, 'mail'", f"NOTIFY rota_wake, '{MAIL}'")
    assert await received(store, migrated_postgres_url, *statements) == [1, 1]


async def test_what_cannot_be_understood_is_a_reason_to_look(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    statements = (f"NOTIFY rota_many, '12 {MAIL}'", f"NOTIFY rota_many, 'some {MAIL}'")
    assert await received(store, migrated_postgres_url, *statements) == [12, None]


async def test_many_jobs_are_announced_as_many_and_in_the_old_way(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as old:
        for channel in ("rota_wake", "rota_many"):
            await old.execute(f"LISTEN {channel}".encode())
        for count in (1, 30, 200):  # alone, as one statement, as a stream
            await asyncio.sleep(0.2)  # the last ones have been announced
            await store.insert([new(queue="mail") for _ in range(count)], T0)
            expected = {("rota_wake", MAIL)} | ({("rota_many", f"{count} {MAIL}")} if count > 1 else set())
            said: set[tuple[str, str]] = set()
            async with asyncio.timeout(WITHIN_S):
                while said != expected:
                    async for notice in old.notifies(timeout=0.1):
                        said.add((notice.channel, notice.payload))


@pytest.mark.parametrize("queue", ["mail", "merger-with-initech", "größe ✓", "q" * 200])
async def test_a_notification_names_no_queue_and_the_server_makes_the_same_hash(
    migrated_postgres_url: str, queue: str
) -> None:
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as other:
        rows = await (await other.execute("SELECT rota.hint_of(%s)", (queue,))).fetchall()
    assert rows == [(hint_of(queue),)] and queue not in hint_of(queue)
