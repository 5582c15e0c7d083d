"""PostgreSQL: what is said between processes about new jobs, also by and to other versions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from rota.model import Limit, LimitRule, State
from rota.store.calls import claim
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.waker import hint_of
from rota.testing.conformance.factories import T0, change, new, want

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


@pytest.mark.parametrize(
    ("limit", "queue", "is_in_line"), [("queue:q1", "q1", True), ("tenant:acme", "mail", False)]
)
async def test_a_slot_of_a_limit_that_is_free_again_is_announced_where_jobs_wait_for_it(
    store: PostgresStore, migrated_postgres_url: str, limit: str, queue: str, is_in_line: bool
) -> None:
    """The worker that ends the job does not look there: it stops, or serves other queues."""
    await store.put_rules([LimitRule(name=limit, chosen=Limit(running=1))], None)
    await store.insert([new(queue="q1", tenant="acme")], T0)
    (ran,) = await claim(store, want(queues=("q1",)), None)
    await store.insert([new(queue=queue, tenant="acme")], T0)
    assert not await claim(store, want(queues=(queue,)), None)
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as other:
        await other.execute(b"LISTEN rota_wake")
        elsewhere = None if is_in_line else want(queues=("q1",))
        await store.turn([change(ran, State.SUCCEEDED, started_at=T0)], elsewhere, None)
        said: set[str] = set()
        async with asyncio.timeout(WITHIN_S):
            while hint_of(queue) not in said:
                async for notice in other.notifies(timeout=0.1):
                    said.add(notice.payload)
    assert len(await claim(store, want(queues=(queue,)), None)) == 1
