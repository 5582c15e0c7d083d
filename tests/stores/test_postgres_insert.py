"""PostgreSQL: the roads of an insert, and the caller's own transaction on every driver."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import msgspec
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota.errors import StoreError
from rota.model import Backoff, InsertResult, NewJob
from rota.store.calls import claim
from rota.store.postgres import inserts
from rota.store.postgres.connections import connect
from rota.store.postgres.inserts import STREAM_FROM
from rota.store.postgres.store import PostgresStore
from rota.store.postgres.waker import hint_of
from rota.tasks.handle import job_of
from rota.testing.conformance.factories import T0, new, read, want

Insert = Callable[[Any], Awaitable[Sequence[InsertResult]]]
Drive = Callable[[str, Insert, bool], Awaitable[Sequence[InsertResult]]]


async def psycopg_sync(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    with psycopg.connect(url) as connection:
        told = await insert(connection)
        connection.commit() if commit else connection.rollback()
        return told


async def psycopg_async(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        told = await insert(connection)
        await (connection.commit() if commit else connection.rollback())
        return told


async def asyncpg_connection(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    connection = await asyncpg.connect(url)
    try:
        transaction = connection.transaction()
        await transaction.start()
        told = await insert(connection)
        await (transaction.commit() if commit else transaction.rollback())
        return told
    finally:
        await connection.close()


async def alchemy_connection(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with engine.connect() as connection:
            told = await insert(connection)
            connection.commit() if commit else connection.rollback()
            return told
    finally:
        engine.dispose()


async def alchemy_session(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with Session(engine) as session:
            told = await insert(session)
            session.commit() if commit else session.rollback()
            return told
    finally:
        engine.dispose()


async def alchemy_async_connection(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.connect() as connection:
            told = await insert(connection)
            await (connection.commit() if commit else connection.rollback())
            return told
    finally:
        await engine.dispose()


async def alchemy_async_session(url: str, insert: Insert, commit: bool) -> Sequence[InsertResult]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with AsyncSession(engine) as session:
            told = await insert(session)
            await (session.commit() if commit else session.rollback())
            return told
    finally:
        await engine.dispose()


DRIVERS: list[Drive] = [
    psycopg_sync,
    psycopg_async,
    asyncpg_connection,
    alchemy_connection,
    alchemy_session,
    alchemy_async_connection,
    alchemy_async_session,
]


def inserting(store: PostgresStore, jobs: list[NewJob]) -> Insert:
    async def insert(connection: Any) -> Sequence[InsertResult]:
        told = store.insert_with(connection, jobs, T0)
        return await told if inspect.isawaitable(told) else told

    return insert


@pytest.mark.parametrize("drive", DRIVERS, ids=lambda drive: drive.__name__)
async def test_a_job_joins_the_callers_transaction(
    store: PostgresStore, migrated_postgres_url: str, drive: Drive
) -> None:
    jobs = [new(payload_json='{"a":"\\u0000 ?%s $1"}'), new(key="k"), new(key="k")]
    told = await drive(migrated_postgres_url, inserting(store, jobs), True)
    assert [one.outcome for one in told] == ["created", "created", "existing"]
    assert [one.id for one in told] == [jobs[0].id, jobs[1].id, jobs[1].id]
    stored = await read(store, jobs[0].id)
    assert stored is not None and stored.payload_json == jobs[0].payload_json
    assert stored.created_at == stored.run_at == T0


@pytest.mark.parametrize("drive", DRIVERS, ids=lambda drive: drive.__name__)
async def test_a_rolled_back_job_leaves_no_row_and_wakes_no_one(
    store: PostgresStore, migrated_postgres_url: str, drive: Drive
) -> None:
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as ear:
        await ear.execute("LISTEN rota_wake")
        gone, kept = new(queue="gone", key="k"), new(queue="kept", key="k")
        await drive(migrated_postgres_url, inserting(store, [gone]), False)
        await drive(migrated_postgres_url, inserting(store, [kept]), True)
        heard = [notice.payload async for notice in ear.notifies(timeout=10, stop_after=1)]
    assert heard == [hint_of("kept")]
    assert await read(store, gone.id) is None
    assert await read(store, kept.id) is not None


async def test_without_a_time_the_servers_clock_is_used(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    job, before = new(), await store.clock()
    with psycopg.connect(migrated_postgres_url) as connection:
        store.insert_with(connection, [job], None)
    stored = await read(store, job.id)
    assert stored is not None and before <= stored.created_at <= await store.clock()


async def test_many_single_inserts_share_commits_and_keep_their_answers(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    jobs = [new(key=f"k{n % 50}") for n in range(200)]
    told = await asyncio.gather(*(store.insert([job], T0) for job in jobs))
    assert sum(one.outcome == "created" for (one,) in told) == 50
    holders = {job.key: one.id for job, (one,) in zip(jobs, told, strict=True) if one.outcome == "created"}
    assert all(one.id == holders[job.key] for job, (one,) in zip(jobs, told, strict=True))
    with psycopg.connect(migrated_postgres_url) as connection:
        commits = connection.execute("SELECT count(DISTINCT xmin::text) FROM rota.queued").fetchone()
    assert commits is not None and commits[0] < 25


async def test_a_bad_job_among_shared_commits_harms_only_itself(store: PostgresStore) -> None:
    good = [new() for _ in range(20)]
    bad = new(queue="a\x00b")
    calls = [store.insert([job], T0) for job in [*good[:10], bad, *good[10:]]]
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(told[10], StoreError)
    assert sum(isinstance(one, BaseException) for one in told) == 1
    assert len(await claim(store, want(100), T0)) == 20


async def test_a_caller_that_gives_up_does_not_harm_the_others(store: PostgresStore) -> None:
    jobs = [new() for _ in range(20)]
    tasks = [asyncio.ensure_future(store.insert([job], T0)) for job in jobs]
    await asyncio.sleep(0)
    tasks[5].cancel()
    told = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(one, BaseException) for one in told) == 1
    stored = {job.id for job in await claim(store, want(100), T0)}
    assert stored >= {job.id for n, job in enumerate(jobs) if n != 5}


@pytest.mark.parametrize("look_up_bytes", [0, inserts.LOOK_UP_BYTES])
async def test_a_streamed_batch_that_meets_live_ids_stores_each_job_once(
    store: PostgresStore, look_up_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the running jobs are walked, or looked up because there are many rows that are gone."""
    monkeypatch.setattr(inserts, "LOOK_UP_BYTES", look_up_bytes)
    first = [new(tags=("a", "b"), priority=n % 3) for n in range(200)]
    assert {one.outcome for one in await store.insert(first, T0)} == {"created"}
    running = await claim(store, want(5), T0)
    second = [new() for _ in range(100)]
    told = await store.insert([*first, *second], T0)
    assert [one.outcome for one in told] == ["existing"] * 200 + ["created"] * 100
    assert {one.id for one in told if one.state == "running"} == {job.id for job in running}
    only_running = [*[new() for _ in range(60)], NewJob(id=running[0].id, task="work")]
    told = await store.insert(only_running, T0)
    assert [one.outcome for one in told] == ["created"] * 60 + ["existing"]
    assert len(await claim(store, want(1000), T0)) == 355


