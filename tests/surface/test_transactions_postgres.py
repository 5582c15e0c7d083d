"""``connection=`` on PostgreSQL: a job exists if and only if the caller's own transaction commits."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import peewee
import psycopg
import psycopg2
import pytest
import sqlalchemy
from callers import CursorCaller, PeeweeCaller, django_connection
from django.db.utils import ConnectionHandler
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg2.extras import RealDictCursor
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from rota import ConfigError, DuplicateJob, PayloadError, Rota, SchemaMismatch
from rota.store.postgres.waker import hint_of
from rota.testing import drain
from servers import Postgres

MARK = "that is all"


class Caller(Protocol):
    """An open transaction of the caller, in the words of its library."""

    connection: Any

    async def execute(self, sql: str) -> None: ...

    async def end(self, commit: bool) -> None: ...


class PlainCaller:
    def __init__(self, connection: Any) -> None:
        self.connection = connection

    async def execute(self, sql: str) -> None:
        self.connection.execute(sql)

    async def end(self, commit: bool) -> None:
        self.connection.commit() if commit else self.connection.rollback()


class AsyncCaller(PlainCaller):
    async def execute(self, sql: str) -> None:
        await self.connection.execute(sql)

    async def end(self, commit: bool) -> None:
        await (self.connection.commit() if commit else self.connection.rollback())


class AlchemyCaller(PlainCaller):
    async def execute(self, sql: str) -> None:
        self.connection.execute(sqlalchemy.text(sql))


class AlchemyAsyncCaller(AsyncCaller):
    async def execute(self, sql: str) -> None:
        await self.connection.execute(sqlalchemy.text(sql))


class AsyncpgCaller(AsyncCaller):
    def __init__(self, connection: Any, transaction: Any) -> None:
        super().__init__(connection)
        self._transaction = transaction

    async def end(self, commit: bool) -> None:
        await (self._transaction.commit() if commit else self._transaction.rollback())


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url) as connection:
        yield PlainCaller(connection)


@asynccontextmanager
async def by_psycopg_with_rows_of_its_own(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url, row_factory=dict_row) as connection:  # type: ignore[arg-type]
        yield PlainCaller(connection)


@asynccontextmanager
async def by_psycopg_async(url: str) -> AsyncIterator[Caller]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield AsyncCaller(connection)


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[Caller]:
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    yield AsyncpgCaller(connection, transaction)
    await connection.close()


@asynccontextmanager
async def by_asyncpg_pool(url: str) -> AsyncIterator[Caller]:
    async with asyncpg.create_pool(url, min_size=1, max_size=1) as pool, pool.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        yield AsyncpgCaller(connection, transaction)


def alchemy(url: str, driver: str) -> str:
    return url.replace("postgresql:", f"postgresql+{driver}:", 1)


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[Caller]:
    engine = sqlalchemy.create_engine(alchemy(url, "psycopg"))
    with Session(engine) as session:
        yield AlchemyCaller(session)
    engine.dispose()


@asynccontextmanager
async def by_scoped_session(url: str) -> AsyncIterator[Caller]:
    engine = sqlalchemy.create_engine(alchemy(url, "psycopg"))
    session = scoped_session(sessionmaker(engine))
    yield AlchemyCaller(session)
    session.remove()
    engine.dispose()


@asynccontextmanager
async def by_connection(url: str) -> AsyncIterator[Caller]:
    engine = sqlalchemy.create_engine(alchemy(url, "psycopg"))
    with engine.connect() as connection:
        yield AlchemyCaller(connection)
    engine.dispose()


@asynccontextmanager
async def by_async_session(url: str) -> AsyncIterator[Caller]:
    engine = create_async_engine(alchemy(url, "asyncpg"))
    async with AsyncSession(engine) as session:
        yield AlchemyAsyncCaller(session)
    await engine.dispose()


@asynccontextmanager
async def by_async_session_on_psycopg(url: str) -> AsyncIterator[Caller]:
    engine = create_async_engine(alchemy(url, "psycopg"))
    async with AsyncSession(engine) as session:
        yield AlchemyAsyncCaller(session)
    await engine.dispose()


@asynccontextmanager
async def by_async_connection(url: str) -> AsyncIterator[Caller]:
    engine = create_async_engine(alchemy(url, "asyncpg"))
    async with engine.connect() as connection:
        yield AlchemyAsyncCaller(connection)
    await engine.dispose()


@asynccontextmanager
async def by_psycopg_cursor(url: str) -> AsyncIterator[Caller]:
    with psycopg.connect(url, row_factory=dict_row) as connection:  # type: ignore[arg-type]
        yield CursorCaller(connection, passed=True)


@asynccontextmanager
async def by_psycopg2(url: str) -> AsyncIterator[Caller]:
    connection = psycopg2.connect(url, cursor_factory=RealDictCursor)
    yield CursorCaller(connection, passed=False)
    connection.close()


@asynccontextmanager
async def by_psycopg2_cursor(url: str) -> AsyncIterator[Caller]:
    connection = psycopg2.connect(url)
    yield CursorCaller(connection, passed=True)
    connection.close()


@asynccontextmanager
async def by_sqlalchemy_on_psycopg2(url: str) -> AsyncIterator[Caller]:
    engine = sqlalchemy.create_engine(alchemy(url, "psycopg2"))
    with Session(engine) as session:
        yield AlchemyCaller(session)
    engine.dispose()


def parts(url: str) -> dict[str, Any]:
    return dict(conninfo_to_dict(url))


def django_to(url: str) -> Any:
    names = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
    given = {names[name]: value for name, value in parts(url).items() if name in names}
    return django_connection(ENGINE="django.db.backends.postgresql", **given)


@asynccontextmanager
async def by_django(url: str) -> AsyncIterator[Caller]:
    connection = django_to(url)
    yield CursorCaller(connection, passed=False)
    connection.close()


@asynccontextmanager
async def by_django_cursor(url: str) -> AsyncIterator[Caller]:
    connection = django_to(url)
    yield CursorCaller(connection, passed=True)
    connection.close()


@asynccontextmanager
async def by_peewee(url: str) -> AsyncIterator[Caller]:
    given = parts(url)
    database = peewee.PostgresqlDatabase(given.pop("dbname"), **given)
    with database.connection_context(), database.transaction() as transaction:
        yield PeeweeCaller(database, transaction)


SYNC = [
    by_psycopg,
    by_psycopg_with_rows_of_its_own,
    by_psycopg_cursor,
    by_psycopg2,
    by_psycopg2_cursor,
    by_session,
    by_scoped_session,
    by_connection,
    by_sqlalchemy_on_psycopg2,
    by_django,
    by_django_cursor,
    by_peewee,
]
ASYNC = [
    by_psycopg_async,
    by_asyncpg,
    by_asyncpg_pool,
    by_async_session,
    by_async_session_on_psycopg,
    by_async_connection,
]


@pytest.fixture(autouse=True)
def django_allows_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # these tests have one; a program would use a thread


@pytest.fixture
async def app(emptied_postgres_url: str) -> AsyncIterator[Rota]:
    app = Rota(emptied_postgres_url)

    @app.task(queue="mail")
    async def work(n: int, text: str = "") -> int:
        return n

    yield app
    await app.close()


@pytest.fixture(params=[*SYNC, *ASYNC], ids=lambda by: by.__name__.removeprefix("by_"))
async def caller(request: pytest.FixtureRequest, emptied_postgres_url: str) -> AsyncIterator[Caller]:
    opened: AbstractAsyncContextManager[Caller] = request.param(emptied_postgres_url)
    async with opened as caller:
        yield caller


@asynccontextmanager
async def wake_ups(url: str) -> AsyncIterator[Any]:
    """``await received()``: the wake-ups since the last call; a mark of our own ends each batch."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as listener:
        await listener.execute("LISTEN rota_wake")

        async def received() -> list[str]:
            with psycopg.connect(url, autocommit=True) as other:
                other.execute("SELECT pg_notify('rota_wake', %s)", (MARK,))
            queues: list[str] = []
            async for notice in listener.notifies(timeout=20):
                if notice.payload == MARK:
                    return queues
                queues.append(notice.payload)
            raise AssertionError("the mark was not received")

        yield received


