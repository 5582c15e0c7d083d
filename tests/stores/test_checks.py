"""What a hand cannot write into the tables: the database refuses it and says what must hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.model import State
from rota.store.calls import claim, settle
from rota.store.postgres.schema import MIGRATIONS as MIGRATED
from rota.store.postgres.store import PostgresStore
from rota.store.sqlite.schema import MIGRATIONS, PREAMBLE
from rota.testing import drain
from rota.testing.conformance.factories import add, at, change, new, want

MISTAKES = [
    ("attempt = -1", "attempt_is_not_negative"),
    ("max_attempts = 0", "max_attempts"),
    ("crashes = -1", "crashes_are_not_negative"),
]


async def stored(url: str) -> None:
    """A finished job, with a recorded attempt, and one that waits."""
    app = Rota(url)

    @app.task(max_attempts=1)
    async def work() -> None:
        raise ValueError("no")

    await app.migrate()
    await work.enqueue()
    await drain(app)
    await work.options(delay=60).enqueue()
    await app.close()


async def test_sqlite_refuses_states_and_attempts_that_cannot_be(tmp_path: Path) -> None:
    await stored(f"sqlite:///{tmp_path / 'rota.db'}")
    connection = sqlite3.connect(tmp_path / "rota.db")
    try:
        for change, rule in [*MISTAKES, ("state = 'paused'", "state_is_waiting_queued_running")]:
            with pytest.raises(sqlite3.IntegrityError, match=rule):
                connection.execute(f"UPDATE rota_jobs SET {change}")
        with pytest.raises(sqlite3.IntegrityError, match="attempt_is_not_negative"):
            connection.execute("UPDATE rota_attempts SET attempt = -1")
    finally:
        connection.close()


async def test_postgres_refuses_states_and_attempts_that_cannot_be(migrated_postgres_url: str) -> None:
    await stored(migrated_postgres_url)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        for table in ("queued", "done"):
            for change, rule in MISTAKES:
                with pytest.raises(psycopg.errors.CheckViolation, match=rule):
                    connection.execute(f"UPDATE rota.{table} SET {change}".encode())
        with pytest.raises(psycopg.errors.CheckViolation, match="state_is_succeeded_failed_or_cancelled"):
            connection.execute("UPDATE rota.done SET state = 'paused'")
        with pytest.raises(psycopg.errors.CheckViolation, match="attempt_is_not_negative"):
            connection.execute("UPDATE rota.attempts SET attempt = -1")


async def test_postgres_makes_days_with_the_same_checks(migrated_postgres_url: str) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        made = connection.execute("SELECT rota.make_day(clock_timestamp() + interval '90 days')").fetchone()
        assert made == (True,)
        rows: list[Any] = connection.execute(
            "SELECT c.relname, count(*) FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid "
            "WHERE k.contype = 'c' AND c.relname LIKE 'done%' GROUP BY 1"
        ).fetchall()
    assert len(rows) > 3 and len({count for _, count in rows}) == 1, rows


async def test_postgres_claims_what_a_hand_wrote_before_and_all_beside_it(
    migrated_postgres_url: str,
) -> None:
    """The checks as an update adds them, to tables that have a bad row already."""
    (checks,) = [migration for migration in MIGRATED if "checks" in migration.name]
    store = PostgresStore(migrated_postgres_url)
    try:
        await store.open()
        await add(store, bad := new(), good := new())
        with psycopg.connect(migrated_postgres_url) as connection:
            for table in ("queued", "running", "done", "attempts"):
                rows = connection.execute(
                    "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = %s::regclass "
                    "AND conname <> 'queued_max_attempts_check'",
                    (f"rota.{table}",),
                ).fetchall()
                for (name,) in rows:
                    connection.execute(f"ALTER TABLE rota.{table} DROP CONSTRAINT {name}".encode())
            connection.execute("DELETE FROM rota.migrations WHERE name = %s", (checks.name,))
            connection.execute("UPDATE rota.queued SET attempt = -5, crashes = -1 WHERE id = %s", (bad.id,))
            connection.execute(checks.sql.encode())
        jobs = await claim(store, want(), at(1))
        assert {job.id: job.attempt for job in jobs} == {bad.id: 1, good.id: 1}
        assert not await settle(store, [change(job, State.SUCCEEDED) for job in jobs], at(2))
    finally:
        await store.close()


def test_sqlite_puts_rows_right_that_a_hand_wrote_before(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "rota.db")
    try:
        connection.executescript(PREAMBLE)
        (checks,) = [migration for migration in MIGRATIONS if "checks" in migration.name]
        for migration in MIGRATIONS[: MIGRATIONS.index(checks)]:
            connection.executescript(migration.sql)
        connection.execute(
            "INSERT INTO rota_jobs (due, id, task, queue, tenant, state, run_at, created_at, attempt, "
            "max_attempts, payload_json, origin) "
            "VALUES (1, 'x', 'work', 'q', 't', 'paused', 5, 5, -3, 0, '{}', 'api')"
        )
        connection.executescript(checks.sql)
        found = connection.execute(
            "SELECT state, finished_at, attempt, max_attempts FROM rota_jobs"
        ).fetchall()
        assert found == [("failed", 5, 0, 1)]
    finally:
        connection.close()