HOSTILE = [
    "\\",
    '"',
    "\\N",
    "\\.",
    "{a,b}",
    'x","y',
    "'; --",
    "$1 %s ?",
    "tab\there",
    "line\nbreak",
    "carriage\rreturn",
    "\u2028 \N{GRINNING FACE} é",
    "NULL",
    " ",
]


@pytest.mark.parametrize("copies", [1, 5, STREAM_FROM + 1], ids=["one", "some", "stream"])
async def test_hostile_text_is_stored_as_it_is(store: PostgresStore, copies: int) -> None:
    for nasty in HOSTILE:
        jobs = [
            new(
                task=nasty,
                queue=nasty,
                tenant=nasty,
                tags=(nasty, "b"),
                schedule=nasty,
                payload_json=msgspec.json.encode({nasty: [nasty, n]}).decode(),
            )
            for n in range(copies)
        ]
        assert {one.outcome for one in await store.insert(jobs, T0)} == {"created"}
        for given in (jobs[0], jobs[-1]):
            stored = await read(store, given.id)
            assert stored is not None
            for name in ("task", "queue", "tenant", "tags", "schedule", "payload_json"):
                assert getattr(stored, name) == getattr(given, name)


@pytest.mark.parametrize("copies", [1, 5, STREAM_FROM + 1], ids=["one", "some", "stream"])
async def test_every_road_stores_every_field(store: PostgresStore, copies: int) -> None:
    every = NewJob(
        id=new().id,
        task="t",
        payload_json='{ "spaced":\t1,\n"dup":1,"dup":2}',
        queue="q",
        tenant="n",
        priority=-7,
        run_at=T0 + timedelta(days=1, microseconds=1),
        max_attempts=9,
        timeout=0.1,
        backoff=Backoff(base=0.1, cap=None),
        auto_remove=True,
        tags=("a",),
        parent=new().id,
        origin="job",
        schedule="s",
        scheduled_for=T0 - timedelta(days=400),
    )
    jobs = [msgspec.structs.replace(every, id=new().id) for _ in range(copies)]
    # The last differs from its neighbours, and the road for jobs that are alike is closed to it.
    odd = NewJob(id=new().id, task="odd")
    for batch in (jobs, [msgspec.structs.replace(every, id=new().id), odd]):
        await store.insert(batch, T0)
        for given in batch:
            stored = await read(store, given.id)
            assert stored == job_of(given, T0)


