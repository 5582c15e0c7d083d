"""SQLite: the schema comes by itself, in any number of processes, beside the user's own tables."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from rota.errors import SchemaMismatch
from rota.model import JobFilter, PageRequest, RunCounts, State
from rota.store.sqlite.schema import MIGRATIONS, PREAMBLE
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import EVERYTHING, T0, new

ALL = [migration.name for migration in MIGRATIONS]


async def test_first_use_migrates_without_being_asked(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path}/rota.db")
    assert await store.schema.pending() == ALL
    assert not (tmp_path / "rota.db").exists()
    await store.insert([new()], T0)
    assert list(await store.schema.pending()) == []
    assert list(await store.schema.migrate()) == []
    await store.close()


async def test_migrate_names_what_it_applied(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path}/rota.db")
    assert list(await store.schema.migrate()) == ALL
    assert list(await store.schema.migrate()) == []
    await store.close()


async def test_many_stores_may_migrate_one_file_at_once(tmp_path: Path) -> None:
    stores = [SqliteStore(f"sqlite:///{tmp_path}/rota.db") for _ in range(12)]
    applied = await asyncio.gather(*(store.schema.migrate() for store in stores))
    assert sorted(list(names) for names in applied)[-1] == ALL
    assert sum(len(names) for names in applied) == len(ALL)
    for store in stores:
        await store.close()


async def test_a_file_of_the_first_release_is_brought_up_to_date(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(PREAMBLE + "".join(migration.sql for migration in MIGRATIONS[:4]))
        connection.execute(
            "INSERT INTO rota_jobs (id, task, state, due, run_at, created_at, queue, tenant, origin, "
            "payload_json) VALUES ('0', 'old', 'queued', 1, 0, 0, 'default', 'default', 'api', '{}')"
        )
        connection.executemany(
            "INSERT INTO rota_jobs (id, task, state, due, run_at, created_at, queue, tenant, origin, "
            "payload_json, schedule, started_at, finished_at) "
            "VALUES (?, 'old', ?, 0, 0, 0, 'default', 'default', 'api', '{}', 's', 1000000, 3000000)",
            [("1", "failed"), ("2", "succeeded")],
        )
    store = SqliteStore(f"sqlite:///{path}")
    assert await store.schema.migrate() == ALL[4:]
    (job,) = (await store.jobs(JobFilter(states=(State.QUEUED,)), PageRequest())).items
    assert (job.task, job.crashes) == ("old", 0)
    (runs,) = await store.survey(RunCounts([("default", "s")], date(1970, 1, 1)))
    assert (runs.succeeded, runs.failed, runs.total_ms, runs.longest_ms) == (1, 1, 4000.0, 2000.0)
    await store.close()


async def test_a_newer_schema_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO rota_migrations (version, name) VALUES (99, '0099_future')")
    with pytest.raises(SchemaMismatch, match=rf"version 99.*only version {len(ALL)}"):
        await store.open()
    with pytest.raises(SchemaMismatch):
        await store.schema.pending()
    await store.close()


DAMAGE = {
    "DROP INDEX rota_jobs_ready": "index rota_jobs_ready is missing",
    "DROP TRIGGER rota_audit_append_only": "trigger rota_audit_append_only is missing",
    "CREATE INDEX rota_jobs_more ON rota_jobs (rank)": "index rota_jobs_more is left over",
    'CREATE INDEX "rota_jobs and more" ON rota_jobs (rank)': "index rota_jobs and more is left over",
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_an_index_or_trigger_that_was_changed_by_hand_is_noticed_and_repaired(
    tmp_path: Path, damage: str
) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(damage)
    store = SqliteStore(f"sqlite:///{path}")
    assert await store.schema.pending() == [DAMAGE[damage]]
    assert await store.schema.migrate() == [DAMAGE[damage]]
    assert await store.schema.pending() == []
    await store.close()


async def test_what_others_have_in_the_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE rota_notes (text)")
        connection.execute("CREATE UNIQUE INDEX rota_notes_text ON rota_notes (text)")
        connection.execute("CREATE VIEW rota_report AS SELECT text FROM rota_notes")
        connection.execute("CREATE TABLE orders (id)")
        connection.execute("CREATE TRIGGER rota_orders AFTER INSERT ON orders BEGIN SELECT 1; END")
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    assert await store.schema.pending() == []
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert {"rota_notes", "rota_notes_text", "rota_report", "rota_orders"} <= names


@pytest.mark.parametrize(
    ("layout", "difference"),
    [
        ("ALTER TABLE rota_jobs ADD COLUMN colour TEXT", r"rota_jobs has colour TEXT\."),
        (
            "ALTER TABLE rota_documents RENAME COLUMN body TO text",
            r"rota_documents lacks body TEXT NOT NULL and has text TEXT NOT NULL\.",
        ),
        ("DROP TABLE rota_documents", r"rota_documents is missing\."),
    ],
)
async def test_tables_of_another_layout_are_refused_with_what_to_do(
    tmp_path: Path, layout: str, difference: str
) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(layout)
    for act in (store.open, store.schema.pending):
        with pytest.raises(SchemaMismatch, match=f"{difference}.*name another file"):
            await act()
    await store.close()


async def test_a_schema_of_the_folded_history_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    await store.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rota_migrations SET name = '0002_schedules' WHERE version = 2")
    with pytest.raises(SchemaMismatch, match=r"version 2 is 0002_schedules, but here it is 0002_documents"):
        await store.open()
    await store.close()


async def test_the_migrations_can_be_run_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(store.schema.text)
    assert list(await store.schema.pending()) == []
    await store.insert([new()], T0)
    await store.close()


async def test_the_users_own_tables_are_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE jobs (id INTEGER PRIMARY KEY, title TEXT)")
        connection.execute("INSERT INTO jobs (title) VALUES ('baker')")
    store = SqliteStore(f"sqlite:///{path}")
    await store.insert([new()], T0)
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT title FROM jobs").fetchall() == [("baker",)]
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE name <> 'jobs'")]
    assert all(name.startswith(("rota_", "sqlite_autoindex_rota_")) for name in names)


async def test_rows_spoilt_by_hand_are_listed_with_the_others(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    store = SqliteStore(f"sqlite:///{path}")
    jobs = [new() for _ in range(6)]
    await store.insert(jobs, T0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for job, damage in zip(
            jobs,
            ("backoff_json = '{'", "tags_json = 'x'", "state = 'lost'", "payload_json = CAST(x'ff' AS TEXT)",
             "run_at = 9223372036854775807", "rank = 'high'"),
            strict=True,
        ):  # fmt: skip
            connection.execute(f"UPDATE rota_jobs SET {damage} WHERE id = ?", (job.id,))
    page = await store.jobs(EVERYTHING, PageRequest(newest_first=False))
    assert [job.id for job in page.items] == [job.id for job in jobs]
    await store.close()