async def test_a_commit_makes_the_job_and_wakes_a_worker(
    app: Rota, caller: Caller, emptied_postgres_url: str
) -> None:
    async with wake_ups(emptied_postgres_url) as received:
        work = app.registry.tasks["work"].options(connection=caller.connection)
        job = await work.enqueue(n=7, text="% ? $1 :x '")
        more = await app.enqueue_many("work", [{"n": 8}, {"n": 9}], connection=caller.connection)
        assert (await app.jobs()).items == []
        assert await received() == []
        await caller.end(commit=True)
        assert set(await received()) == {hint_of("mail")}
    assert await drain(app) == 3
    assert [(await one.refresh()).output for one in [job, *more]] == [7, 8, 9]
    assert (await job.refresh()).payload["text"] == "% ? $1 :x '"


async def test_after_a_rollback_the_job_never_existed(
    app: Rota, caller: Caller, emptied_postgres_url: str
) -> None:
    async with wake_ups(emptied_postgres_url) as received:
        await app.enqueue("work", {"n": 7}, key="k", connection=caller.connection)
        await caller.end(commit=False)
        assert await received() == []
    assert (await app.stats())["queued"] == 0
    assert (await app.enqueue("work", {"n": 7}, key="k", on_conflict="raise")).state == "queued"