async def test_a_job_alike_that_is_live_already_is_not_stored_again(store: PostgresStore) -> None:
    first = new()
    assert [one.outcome for one in await store.insert([first], T0)] == ["created"]
    assert [one.outcome for one in await store.insert([first, new()], T0)] == ["existing", "created"]
    (running,) = [job for job in await claim(store, want(10), T0) if job.id == first.id]
    (told,) = await store.insert([first], T0)
    assert (told.outcome, told.state) == ("existing", "running")
    assert running.id == first.id


async def test_a_payload_larger_than_a_socket_takes_is_stored(store: PostgresStore) -> None:
    large = new(payload_json=msgspec.json.encode({"a": 'x"\\' * 2_000_000}).decode())
    await store.insert([large], T0)
    stored = await read(store, large.id)
    assert stored is not None and stored.payload_json == large.payload_json


async def test_the_first_insert_after_a_silence_notifies_in_its_own_transaction(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as ear:
        await ear.execute("LISTEN rota_wake")
        await store.insert([new(queue="first")], T0)
        (notice,) = [one async for one in ear.notifies(timeout=10, stop_after=1)]
    assert notice.payload == hint_of("first")
    # Nothing is left to publish in a separate transaction.
    assert store._publisher._task is None and not store._publisher._pending


async def test_later_inserts_are_published_too_once_per_queue(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url, autocommit=True) as ear:
        await ear.execute("LISTEN rota_wake")
        for queue in ("first", "second", "third", "second"):
            await store.insert([new(queue=queue)], T0)
        heard: set[str] = set()
        wanted = {hint_of(queue) for queue in ("first", "second", "third")}
        async for notice in ear.notifies(timeout=10):
            heard.add(notice.payload)
            if heard == wanted:
                break
    assert heard == wanted


async def test_statements_are_kept_by_the_server_only_on_a_direct_connection(
    migrated_postgres_url: str,
) -> None:
    connection = await connect(migrated_postgres_url, "a server")
    kept = b"SELECT count(*) FROM pg_prepared_statements"
    try:
        assert connection.is_direct
        connection.is_direct = False  # as behind a pooler
        assert await connection.ask(b"SELECT $1::int", (1,), often=True) == [(1,)]
        assert await connection.ask(kept, ()) == [(0,)]
        connection.is_direct = True
        for n in range(3):
            assert await connection.ask(b"SELECT $1::int", (n,), often=True) == [(n,)]
        assert await connection.ask(kept, ()) == [(1,)]
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.ask(b"SELECT 1 / $1::int", (0,), often=True)
        assert await connection.ask(b"SELECT 1", ()) == [(1,)]
    finally:
        await connection.close()


async def test_sql_users_enqueue_and_join_their_transaction(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url) as connection:
        row = connection.execute(
            "SELECT rota.enqueue('send', '{\"order\": 42}', queue => 'mail', key => 'r')"
        ).fetchone()
        same = connection.execute("SELECT rota.enqueue('send', key => 'r')").fetchone()
        assert row is not None and row == same
        with pytest.raises(psycopg.errors.UniqueViolation), connection.transaction():
            connection.execute("SELECT rota.enqueue('send', key => 'r', on_conflict => 'raise')")
    job = await read(store, str(row[0]))
    assert job is not None
    assert (job.queue, job.payload, job.origin) == ("mail", {"order": 42}, "sql")
