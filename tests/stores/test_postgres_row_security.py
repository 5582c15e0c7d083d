"""PostgreSQL: row-level security as a second wall behind ``app.for_tenant``, and the known ways around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from importlib.resources import files
from typing import Any

import psycopg
import pytest
from psycopg import errors

from rota import Rota
from rota.testing import drain

SQL = files("rota.store.postgres").joinpath("row_security.sql").read_text("utf-8")
TABLES = ("queued", "running", "done", "schedules")


@pytest.fixture
async def app(migrated_postgres_url: str) -> AsyncIterator[Rota]:
    app = Rota(migrated_postgres_url)

    @app.task
    async def work(n: int = 0) -> None: ...

    for tenant in ("acme", "other"):
        await app.enqueue("work", {"n": 1}, tenant=tenant)
        await app.schedules.create(name="nightly", task="work", cron="0 3 * * *", tenant=tenant)
    await drain(app)
    for tenant in ("acme", "other"):
        await app.enqueue("work", {"n": 2}, tenant=tenant, key="same")
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        for _ in range(2):  # it can be repeated
            connection.execute(SQL)
        connection.execute(
            "DO $$ BEGIN CREATE ROLE reader LOGIN IN ROLE rota_tenant; "
            "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
    yield app
    await app.close()


@pytest.fixture
def reader(app: Rota, migrated_postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection that reads for one tenant, and for none yet."""
    with psycopg.connect(migrated_postgres_url.replace("//rota@", "//reader@")) as connection:
        yield connection


def seen(reader: psycopg.Connection[Any]) -> dict[str, list[str]]:
    return {
        table: [row[0] for row in reader.execute(f"SELECT tenant FROM rota.{table}")]  # type: ignore[arg-type]
        for table in TABLES
    }


def act_for(reader: psycopg.Connection[Any], tenant: str) -> None:
    reader.execute("SELECT set_config('rota.tenant', %s, true)", (tenant,))


def test_a_reader_sees_the_rows_of_its_tenant(reader: psycopg.Connection[Any]) -> None:
    act_for(reader, "acme")
    assert seen(reader) == {"queued": ["acme"], "running": [], "done": ["acme"], "schedules": ["acme"]}


def test_without_the_setting_there_are_no_rows(reader: psycopg.Connection[Any]) -> None:
    assert seen(reader) == {table: [] for table in TABLES}


def test_the_setting_ends_with_its_transaction_also_on_a_pooled_connection(
    reader: psycopg.Connection[Any],
) -> None:
    act_for(reader, "acme")
    reader.commit()
    left = reader.execute("SELECT current_setting('rota.tenant', true)").fetchone()
    assert left == ("",)  # not NULL: the name is known to the session now
    assert seen(reader) == {table: [] for table in TABLES}
    act_for(reader, "")
    assert seen(reader) == {table: [] for table in TABLES}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM rota.jobs",  # a view reads with the rights of its owner
        "SELECT * FROM rota.live",
        "SELECT * FROM rota.ended",
        "SELECT * FROM rota.done_default",  # a partition has no policies of its own
        "SELECT * FROM rota.payloads",
        "SELECT * FROM rota.attempts",
        "SELECT * FROM rota.keys",
        "SELECT * FROM rota.audit",
        "SELECT * FROM rota.documents",
        "SELECT * FROM rota.tenants",
        "SELECT * FROM rota.limits",
        "SELECT * FROM rota.spending",
        "INSERT INTO rota.keys (tenant, key, job) VALUES ('other', 'same', gen_random_uuid())",
        "INSERT INTO rota.queued SELECT * FROM rota.queued",  # no unique error says what exists
        "UPDATE rota.schedules SET tenant = 'acme'",
        "DELETE FROM rota.done",
    ],
)
def test_everything_else_is_denied(reader: psycopg.Connection[Any], statement: str) -> None:
    act_for(reader, "acme")
    with pytest.raises(errors.InsufficientPrivilege):
        reader.execute(statement)  # type: ignore[arg-type]


def test_sequences_say_nothing(reader: psycopg.Connection[Any]) -> None:
    query = (
        "SELECT count(*) FROM pg_sequences AS s WHERE s.schemaname = 'rota' "
        "AND has_sequence_privilege(format('rota.%I', s.sequencename), 'SELECT, USAGE, UPDATE')"
    )
    assert reader.execute(query).fetchone() == (0,)


def test_no_function_runs_with_the_rights_of_its_owner(reader: psycopg.Connection[Any]) -> None:
    query = "SELECT count(*) FROM pg_proc AS p WHERE p.pronamespace = 'rota'::regnamespace AND p.prosecdef"
    assert reader.execute(query).fetchone() == (0,)


async def test_notifications_name_no_queue_and_no_tenant(app: Rota, migrated_postgres_url: str) -> None:
    url = migrated_postgres_url.replace("//rota@", "//reader@")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("LISTEN rota_wake")
        await app.enqueue("work", {"n": 3}, tenant="other", queue="very-secret")
        async for notice in connection.notifies(timeout=20, stop_after=1):
            assert "secret" not in notice.payload and "other" not in notice.payload


async def test_workers_and_producers_of_another_role_see_all_rows(
    app: Rota, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE runtime LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        connection.execute("GRANT USAGE ON SCHEMA rota TO runtime")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO runtime")
    other = Rota(migrated_postgres_url.replace("//rota@", "//runtime@"))

    @other.task
    async def work(n: int = 0) -> None: ...

    await other.enqueue_many("work", [{"n": n} for n in range(200)], tenant="bulk")  # COPY is refused here
    await drain(other)
    assert (await other.stats())["queued"] == 0
    assert len((await other.jobs(tenant="bulk", limit=200)).items) == 200
    await other.close()