async def test_a_savepoint_that_is_rolled_back_takes_only_its_own_jobs(
    app: Rota, caller: Caller, emptied_postgres_url: str
) -> None:
    async with wake_ups(emptied_postgres_url) as received:
        await caller.execute("SELECT 1")
        outer = await app.enqueue("work", {"n": 1}, queue="outer", connection=caller.connection)
        await caller.execute("SAVEPOINT mine")
        await app.enqueue("work", {"n": 2}, queue="inner", connection=caller.connection)
        await caller.execute("ROLLBACK TO SAVEPOINT mine")
        await caller.end(commit=True)
        assert await received() == [hint_of("outer")]
    assert [job.id for job in (await app.jobs()).items] == [outer.id]


@pytest.mark.parametrize("by", SYNC, ids=lambda by: by.__name__.removeprefix("by_"))
async def test_the_sync_twin_joins_a_sync_transaction(app: Rota, by: Any, emptied_postgres_url: str) -> None:
    async with by(emptied_postgres_url) as caller:
        app.enqueue_sync("work", {"n": 1}, connection=caller.connection)
        app.enqueue_many_sync("work", [{"n": 2}], connection=caller.connection)
        await caller.end(commit=False)
        app.enqueue_sync("work", {"n": 3}, connection=caller.connection)
        app.enqueue_many_sync("work", [{"n": 4}], connection=caller.connection)
        await caller.end(commit=True)
    assert sorted(job.payload["n"] for job in (await app.jobs()).items) == [3, 4]


@pytest.mark.parametrize("by", [by_psycopg_async, by_asyncpg, by_async_session])
async def test_an_async_connection_is_refused_by_the_sync_twin(
    app: Rota, by: Any, emptied_postgres_url: str
) -> None:
    async with by(emptied_postgres_url) as caller:
        with pytest.raises(ConfigError, match="enqueue_sync was given an async connection: await enqueue"):
            app.enqueue_sync("work", {"n": 1}, connection=caller.connection)
        with pytest.raises(ConfigError, match="enqueue_many_sync was given an async connection"):
            app.enqueue_many_sync("work", [{"n": 1}], connection=caller.connection)
        await caller.end(commit=True)
    assert (await app.jobs()).items == []


async def test_a_connection_of_an_unknown_kind_is_refused_with_the_kinds(app: Rota) -> None:
    for wrong in ("postgresql://…", object(), 7):
        with pytest.raises(
            ConfigError, match=r"accepts .*sqlite3.*psycopg.*asyncpg.*SQLAlchemy.*Django.*Peewee"
        ):
            await app.enqueue("work", {"n": 1}, connection=wrong)
    with pytest.raises(ConfigError, match=r"rota\.enqueue.* in SQL"):
        app.enqueue_many_sync("work", [{"n": 1}], connection=object())


async def test_what_leads_to_no_one_connection_is_refused_with_the_way(
    app: Rota, shared_database: str
) -> None:
    engine = sqlalchemy.create_engine(alchemy(shared_database, "psycopg"))
    async_engine = create_async_engine(alchemy(shared_database, "asyncpg"))
    pool = asyncpg.create_pool(shared_database, min_size=0)
    for wrong, way in [
        (engine, "with engine.begin"),
        (async_engine, "async with engine.begin"),
        (sessionmaker(engine), "with Session.begin"),
        (pool, "pool.acquire"),
        (ConnectionHandler({}), r'connections\["default"\]'),
    ]:
        with pytest.raises(ConfigError, match=way):
            app.enqueue_sync("work", {"n": 1}, connection=wrong)


async def test_a_connection_to_another_kind_of_database_is_refused(app: Rota, tmp_path: Path) -> None:
    said = "of the kind sqlite, but the jobs of this app are in postgresql://"
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, pytest.raises(ConfigError, match=said):
        app.enqueue_sync("work", {"n": 1}, connection=other)
    lite = Rota(f"sqlite:///{tmp_path / 'jobs.db'}")
    async with by_session(app.stores.root().url) as caller:
        with pytest.raises(ConfigError, match=r"of the kind postgresql, but .* in sqlite://"):
            lite.enqueue_sync("work", {"n": 1}, connection=caller.connection)


# --- without the schema ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty_database(postgres_server: Postgres) -> str:
    """A database that rota has never seen."""
    return postgres_server.create_database("rota_unmigrated")


@pytest.mark.parametrize("by", [*SYNC, *ASYNC], ids=lambda by: by.__name__.removeprefix("by_"))
async def test_without_the_schema_the_remedy_is_named_and_the_transaction_stays_usable(
    app: Rota, by: Any, empty_database: str
) -> None:
    async with by(empty_database) as caller:
        with pytest.raises(SchemaMismatch, match="run `rota migrate`; your transaction is as it was"):
            await app.enqueue("work", {"n": 1}, connection=caller.connection)
        with pytest.raises(SchemaMismatch, match="run `rota migrate`"):
            await app.enqueue("work", {"n": 1}, key="k", connection=caller.connection)
        await caller.execute("SELECT 1")
        await caller.end(commit=True)


