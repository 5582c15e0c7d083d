"""SQLite: what an examination finds, the measures, and how the audit log and counts meet odd rows."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from rota.model import AuditEntry, AuditFilter, Finding, JobCount, JobFilter, PageRequest, State
from rota.store.calls import claim
from rota.store.sqlite import health_checks, job_counts
from rota.store.sqlite.rows import micros
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import EVERYTHING, T0, at, in_state, new, want


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rota.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    yield store
    await store.close()


async def findings(store: SqliteStore) -> dict[str, Finding]:
    return {finding.check: finding for finding in await store.check_health(T0)}


def spoil(path: Path) -> None:
    """Overwrite some pages in the middle."""
    with open(path, "r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(b"x" * 20 * 4096)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- examining -----------------------------------------------------------------------------------


async def test_all_is_fine_with_a_new_file(store: SqliteStore) -> None:
    found = await findings(store)
    assert {finding.level for finding in found.values()} == {"ok"}
    assert found["journal"].text == "journal mode wal"
    assert sqlite3.sqlite_version in found["version"].text
    assert {"schema", "durability", "permissions", "log", "bloat", "integrity"} <= set(found)


async def test_a_file_that_others_may_open_is_reported_and_left_as_it_is(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_RDWR))
    os.chmod(path, 0o644)
    store = SqliteStore(f"sqlite:///{path}")
    await store.open()
    finding = (await findings(store))["permissions"]
    assert finding.level == "warning"
    assert str(path) in finding.text
    assert "chmod 600" in (finding.remedy or "")
    await store.close()
    assert mode(path) == 0o644


async def test_commits_that_do_not_wait_for_the_disk_are_reported(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}?synchronous=normal")
    await store.open()
    assert (await findings(store))["durability"].level == "warning"
    await store.close()


async def test_a_store_in_memory_is_reported_as_fleeting() -> None:
    store = SqliteStore("sqlite://:memory:")
    await store.open()
    found = await findings(store)
    assert found["durability"].level == "warning"
    assert found["integrity"].level == "ok"
    await store.close()


async def test_a_damaged_file_is_reported_with_its_remedy(path: Path) -> None:
    store = SqliteStore(f"sqlite:///{path}")
    await store.insert([new(payload_json=f'"{"x" * 500}"') for _ in range(2000)], T0)
    await store.close()
    spoil(path)
    await store.open()
    finding = (await findings(store))["integrity"]
    assert finding.level == "problem"
    assert "backup" in (finding.remedy or "")
    await store.close()


async def test_a_file_that_is_no_database_is_a_finding_and_no_error(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("Dear database, " * 100)
    store = SqliteStore(f"sqlite:///{letter}")
    found = await findings(store)
    assert found["database"].level == "problem"
    assert "is not an SQLite database" in found["database"].text
    await store.close()


async def test_a_schema_of_the_future_is_a_finding_and_no_error(path: Path, store: SqliteStore) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO rota_migrations (version, name) VALUES (99, '0099_future')")
    finding = (await findings(store))["schema"]
    assert finding.level == "problem"
    assert "version 99" in finding.text


async def test_a_file_too_large_to_be_checked_is_reported_as_unchecked(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "CHECKED_MB", -1)
    finding = (await findings(store))["integrity"]
    assert "not checked" in finding.text
    assert "quick_check" in (finding.remedy or "")


async def test_empty_space_in_the_file_is_reported(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "BLOAT_MB", 0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE filler AS SELECT zeroblob(4000000)")
        connection.execute("DROP TABLE filler")
    finding = (await findings(store))["bloat"]
    assert finding.level == "warning"
    assert "VACUUM" in (finding.remedy or "")


async def test_a_log_that_cannot_shrink_is_reported(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "LOG_MB", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM rota_jobs").fetchone()
        await store.insert([new(payload_json=f'"{"x" * 4_000_000}"')], T0)
        assert (await findings(store))["log"].level == "warning"


async def test_the_metrics_count_waiting_writes(path: Path, store: SqliteStore) -> None:
    assert store.gauges == {"sqlite_writer_backlog": 0, "sqlite_reader_backlog": 0}
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writes = []
        async with asyncio.timeout(10):
            while store.gauges["sqlite_writer_backlog"] < 4:  # the first ones wait for the lock
                writes.append(asyncio.create_task(store.put_document("gate", "a", "1", None, T0)))
                await asyncio.sleep(0)
        other.execute("ROLLBACK")
    await asyncio.gather(*writes)
    assert store.gauges["sqlite_writer_backlog"] == 0


# --- the audit log -------------------------------------------------------------------------------


async def test_ids_grow_whichever_store_adds_the_line(path: Path, store: SqliteStore) -> None:
    other = SqliteStore(f"sqlite:///{path}")
    for n in range(10):
        await (store, other)[n % 2].append_audit([AuditEntry(action=f"test.{n}", at=at(-n))])
    page = await store.audit(AuditFilter(), PageRequest(newest_first=False))
    assert [entry.action for entry in page.items] == [f"test.{n}" for n in range(10)]
    await other.close()


async def test_a_line_of_the_audit_log_cannot_be_changed_by_accident(path: Path, store: SqliteStore) -> None:
    await store.append_audit([AuditEntry(action="job.cancel", at=T0, actor="ann")])
    with (
        closing(sqlite3.connect(path)) as connection,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        connection.execute("UPDATE rota_audit SET actor = 'bob'")


async def test_lines_written_by_hand_neither_hide_the_others_nor_stop_them(
    path: Path, store: SqliteStore
) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO rota_audit (id, at, action, actor, via, result, message) "
            "VALUES ('zzz', 'soon', 5, x'ff', 'hand', 'done', CAST(x'ff' AS TEXT))"
        )
    await store.append_audit([AuditEntry(action="test.1", at=T0), AuditEntry(action="test.2", at=T0)])
    page = await store.audit(AuditFilter(), PageRequest(newest_first=False))
    assert [entry.action for entry in page.items] == ["test.1", "test.2", "5"]


# --- counts and filters --------------------------------------------------------------------------


async def test_an_error_that_is_no_json_is_no_match_and_no_failure(path: Path, store: SqliteStore) -> None:
    broken, sound = [await in_state(store, State.FAILED) for _ in range(2)]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE rota_jobs SET error_json = 'no luck' WHERE id = ?", (broken,))
    page = await store.jobs(JobFilter(error="NO LUCK"), PageRequest())
    assert [job.id for job in page.items] == [sound]


async def test_an_overview_that_did_not_read_all_is_marked_as_estimated(
    path: Path, store: SqliteStore
) -> None:
    for _ in range(3):
        await in_state(store, State.FAILED, tenant="x")
    await in_state(store, State.CANCELLED, tenant="x")
    await store.insert([new(tenant="x") for _ in range(3)], T0)
    with closing(sqlite3.connect(path)) as connection:
        whole = job_counts.overview_of(connection, "x", micros(T0), 3)
        part = job_counts.overview_of(connection, "x", micros(T0), 2)
    assert (whole.estimated, whole.counts["failed"], whole.counts["queued"]) == (frozenset(), 3, 3)
    assert part.estimated == {"waiting", "queued", "running", "failed"}
    assert part.counts["cancelled"] == 1


async def test_jobs_of_an_excluded_tenant_leave_the_ready_index_once(path: Path, store: SqliteStore) -> None:
    await store.insert([new(tenant="x") for _ in range(500)], T0)
    await store.insert([new(tenant="y") for _ in range(20)], at(1))

    def standing() -> tuple[int, int]:
        with closing(sqlite3.connect(path)) as connection:
            query = "SELECT sum(due = 1), sum(due = 2) FROM rota_jobs WHERE state = 'queued'"
            ready, aside = connection.execute(query).fetchone()
            return ready, aside

    await claim(store, want(10, exclude_tenants=("x",)), at(2))
    assert standing() == (10, 500)
    taken = await claim(store, want(8), at(2))  # from where they are: nothing is brought back
    assert sorted(job.tenant for job in taken) == ["x"] * 4 + ["y"] * 4
    assert standing() == (6, 496)
    assert await store.survey(JobCount(EVERYTHING, 1000)) == 520
