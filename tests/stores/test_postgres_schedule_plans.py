"""PostgreSQL: the plans of the scheduler's verbs: probes, however many schedules and runs there are."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from test_postgres_plans import Explained

from rota.core.schedules.firing import job_id
from rota.errors import OptionError
from rota.model import Firing, JobFilter, LastRuns, NewJob, PageRequest, Schedule, ScheduleFilter
from rota.store.calls import claim
from rota.store.postgres import job_pages, schedule_queries
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, new, new_id, want

SCAN = re.compile(r"(?:Seq Scan|Bitmap Heap Scan|Sort) .*\b(?:on|Key:) .*(?:queued|running|done|schedules)\b")
FILL = """
INSERT INTO rota.schedules (name, task, cron, next_run_at, check_at)
SELECT 's' || i, 'work', '* * * * *', %(at)s, %(at)s FROM generate_series(1, 100000) AS i
"""
RUNS = """
INSERT INTO rota.done (id, created_at, run_at, lease_token, rank, attempt, max_attempts, auto_remove, tenant,
                       queue, task, origin, payload, state, finished_at, schedule)
SELECT rota.id_at(%(at)s), %(at)s, %(at)s, 1, 0, 1, 3, false, 't' || i %% 50, 'default',
       'work', 'scheduler', '{}', 'succeeded', %(at)s, CASE WHEN i %% 20 = 0 THEN 's' || i %% 900 END
  FROM generate_series(1, 40000) AS i
"""


def rule(name: str, **fields: Any) -> Schedule:
    told: dict[str, Any] = {"id": new_id(), "name": name, "task": "work", "cron": "* * * * *", "check_at": T0}
    return Schedule(**(told | {"next_run_at": T0, "created_at": T0, "updated_at": T0} | fields))


def run(schedule: Schedule, **fields: Any) -> NewJob:
    told = {"schedule": schedule.name, "tenant": schedule.tenant, "scheduled_for": T0}
    return new(**(told | {"id": job_id(schedule.id, T0)} | fields))


def moved(schedule: Schedule, *jobs: NewJob) -> Firing:
    after = {**{name: getattr(schedule, name) for name in Schedule.__struct_fields__}, "check_at": at(60)}
    return Firing(schedule=Schedule(**after), expected=schedule.version, jobs=jobs)


async def due(store: PostgresStore) -> dict[str, Schedule]:
    return {schedule.name: schedule for schedule in (await store.due_schedules(T0, 1000)).schedules}


async def kept(store: PostgresStore, name: str) -> Schedule:
    return (await store.schedules(ScheduleFilter(name=name), PageRequest())).items[0]


async def test_looking_for_due_schedules_is_a_probe_among_100_000(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("SET auto_explain.log_min_duration = -1")
        connection.execute(FILL, {"at": at(60)})
        connection.execute("SET auto_explain.log_min_duration = 0")
        connection.execute("SET auto_explain.log_analyze = on")
        for settled in (False, True):
            if settled:
                connection.execute("ANALYZE rota.schedules")
            rows, plan = session.plans("SELECT name FROM rota.due_schedules(%s, 500)", T0)
            assert len(rows) == 1  # the next one
            assert plan.count("Index Scan using schedules_look") == 2 and not SCAN.search(plan), plan
            assert "Rows Removed" not in plan, plan
    told = await store.due_schedules(T0, 500)
    assert (list(told.schedules), told.next_check_at) == ([], at(60))
    assert len((await store.due_schedules(at(60), 500)).schedules) == 500


async def test_firing_uses_indexes(store: PostgresStore, migrated_postgres_url: str) -> None:
    await store.put_schedules([rule(f"s{n}") for n in range(300)], T0)
    read = list((await due(store)).values())
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        for part in (read[:10], read[10:]):
            said = schedule_queries.firings_text([moved(one, run(one)) for one in part])
            rows, plan = session.plans("SELECT rota.fire(%s::json, %s)", said, T0)
            assert rows == [([],)]
            assert "schedules_pkey" in plan, plan
            assert not re.search(r"Seq Scan on (schedules|queued|running)", plan), plan


async def test_busy_probes_the_live_jobs_of_each_schedule(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new(schedule=f"s{n % 50}", tenant=f"t{n % 7}") for n in range(3000)], T0)
    await claim(store, want(1000), T0)
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        pairs = [[f"t{n % 9}" for n in range(200)], [f"s{n % 60}" for n in range(200)]]
        rows, plan = session.plans("SELECT * FROM rota.busy(%s, %s)", *pairs)
        live = {(f"t{n % 7}", f"s{n % 50}") for n in range(3000)}
        assert set(rows) == live.intersection(zip(*pairs, strict=True))
        assert "queued_schedule" in plan and "running_schedule" in plan and not SCAN.search(plan), plan


async def test_last_runs_probes_the_jobs_of_each_schedule(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new(schedule=f"s{n % 50}", tenant=f"t{n % 7}") for n in range(3000)], T0)
    await claim(store, want(1000), T0)
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        pairs = [[f"t{n % 9}" for n in range(50)], [f"s{n % 60}" for n in range(50)]]
        rows, plan = session.plans(job_pages._LAST_RUNS, *pairs)
        assert len(rows) == len(await store.survey(LastRuns(list(zip(*pairs, strict=True))))) > 0
        assert "queued_schedule" in plan and "running_schedule" in plan, plan
        assert not re.search(r"Seq Scan on (queued|running|done)|Bitmap|->  Sort", plan), plan


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (JobFilter(from_schedule=True), r"done_\w+_id_idx\d"),
        (JobFilter(from_schedule=True, schedule="s7"), r"done_\w+_schedule_id_idx"),
        (JobFilter(from_schedule=True, schedule="s7", tenant="t1"), r"done_\w+_schedule_tenant_id_idx"),
    ],
)
async def test_runs_newest_first_come_from_an_index(
    store: PostgresStore, migrated_postgres_url: str, where: JobFilter, index: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(RUNS, {"at": T0})
        connection.execute("ANALYZE")
        statement, params = job_pages.page_statement(where, PageRequest(limit=20))
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}".encode(), params))
    assert re.search(index, plan) and "Seq Scan on done_default" not in plan, plan


async def test_a_page_of_schedules_starts_where_the_last_one_ended(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(FILL, {"at": T0})
        connection.execute("ANALYZE")
        first = await store.schedules(ScheduleFilter(), PageRequest(limit=10))
        statement, params = schedule_queries.page_statement(
            ScheduleFilter(), PageRequest(limit=10, cursor=first.next)
        )
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}".encode(), params))
    assert "schedules_name" in plan and "Index Cond" in plan and "Sort" not in plan, plan
    with pytest.raises(OptionError, match="cursor="):
        await store.schedules(ScheduleFilter(), PageRequest(limit=10, cursor="?"))


async def test_firing_reads_what_it_writes_once_whatever_the_statistics_say(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    """Joined with a table that the statistics call empty, the given rows must not be parsed for each row."""
    session = psycopg.connect(migrated_postgres_url, autocommit=True)
    session.execute("ALTER TABLE rota.schedules SET (autovacuum_enabled = off)")
    session.execute("VACUUM ANALYZE rota.schedules")
    session.execute(FILL, {"at": T0})
    session.execute("UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE oid = 'rota.schedules'::regclass")
    firings = [moved(schedule) for schedule in list((await due(store)).values())[:200]]
    assert not await store.fire(firings, T0)
    session.close()
