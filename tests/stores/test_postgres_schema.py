"""PostgreSQL: migrations, versions, and the address of the store."""

from __future__ import annotations

import asyncio
import sys
from datetime import date

import psycopg
import pytest

from rota.errors import ConfigError, SchemaMismatch, StoreUnavailable
from rota.model import RunCounts
from rota.store.calls import claim
from rota.store.postgres import definitions
from rota.store.postgres.definitions import FIRST_FUNCTIONS, FUNCTIONS, PREAMBLE
from rota.store.postgres.schema import MIGRATIONS
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import want

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
NAMES = [*(migration.name for migration in MIGRATIONS), "functions"]


async def test_an_empty_database_is_refused_with_the_remedy(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    with pytest.raises(SchemaMismatch, match="does not have rota's tables yet: run `rota migrate`"):
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


# --- functions are code ---------------------------------------------------------------------------

REPLACED = """
CREATE OR REPLACE FUNCTION rota.free_keys(tenants text[], freed text[], holders uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = rota, pg_temp AS $$ BEGIN END $$
"""
DAMAGE = {
    REPLACED: "function rota.free_keys differs",
    "DROP FUNCTION rota.promote": "function rota.promote is missing",
    "ALTER FUNCTION rota.claim SET enable_seqscan = on": "function rota.claim differs",
    "ALTER FUNCTION rota.settle RESET ALL": "function rota.settle differs",
    "ALTER FUNCTION rota.enqueue SECURITY DEFINER": "function rota.enqueue differs",
    "ALTER FUNCTION rota.promote STABLE": "function rota.promote differs",
    "CREATE FUNCTION rota.turn(n integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'": (
        "function rota.turn is left over"
    ),
    "CREATE FUNCTION rota.claim(n integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'": (
        "function rota.claim is left over"
    ),
    """CREATE FUNCTION rota."Mine"() RETURNS integer LANGUAGE sql AS 'SELECT 1'""": (
        "function rota.Mine is left over"
    ),
    "DROP VIEW rota.jobs": "view rota.jobs is missing",
    "COMMENT ON FUNCTION rota.enqueue IS 'x'": "function rota.enqueue differs",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_what_was_changed_by_hand_is_noticed_and_repaired(
    migrated_postgres_url: str, damage: str
) -> None:
    store = PostgresStore(migrated_postgres_url)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(damage.encode())
    assert await store.schema.pending() == [DAMAGE[damage]]
    with pytest.raises(SchemaMismatch, match=r"rota migrate") as caught:
        await store.open()
    assert DAMAGE[damage] in str(caught.value)
    assert await store.schema.migrate() == [DAMAGE[damage]]
    assert await store.schema.pending() == []
    await store.open()
    await store.close()


async def test_a_procedure_beside_the_functions_does_no_harm(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE PROCEDURE rota.mine() LANGUAGE sql AS 'SELECT 1'")
    store = PostgresStore(migrated_postgres_url)
    assert await store.schema.migrate() == []
    await store.open()
    await store.close()


async def test_a_server_that_quotes_all_names_has_the_same_schema(migrated_postgres_url: str) -> None:
    store = PostgresStore(f"{migrated_postgres_url}?options=-c%20quote_all_identifiers%3Don")
    assert await store.schema.pending() == []
    await store.open()
    await store.close()


async def test_a_view_with_the_same_columns_is_noticed_by_its_definition(migrated_postgres_url: str) -> None:
    store = PostgresStore(migrated_postgres_url)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("CREATE OR REPLACE VIEW rota.jobs AS SELECT * FROM rota.live")
    assert await store.schema.pending() == ["view rota.jobs differs"]
    assert await store.schema.migrate() == ["view rota.jobs differs"]
    assert await store.schema.pending() == []
    await store.close()


@pytest.mark.parametrize(
    ("layout", "difference"),
    [
        ("ALTER TABLE rota.queued DROP COLUMN tags CASCADE", r"rota.queued lacks tags text\[\]\."),
        ("ALTER TABLE rota.schedules ADD COLUMN colour text", r"rota.schedules has colour text\."),
        (
            "ALTER TABLE rota.documents ALTER COLUMN body TYPE jsonb",
            r"rota.documents lacks body json and has body jsonb\.",
        ),
        ("DROP TABLE rota.waiters", r"rota.waiters is missing\."),
    ],
)
async def test_tables_of_another_layout_are_refused_with_what_to_do(
    migrated_postgres_url: str, layout: str, difference: str
) -> None:
    store = PostgresStore(migrated_postgres_url)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(layout.encode())
    for act in (store.open, store.schema.pending, store.schema.migrate):
        with pytest.raises(SchemaMismatch, match=f"{difference}.*DROP SCHEMA rota CASCADE"):
            await act()
    await store.close()


async def test_a_schema_of_the_folded_history_is_refused_with_what_to_do(migrated_postgres_url: str) -> None:
    """Development versions had other tables under the same numbers."""
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("UPDATE rota.migrations SET name = '0001_tables' WHERE version = 1")
    store = PostgresStore(migrated_postgres_url)
    for act in (store.open, store.schema.pending, store.schema.migrate):
        with pytest.raises(SchemaMismatch, match=r"version 1 is 0001_tables, but here it is 0001_jobs"):
            await act()
    await store.close()


async def test_a_database_of_the_first_release_is_brought_up_to_date(postgres_url: str) -> None:
    parts = [PREAMBLE, *(function.sql for function in FIRST_FUNCTIONS)]
    parts += [migration.sql for migration in MIGRATIONS[:4]]
    parts += [function.sql for function in FUNCTIONS if function.name.startswith("count_ended")]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("".join(parts).encode())
        connection.execute(
            "INSERT INTO rota.queued (id, created_at, run_at, task, due) "
            "VALUES (gen_random_uuid(), now(), now(), 'old', true)"
        )
        connection.execute(
            "INSERT INTO rota.done (id, created_at, run_at, started_at, finished_at, task, queue, tenant, "
            "rank, schedule, state, lease_token, attempt, origin, max_attempts, auto_remove) "
            "SELECT gen_random_uuid(), t, t, t, t + interval '2 s', 'old', 'q', 'default', 0, 's', state, 1, "
            "1, 'scheduler', 3, false FROM (SELECT timestamptz '2030-01-01 23:59Z' AS t) AS x, "
            "unnest(ARRAY['failed', 'succeeded']) AS state"
        )
    store = PostgresStore(postgres_url)
    with pytest.raises(SchemaMismatch, match=r"0005_crashes.*rota migrate"):
        await store.open()
    assert (await store.schema.migrate())[0] == "0005_crashes"
    await store.open()
    (job,) = await claim(store, want(), None)
    assert (job.task, job.crashes) == ("old", 0)
    (runs,) = await store.survey(RunCounts([("default", "s")], date(2030, 1, 1)))
    assert (runs.succeeded, runs.failed, runs.total_ms, runs.longest_ms) == (1, 1, 4000.0, 2000.0)
    await store.close()


def test_every_function_pins_its_search_path_and_is_plain_ascii(migrated_postgres_url: str) -> None:
    """ASCII, because digests are compared whatever the encoding of the database is."""
    with psycopg.connect(migrated_postgres_url) as connection:
        rows = connection.execute(
            "SELECT proname, array_to_string(proconfig, ','), prosrc FROM pg_proc"
            " WHERE pronamespace = to_regnamespace('rota')"
        ).fetchall()
    assert len(rows) == len(definitions.FUNCTIONS)
    assert [name for name, config, _ in rows if "search_path=rota, pg_temp" not in (config or "")] == []
    assert [name for name, _, source in rows if not source.isascii()] == []


def test_what_people_see_has_comments(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url) as connection:
        bare = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('rota')"
            " AND relkind IN ('r', 'p', 'v') AND NOT relispartition"
            " AND obj_description(oid, 'pg_class') IS NULL"
        ).fetchall()
        described = connection.execute(
            "SELECT obj_description(to_regproc('rota.enqueue'), 'pg_proc'),"
            " obj_description(to_regnamespace('rota'), 'pg_namespace')"
        ).fetchone()
    assert bare == []
    assert described is not None and all(described)


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


async def test_pending_on_a_read_only_session_compares_what_it_can(migrated_postgres_url: str) -> None:
    store = PostgresStore(f"{migrated_postgres_url}?options=-c%20default_transaction_read_only%3Don")
    try:
        assert await store.schema.pending() == []
    finally:
        await store.close()


async def test_migrations_at_once_succeed_under_repeatable_read(postgres_url: str) -> None:
    url = f"{postgres_url}?options=-c%20default_transaction_isolation%3Drepeatable%5C%20read"
    stores = [PostgresStore(url) for _ in range(4)]
    try:
        changed = await asyncio.gather(*[store.schema.migrate() for store in stores])
    finally:
        for store in stores:
            await store.close()
    assert sorted(map(bool, changed)) == [False, False, False, True]
