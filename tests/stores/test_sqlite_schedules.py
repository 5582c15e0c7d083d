"""SQLite: schedules written or spoilt by hand, and the indexes that keep looking at them cheap."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rota.core.ids import is_id
from rota.core.schedules.firing import decide
from rota.errors import OptionError
from rota.model import LIVE, Firing, JobFilter, PageRequest, ScheduleFilter, State
from rota.store.sqlite.connection import connect
from rota.store.sqlite.inserts import insert
from rota.store.sqlite.job_pages import matching
from rota.store.sqlite.rows import micros
from rota.store.sqlite.schedule_queries import page_query
from rota.store.sqlite.schedule_rows import columns
from rota.store.sqlite.schema import MIGRATIONS, PREAMBLE, migrate
from rota.store.sqlite.statements import statement
from rota.store.sqlite.store import SqliteStore
from rota.store.sqlite.url import parse
from rota.store.sqlite.writer import Transaction
from rota.testing.conformance.factories import EVERYTHING, T0, at, ids, new
from rota.testing.conformance.firing import firing
from rota.testing.conformance.schedules import ALL, kept, listed, names, rule, stored

NOW = micros(T0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rota.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{path}")
    await opened.open()
    yield opened
    await opened.close()


def by_hand(path: Path, sql: str, params: Sequence[Any] = ()) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, params)


# --- rows written by hand ------------------------------------------------------------------------


async def test_a_row_written_by_hand_is_complete_and_looked_at_once(store: SqliteStore, path: Path) -> None:
    by_hand(path, "INSERT INTO rota_schedules (name, task, cron) VALUES ('nightly', 'clean', '0 3 * * *')")
    now = await store.clock()
    (found,) = (await store.due_schedules(now, 10)).schedules
    assert is_id(found.id)
    assert (found.tenant, found.source, found.version, found.payload) == ("default", "sql", 1, {})
    assert abs((found.created_at - now).total_seconds()) < 60
    started = decide(found, now, 5.0).schedule
    assert started.next_run_at is not None
    assert await store.fire([Firing(schedule=started, expected=1)], now) == frozenset()
    assert list((await store.due_schedules(now, 10)).schedules) == []
    assert (await store.due_schedules(now, 10)).next_check_at == started.next_run_at


async def test_a_row_written_by_hand_may_use_the_times_of_sqlite(store: SqliteStore, path: Path) -> None:
    by_hand(path, "INSERT INTO rota_schedules (name, task, at) VALUES ('a', 't', '2030-01-01 12:00:00')")
    by_hand(path, "INSERT INTO rota_schedules (name, task, at) VALUES ('b', 't', '2030-01-01T14:00+02:00')")
    await stored(store, rule("c", check_at=at(9)))
    by_hand(path, "UPDATE rota_schedules SET next_run_at = '2030-01-01 12:00:05.5' WHERE name = 'c'")
    found = {one.name: one for one in (await store.due_schedules(at(-60), 10)).schedules}
    assert [found[name].at for name in "ab"] == [T0, T0]
    assert found["c"].next_run_at == found["c"].manual_run_at == at(5.5)
    looked = decide(found["c"], at(-60), 5.0)
    assert not await store.fire([Firing(schedule=looked.schedule, expected=found["c"].version)], at(-60))
    assert not (await store.due_schedules(at(-60), 10)).schedules[2:]
    fired = decide(await kept(store, found["c"].id), at(6), 5.0)
    assert [fire.at for fire in fired.fires] == [at(5.5)]


async def test_rows_written_by_hand_get_different_ids(store: SqliteStore, path: Path) -> None:
    for n in range(20):
        by_hand(path, "INSERT INTO rota_schedules (name, task, every) VALUES (?, 't', 60)", (f"s{n}",))
    page = await store.schedules(ALL, PageRequest())
    assert len({schedule.id for schedule in page.items}) == 20


@pytest.mark.parametrize("damage", ["version = 'x'", "enabled = 'yes'", "name = x'ff'", "id = x'00'"])
async def test_what_would_make_a_row_unreachable_is_refused(
    store: SqliteStore, path: Path, damage: str
) -> None:
    await stored(store, rule())
    with pytest.raises(sqlite3.IntegrityError):
        by_hand(path, f"UPDATE rota_schedules SET {damage}")


# --- rows spoilt by hand -------------------------------------------------------------------------

SPOILT = (
    "at = 'tomorrow', cron = NULL", "until = 'never'", "start_at = 9223372036854775807", "every = 'often'",
    "jitter = 'some'", "payload_json = '{'", "payload_json = '[1]'", "payload_json = CAST(x'ff' AS TEXT)",
    "priority = -9223372036854775807 - 1", "max_attempts = 'three'", "timeout = 'long'", "missed = 'maybe'",
    "missed_cap = 1.5", "overlap = 'sometimes'", "calendar_mode = ''", "source = 'moon'", "queue = x'ff'",
    "cron = '61 25 * * *'", "timezone = 'Mars/Olympus'", "cron = NULL", "missed_cap = -1",
)  # fmt: skip


@pytest.mark.parametrize("damage", SPOILT)
async def test_a_spoilt_schedule_is_disabled_with_a_reason_and_harms_no_other(
    store: SqliteStore, path: Path, damage: str
) -> None:
    _, spoilt, _ = await stored(store, rule("a"), rule("b"), rule("c"))
    by_hand(path, f"UPDATE rota_schedules SET {damage} WHERE name = 'b'")
    assert await listed(store) == [["a", "b", "c"]]
    due = (await store.due_schedules(T0, 10)).schedules
    assert sorted(names(due)) == ["a", "b", "c"]
    (broken,) = [schedule for schedule in due if schedule.name == "b"]
    decision = decide(broken, T0, 5.0)
    assert decision.fires == ()
    acts = [firing(schedule) for schedule in due if schedule.name != "b"]
    off = Firing(schedule=decision.schedule, expected=broken.version)
    assert await store.fire([off, *acts], T0) == frozenset()
    after = await kept(store, spoilt.id)
    assert after.enabled is False
    assert after.reason
    assert list((await store.due_schedules(T0, 10)).schedules) == []


async def test_the_reason_names_the_column_and_what_it_holds(store: SqliteStore, path: Path) -> None:
    (schedule,) = await stored(store, rule())
    by_hand(path, "UPDATE rota_schedules SET until = 'never', overlap = 'sometimes'")
    reason = (await kept(store, schedule.id)).reason
    assert reason == (
        "until='never', overlap='sometimes': cannot be read; correct it and enable the schedule again"
    )


async def test_the_reason_of_a_disabled_schedule_stays(store: SqliteStore, path: Path) -> None:
    (schedule,) = await stored(store, rule(enabled=False, reason="moving house"))
    by_hand(path, "UPDATE rota_schedules SET until = 'never'")
    assert (await kept(store, schedule.id)).reason == "moving house"


LOST = (
    "held = 'x'", "held = '[\"x\"]'", "next_run_at = 'x'", "check_at = 'soon'", "last_fire_at = 'x'",
    "created_at = 'x'", "description = x'ff'",
)  # fmt: skip


@pytest.mark.parametrize("damage", LOST)
async def test_lost_times_are_computed_anew_and_the_schedule_goes_on(
    store: SqliteStore, path: Path, damage: str
) -> None:
    (schedule,) = await stored(store, rule())
    by_hand(path, f"UPDATE rota_schedules SET {damage}")
    (found,) = (await store.due_schedules(T0, 10)).schedules
    assert (found.enabled, found.held, found.cron) == (True, (), "0 3 * * *")
    decision = decide(found, T0, 5.0)
    fired = [Firing(schedule=decision.schedule, expected=found.version)]
    assert await store.fire(fired, T0) == frozenset()
    after = await kept(store, schedule.id)
    assert after.enabled
    assert after.check_at is not None
    assert after.check_at > T0


async def test_a_next_look_beyond_all_calendars_hides_nothing(store: SqliteStore, path: Path) -> None:
    await stored(store, rule("far"), rule("due"))
    by_hand(path, "UPDATE rota_schedules SET check_at = 9223372036854775807 WHERE name = 'far'")
    told = await store.due_schedules(T0, 10)
    assert (names(told.schedules), told.next_check_at) == (["due"], None)


async def test_a_cursor_from_elsewhere_is_refused(store: SqliteStore) -> None:
    for cursor in ("x", "[]", '["a"]', "[1,2]"):
        with pytest.raises(OptionError, match="cursor="):
            await store.schedules(ALL, PageRequest(cursor=cursor))


# --- schema --------------------------------------------------------------------------------------


async def test_jobs_stored_before_there_were_schedules_are_kept(path: Path) -> None:
    address = parse(f"sqlite:///{path}")
    jobs = [new(schedule="s"), new()]
    with closing(connect(address)) as connection:
        connection.executescript(PREAMBLE + MIGRATIONS[0].sql)
        columns = "state, due, id, created_at, run_at, tenant, queue, task, origin, payload_json, schedule"
        rows = [
            ("queued", 1, job.id, NOW, NOW, "default", "q", "t", "api", "{}", job.schedule) for job in jobs
        ]
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO rota_jobs ({columns}) VALUES ({marks})", rows)
        connection.commit()
    store = SqliteStore(f"sqlite:///{path}")
    assert (await store.schema.pending())[0] == "0002_documents"
    await store.open()
    assert ids((await store.jobs(EVERYTHING, PageRequest(newest_first=False))).items) == [
        job.id for job in jobs
    ]
    assert ids((await store.jobs(JobFilter(from_schedule=True), PageRequest())).items) == [jobs[0].id]
    schedule = rule("s", overlap="skip")
    await store.put_schedules([schedule], T0)
    assert (await store.due_schedules(T0, 1)).busy == {schedule.id}
    await store.close()


# --- plans ---------------------------------------------------------------------------------------


@pytest.fixture(params=[0, 3000], ids=["empty", "full"])
def connection(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    address = parse("sqlite://:memory:")
    opened = connect(address)
    migrate(opened, address)
    jobs = [new(schedule=f"s{n % 9}" if n % 2 else None, tenant=f"t{n % 3}") for n in range(request.param)]
    insert(Transaction(opened), jobs, NOW)
    rules = [rule(f"s{n}", check_at=at(n), enabled=n % 5 > 0) for n in range(request.param)]
    opened.executemany(statement("put_schedule"), [columns(schedule, 1, NOW) for schedule in rules])
    if request.param:
        opened.execute("UPDATE rota_jobs SET state = 'succeeded', finished_at = 1 WHERE rowid % 10 > 0")
        opened.execute("ANALYZE")
    yield opened
    opened.close()


def plan(connection: sqlite3.Connection, sql: str, params: Sequence[Any]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]


ROW = tuple(columns(rule(), 1, NOW))
PLANS: dict[str, tuple[Sequence[Any], str]] = {
    "due_schedules": ((NOW, 10), "rota_schedules_due (due_at<?)"),
    "next_check": ((NOW,), "rota_schedules_due (due_at>?)"),
    "fire_schedule": ((*ROW, "x", 1), "rota_schedules_id (id=?)"),
    "rewrite_schedule": ((*ROW, "x", 1), "rota_schedules_id (id=?)"),
    "drop_schedules": (('["x"]',), "rota_schedules_id (id=?)"),
    "last_runs": (('[["t","s"]]',), "rota_jobs_tenant_schedule (schedule=? AND tenant=?)"),
    "busy": (('[["t","s"]]',), "rota_jobs_schedule_live (schedule=? AND tenant=?)"),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_statement_about_schedules_probes_its_index(connection: sqlite3.Connection, name: str) -> None:
    params, expected = PLANS[name]
    steps = plan(connection, statement(name), params)
    (read,) = [step for step in steps if step.startswith(("SEARCH rota_", "SCAN rota_"))]
    assert expected in read
    assert not any("TEMP B-TREE" in step for step in steps), steps


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (JobFilter(from_schedule=True), "rota_jobs_scheduled "),
        (JobFilter(from_schedule=True, states=(State.SUCCEEDED,)), "rota_jobs_scheduled "),
        (JobFilter(from_schedule=True, tenant="t1"), "rota_jobs_scheduled "),
        (JobFilter(from_schedule=True, states=(State.FAILED,)), "rota_jobs_failed "),
        (JobFilter(from_schedule=True, schedule="s1"), "rota_jobs_schedule (schedule=? AND id<?)"),
        (
            JobFilter(schedule="s1", tenant="t1"),
            "rota_jobs_tenant_schedule (schedule=? AND tenant=? AND id<?)",
        ),
        (
            JobFilter(schedule="s1", tenant="t1", states=tuple(LIVE)),
            "rota_jobs_schedule_live (schedule=? AND tenant=? AND id<?)",
        ),
    ],
)
def test_runs_are_read_in_order_without_sorting(
    connection: sqlite3.Connection, where: JobFilter, index: str
) -> None:
    text, params = matching(where)
    steps = plan(connection, f"SELECT task {text} AND id < 'x' ORDER BY id DESC LIMIT 50", params)
    assert len(steps) == 1, steps
    assert index in f"{steps[0]} "


@pytest.mark.parametrize("cursor", [None, '["t","s"]'])
@pytest.mark.parametrize(
    "where",
    [ALL, ScheduleFilter(task="t", enabled=True), ScheduleFilter(tenant="t"), ScheduleFilter(owner="o")],
)
def test_a_page_of_schedules_is_read_in_order_without_sorting(
    connection: sqlite3.Connection, where: ScheduleFilter, cursor: str | None
) -> None:
    steps = plan(connection, *page_query(where, PageRequest(cursor=cursor)))
    assert len(steps) == 1, steps
    assert "rota_schedules_name" in steps[0]


def test_a_schedule_is_found_by_its_name_or_id(connection: sqlite3.Connection) -> None:
    by_name = plan(connection, *page_query(ScheduleFilter(name="s", tenant="t"), PageRequest()))
    assert "rota_schedules_name (tenant=? AND name=?)" in by_name[0]
    by_id = plan(connection, *page_query(ScheduleFilter(ids=("x",)), PageRequest()))
    assert "rota_schedules_id (id=?)" in by_id[0]