@pytest.mark.parametrize("by", [*SYNC, *ASYNC], ids=lambda by: by.__name__.removeprefix("by_"))
async def test_a_later_connection_without_the_schema_gets_the_remedy_with_the_drivers_error(
    app: Rota, by: Any, empty_database: str, emptied_postgres_url: str
) -> None:
    async with by_psycopg(emptied_postgres_url) as caller:
        app.enqueue_sync(
            "work", {"n": 1}, connection=caller.connection
        )  # from now on rota does not ask first
    async with by(empty_database) as caller:
        with pytest.raises(SchemaMismatch, match="run `rota migrate`; roll your transaction back") as caught:
            await app.enqueue("work", {"n": 1}, connection=caller.connection)
        assert 'schema "rota" does not exist' in str(caught.value.__cause__)
        await caller.end(commit=False)
        await caller.execute("SELECT 1")


async def test_an_older_schema_without_the_function_is_a_mismatch(app: Rota, empty_database: str) -> None:
    with psycopg.connect(empty_database) as connection:
        connection.execute("CREATE SCHEMA rota")
        connection.execute(
            "CREATE FUNCTION rota.insert_plain(jobs json) RETURNS int LANGUAGE sql AS 'SELECT 1'"
        )
        with pytest.raises(SchemaMismatch, match="an older version"):
            app.enqueue_sync("work", {"n": 1}, connection=connection)
        connection.rollback()


async def test_a_connection_without_a_transaction_is_refused(app: Rota, emptied_postgres_url: str) -> None:
    with psycopg.connect(emptied_postgres_url, autocommit=True) as connection:
        with pytest.raises(ConfigError, match="no open transaction"):
            await app.enqueue("work", {"n": 1}, connection=connection)
        with connection.transaction():
            await app.enqueue("work", {"n": 2}, connection=connection)
    with closing(psycopg2.connect(emptied_postgres_url)) as older:
        older.autocommit = True
        with pytest.raises(ConfigError, match=r"no open transaction.*autocommit = False"):
            app.enqueue_sync("work", {"n": 1}, connection=older)
    given = parts(emptied_postgres_url)
    database = peewee.PostgresqlDatabase(given.pop("dbname"), **given)
    with database.connection_context(), pytest.raises(ConfigError, match=r"database\.atomic\(\)"):
        app.enqueue_sync("work", {"n": 1}, connection=database)
    free = await asyncpg.connect(emptied_postgres_url)
    with pytest.raises(ConfigError, match="no open transaction"):
        await app.enqueue("work", {"n": 3}, connection=free)
    await free.close()
    assert [job.payload["n"] for job in (await app.jobs()).items] == [2]


async def test_a_refused_argument_leaves_the_transaction_usable(app: Rota, caller: Caller) -> None:
    with pytest.raises(PayloadError):
        await app.enqueue("work", {"n": "one"}, connection=caller.connection)
    await app.enqueue("work", {"n": 1}, connection=caller.connection)
    await caller.end(commit=True)
    assert (await app.stats())["queued"] == 1


async def test_a_taken_key_is_refused_inside_the_transaction_and_leaves_it_usable(
    app: Rota, emptied_postgres_url: str
) -> None:
    holder = await app.enqueue("work", {"n": 1}, key="k")
    async with by_psycopg(emptied_postgres_url) as caller:
        with pytest.raises(DuplicateJob) as caught:
            app.enqueue_sync("work", {"n": 2}, key="k", on_conflict="raise", connection=caller.connection)
        same = app.enqueue_sync("work", {"n": 2}, key="k", connection=caller.connection)
        other = app.enqueue_sync("work", {"n": 3}, connection=caller.connection)
        await caller.end(commit=True)
    assert (caught.value.job_id, same.id) == (holder.id, holder.id)
    assert {job.id for job in (await app.jobs()).items} == {holder.id, other.id}


async def test_a_producer_that_only_joins_transactions_opens_no_connection(emptied_postgres_url: str) -> None:
    app = Rota(emptied_postgres_url)
    with psycopg.connect(emptied_postgres_url) as connection:
        app.enqueue_sync("work", {"n": 1}, delay=60, connection=connection)
        # since our own: those of the test before may still be on their way out, and the server has its own
        count = """
            SELECT count(*) FROM pg_stat_activity AS a, pg_stat_activity AS mine
             WHERE mine.pid = pg_backend_pid() AND a.pid <> mine.pid AND a.datname = mine.datname
               AND a.backend_type = 'client backend' AND a.backend_start >= mine.backend_start
        """
        assert connection.execute(count).fetchone() == (0,)
