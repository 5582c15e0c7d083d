"""What a hand cannot write into the tables: the database refuses it and says what must hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rota import Rota
from rota.store.sqlite.schema import MIGRATIONS, PREAMBLE
from rota.testing import drain

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
