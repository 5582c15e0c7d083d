"""SQLite: jobs that join the caller's own transaction, whatever library made its connection."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rota.errors import ConfigError, SchemaMismatch
from rota.model import ClaimRequest, InsertResult, PageRequest
from rota.store.calls import claim
from rota.store.sql.external import translate
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import EVERYTHING, T0, new


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{tmp_path}/shop.db")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


async def stored(store: SqliteStore) -> int:
    return len((await store.jobs(EVERYTHING, PageRequest())).items)


def created(answer: Any) -> bool:
    return [type(one) for one in answer] == [InsertResult] and answer[0].outcome == "created"


async def test_a_sqlite3_transaction_decides(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert created(store.insert_with(connection, [new()], T0))
        assert await stored(store) == 0
        connection.rollback()
        assert created(store.insert_with(connection, [new()], T0))
        connection.commit()
    assert await stored(store) == 1


async def test_an_explicit_transaction_in_autocommit_mode_decides(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        with pytest.raises(ConfigError, match=r"no open transaction.*BEGIN IMMEDIATE"):
            store.insert_with(connection, [new()], T0)
        connection.execute("BEGIN IMMEDIATE")
        assert created(store.insert_with(connection, [new()], T0))
        connection.execute("ROLLBACK")
    assert await stored(store) == 0


async def test_an_aiosqlite_transaction_decides(store: SqliteStore, path: Path) -> None:
    async with aiosqlite.connect(path) as connection:
        assert created(await store.insert_with(connection, [new()], T0))  # type: ignore[misc]
        await connection.rollback()
        assert created(await store.insert_with(connection, [new()], T0))  # type: ignore[misc]
        await connection.commit()
    assert await stored(store) == 1


async def test_a_sqlalchemy_transaction_decides(store: SqliteStore, path: Path) -> None:
    engine = create_engine(f"sqlite:///{path}")
    with Session(engine) as session:
        session.execute(text("CREATE TABLE orders (id INTEGER)"))
        assert created(store.insert_with(session, [new()], T0))
        session.rollback()
    with engine.begin() as connection:
        assert created(store.insert_with(connection, [new()], T0))
    engine.dispose()
    assert await stored(store) == 1


async def test_an_asynchronous_sqlalchemy_transaction_decides(store: SqliteStore, path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
    async with AsyncSession(engine) as session:
        assert created(await store.insert_with(session, [new()], T0))  # type: ignore[misc]
        await session.rollback()
    async with engine.begin() as connection:
        assert created(await store.insert_with(connection, [new()], T0))  # type: ignore[misc]
    await engine.dispose()
    assert await stored(store) == 1


async def test_keys_are_minded_on_the_callers_connection(store: SqliteStore, path: Path) -> None:
    first = new(key="k")
    second, third = new(key="k", on_conflict="raise"), new(key="k", on_conflict="replace")
    with closing(sqlite3.connect(path)) as connection, connection:
        answers = store.insert_with(connection, [first, first, second, third], T0)
    assert [(one.id, one.outcome) for one in answers] == [  # type: ignore[union-attr]
        (first.id, "created"),
        (first.id, "existing"),
        (first.id, "refused"),
        (first.id, "replaced"),
    ]


async def test_without_a_time_the_databases_clock_is_used(store: SqliteStore, path: Path) -> None:
    before = await store.clock()
    with closing(sqlite3.connect(path)) as connection, connection:
        store.insert_with(connection, [new()], None)
    after = await store.clock()
    (job,) = await claim(store, ClaimRequest(worker="w", limit=1, lease_s=30), after)
    assert before <= job.run_at <= after


async def test_a_connection_to_another_database_is_recognised(store: SqliteStore) -> None:
    with closing(sqlite3.connect(":memory:")) as connection, pytest.raises(SchemaMismatch, match=r"shop\.db"):
        store.insert_with(connection, [new()], T0)
    async with aiosqlite.connect(":memory:") as connection:
        with pytest.raises(SchemaMismatch, match="without rota's tables"):
            await store.insert_with(connection, [new()], T0)  # type: ignore[misc]


async def test_an_unknown_connection_is_refused_with_those_that_are_known(store: SqliteStore) -> None:
    with pytest.raises(ConfigError, match=r"builtins\.dict.*sqlite3.*Django.*Peewee"):
        store.insert_with({}, [new()], T0)


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        ("qmark", "SELECT ?, '?%', ?"),
        ("format", "SELECT %s, '?%%', %s"),
        ("numeric_dollar", "SELECT $1, '?%', $2"),
    ],
)
def test_placeholders_are_translated_outside_of_quotes(style: str, expected: str) -> None:
    assert translate("SELECT ?, '?%', ?", style) == expected
