"""``connection=`` on SQLite: a job exists if and only if the caller's own transaction commits."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aiosqlite
import peewee
import pytest
import sqlalchemy
from callers import CursorCaller, PeeweeCaller, django_connection
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota import ConfigError, PayloadError, Rota, SchemaMismatch
from rota.testing import drain


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rota.db"


@pytest.fixture(autouse=True)
def django_allows_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # these tests have one; a program would use a thread


@pytest.fixture
async def app(path: Path) -> AsyncIterator[Rota]:
    app = Rota(f"sqlite:///{path}")

    @app.task
    async def work(n: int) -> int:
        return n

    await app.stats()
    yield app
    await app.close()


class Caller:
    """An open transaction of the caller, in the words of its library."""

    def __init__(self, connection: Any, text: Any = str) -> None:
        self.connection = connection
        self._text = text

    async def execute(self, sql: str) -> None:
        await _now(self.connection.execute(self._text(sql)))

    async def end(self, commit: bool) -> None:
        await _now(self.connection.commit() if commit else self.connection.rollback())


async def _now(answer: Any) -> None:
    if hasattr(answer, "__await__"):
        await answer


@asynccontextmanager
async def by_sqlite3(path: Path) -> AsyncIterator[Caller]:
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = lambda _, row: {"a caller's own rows": row}
        yield Caller(connection)


@asynccontextmanager
async def by_sqlite3_autocommit(path: Path) -> AsyncIterator[Caller]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield Caller(connection)


@asynccontextmanager
async def by_aiosqlite(path: Path) -> AsyncIterator[Caller]:
    async with aiosqlite.connect(path) as connection:
        yield Caller(connection)


@asynccontextmanager
async def by_sqlite3_cursor(path: Path) -> AsyncIterator[CursorCaller]:
    with closing(sqlite3.connect(path)) as connection:
        yield CursorCaller(connection, passed=True)


@asynccontextmanager
async def by_django(path: Path) -> AsyncIterator[CursorCaller]:
    connection = django_connection(ENGINE="django.db.backends.sqlite3", NAME=str(path))
    yield CursorCaller(connection, passed=False)
    connection.close()


@asynccontextmanager
async def by_peewee(path: Path) -> AsyncIterator[PeeweeCaller]:
    database = peewee.SqliteDatabase(str(path))
    with database.connection_context(), database.transaction() as transaction:
        yield PeeweeCaller(database, transaction)


@asynccontextmanager
async def by_session(path: Path) -> AsyncIterator[Caller]:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with Session(engine) as session:
        yield Caller(session, sqlalchemy.text)
    engine.dispose()


@asynccontextmanager
async def by_connection(path: Path) -> AsyncIterator[Caller]:
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        yield Caller(connection, sqlalchemy.text)
    engine.dispose()


@asynccontextmanager
async def by_async_session(path: Path) -> AsyncIterator[Caller]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    async with AsyncSession(engine) as session:
        yield Caller(session, sqlalchemy.text)
    await engine.dispose()


@asynccontextmanager
async def by_async_connection(path: Path) -> AsyncIterator[Caller]:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    async with engine.connect() as connection:
        yield Caller(connection, sqlalchemy.text)
    await engine.dispose()


SYNC = [
    by_sqlite3,
    by_sqlite3_autocommit,
    by_sqlite3_cursor,
    by_django,
    by_peewee,
    by_session,
    by_connection,
]
ASYNC = [by_aiosqlite, by_async_session, by_async_connection]


@pytest.fixture(params=[*SYNC, *ASYNC], ids=lambda by: by.__name__.removeprefix("by_"))
async def caller(request: pytest.FixtureRequest, app: Rota, path: Path) -> AsyncIterator[Caller]:
    async with request.param(path) as caller:
        yield caller


async def test_a_commit_makes_the_job_and_a_worker_runs_it(app: Rota, caller: Caller) -> None:
    async with app.running(poll_s=60, heartbeat_thread=False, upkeep=False):
        job = await app.enqueue("work", {"n": 7}, connection=caller.connection)
        assert (await app.jobs()).items == []
        await caller.end(commit=True)
        assert await job.result(timeout=20) == 7


async def test_after_a_rollback_the_job_never_existed(app: Rota, caller: Caller) -> None:
    await app.enqueue("work", {"n": 7}, key="k", connection=caller.connection)
    await app.enqueue_many("work", [{"n": 8}, {"n": 9}], connection=caller.connection)
    await caller.end(commit=False)
    assert await drain(app) == 0
    assert (await app.jobs()).items == []
    assert (await app.enqueue("work", {"n": 7}, key="k", on_conflict="raise")).state == "queued"


async def test_a_savepoint_that_is_rolled_back_takes_only_its_own_jobs(app: Rota, caller: Caller) -> None:
    outer = await app.enqueue("work", {"n": 1}, connection=caller.connection)
    await caller.execute("SAVEPOINT mine")
    await app.enqueue("work", {"n": 2}, connection=caller.connection)
    await caller.execute("ROLLBACK TO SAVEPOINT mine")
    await caller.end(commit=True)
    assert [job.id for job in (await app.jobs()).items] == [outer.id]


async def test_a_refused_argument_leaves_the_transaction_usable(app: Rota, caller: Caller) -> None:
    with pytest.raises(PayloadError):
        await app.enqueue("work", {"n": "one"}, connection=caller.connection)
    await app.enqueue("work", {"n": 1}, connection=caller.connection)
    await caller.end(commit=True)
    assert (await app.stats())["queued"] == 1


@pytest.mark.parametrize("by", SYNC, ids=lambda by: by.__name__.removeprefix("by_"))
async def test_the_sync_twin_joins_a_sync_transaction(app: Rota, by: Any, path: Path) -> None:
    async with by(path) as caller:
        app.enqueue_sync("work", {"n": 1}, connection=caller.connection)
        app.enqueue_many_sync("work", [{"n": 2}, {"n": 3}], connection=caller.connection)
        await caller.end(commit=True)
    assert (await app.stats())["queued"] == 3


@pytest.mark.parametrize("by", ASYNC, ids=lambda by: by.__name__.removeprefix("by_"))
async def test_an_async_connection_is_refused_by_the_sync_twin(app: Rota, by: Any, path: Path) -> None:
    async with by(path) as caller:
        with pytest.raises(ConfigError, match="enqueue_sync was given an async connection"):
            app.enqueue_sync("work", {"n": 1}, connection=caller.connection)
        with pytest.raises(ConfigError, match="enqueue_many_sync was given an async connection"):
            app.enqueue_many_sync("work", [{"n": 1}], connection=caller.connection)
    assert (await app.stats())["queued"] == 0


async def test_a_connection_without_a_transaction_is_refused(app: Rota, path: Path) -> None:
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as connection,
        pytest.raises(ConfigError, match="BEGIN IMMEDIATE"),
    ):
        await app.enqueue("work", {"n": 1}, connection=connection)
    assert (await app.stats())["queued"] == 0


async def test_a_connection_to_another_database_is_recognised(app: Rota, tmp_path: Path) -> None:
    with (
        closing(sqlite3.connect(tmp_path / "other.db")) as connection,
        pytest.raises(SchemaMismatch, match=r"without rota's tables: connect it to sqlite:.*rota\.db"),
    ):
        await app.enqueue("work", {"n": 1}, connection=connection)
    assert (await app.stats())["queued"] == 0
