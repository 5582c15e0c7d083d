"""The plans of the hot path are pinned: index probes on empty, small and huge tables alike."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from rota.model import JobFilter, Limit, LimitRule, NewJob, PageRequest, State
from rota.store.calls import claim, settle
from rota.store.postgres.job_pages import page_statement
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, change, new, want

HOT = re.compile(r"(?:Seq Scan|Bitmap Heap Scan) on (?:queued|running|done\w*|keys|attempts|documents)\b")
TURN = """
SELECT s.refused, c.* FROM rota.settle(
    %s::uuid[], %s::bigint[], %s::text[], %s::bigint[], NULL, %s::json, '2030-01-01 12:00Z') AS s,
  LATERAL rota.claim(
    'w', 100, 3600, NULL, '{}', NULL, %s::text[], %s::json, NULL, NULL, NULL, s.freed, s.settled_at) AS c
"""
Row = dict[str, Any]
FILL = """
INSERT INTO rota.queued (id, created_at, run_at, task, queue, rank, payload, due)
SELECT (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, %(now)s,
       CASE WHEN i %% 2 = 0 THEN %(now)s ELSE %(later)s END, 'work', 'q' || i %% 3, -(i %% 10), '{}',
       i %% 2 = 0
  FROM generate_series(1, %(jobs)s) AS i
"""


class Explained:
    """A session that is shown the plan of every statement, also of those inside functions."""

    def __init__(self, url: str) -> None:
        self.notices: list[str] = []
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("LOAD 'auto_explain'")
        for name, value in {
            "auto_explain.log_min_duration": "0",
            "auto_explain.log_nested_statements": "on",
            "client_min_messages": "log",
        }.items():
            self.connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        self.connection.add_notice_handler(lambda notice: self.notices.append(notice.message_primary or ""))

    def plans(self, statement: str, *params: object) -> tuple[list[tuple[object, ...]], str]:
        self.notices.clear()
        rows = self.connection.execute(statement.encode(), params).fetchall()
        return rows, "\n".join(self.notices)

    def turn(self, *params: object) -> tuple[list[Row], str]:
        self.notices.clear()
        cursor = self.connection.cursor(row_factory=dict_row)
        rows = cursor.execute(TURN.encode(), params).fetchall()
        return rows, "\n".join(self.notices)


def changes(rows: list[Row]) -> str:
    parts = [
        f'{{"id":"{row["id"]}","lease_token":{row["lease_token"]},"worker":"w","state":"succeeded","attempt":1}}'
        for row in rows
    ]
    return f"[{','.join(parts)}]"


def successes(rows: list[Row]) -> tuple[str, str, str, str, None]:
    """The same ends as plain successes: ids, tokens, workers, when they began, no other changes."""
    return (
        f"{{{','.join(str(row['id']) for row in rows)}}}",
        f"{{{','.join(str(row['lease_token']) for row in rows)}}}",
        f"{{{','.join('w' for _ in rows)}}}",
        f"{{{','.join('1' for _ in rows)}}}",
        None,
    )


NOTHING_ENDED = (None, None, None, None, None)


def assert_pinned(plan: str) -> None:
    assert "queued_due" in plan, plan
    assert not HOT.search(plan), plan


@pytest.mark.parametrize("jobs", [0, 300])
async def test_a_turn_uses_indexes_on_small_tables(
    store: PostgresStore, migrated_postgres_url: str, jobs: int
) -> None:
    await store.insert([new(queue=f"q{n % 3}") for n in range(jobs)], T0)
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        rows, plan = session.turn(*NOTHING_ENDED, None, None)
        assert_pinned(plan)
        for turn in range(14):  # beyond the fifth run a statement may get another plan
            ends = (*NOTHING_ENDED[:4], changes(rows[1:])) if turn % 2 else successes(rows[1:])
            rows, plan = session.turn(*ends, None, None)
            assert not rows[0]["refused"]
            assert_pinned(plan)


async def test_a_turn_uses_indexes_among_a_million_jobs(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("SET auto_explain.log_min_duration = -1")
        connection.execute(FILL, {"now": T0, "later": T0 + timedelta(days=30), "jobs": 1_000_000})
        connection.execute("SET auto_explain.log_min_duration = 0")
        rows, plan = session.turn(*NOTHING_ENDED, None, None)
        assert len(rows) == 101
        assert_pinned(plan)
        connection.execute("ANALYZE rota.queued")
        rows, plan = session.turn(*NOTHING_ENDED[:4], changes(rows[1:]), None, None)
        assert len(rows) == 101
        assert_pinned(plan)
        last = max(rows[1:], key=lambda row: (row["rank"], row["run_at"], row["id"]))
        since = json.dumps([{name: str(last[name]) for name in ("queue", "rank", "run_at", "id")}])
        rows, plan = session.turn(*successes(rows[1:]), None, since)
        assert len(rows) == 101
        assert_pinned(plan)
        rows, plan = session.turn(*NOTHING_ENDED, ["paused"], None)
        assert len(rows) == 101
        assert_pinned(plan)
        rows, plan = session.turn(*NOTHING_ENDED, ["paused", "default"], None)
        assert len(rows) == 1
        assert_pinned(plan)
        _, plan = session.plans(
            "SELECT id FROM rota.jobs WHERE id < %s ORDER BY id DESC LIMIT 51",
            "ffffffff-ffff-7fff-bfff-ffffffffffff",
        )
        assert "queued_id" in plan and not HOT.search(plan), plan


async def test_a_beat_uses_indexes(store: PostgresStore, migrated_postgres_url: str) -> None:
    await store.insert([new() for _ in range(200)], T0)
    jobs = await claim(store, want(200), T0)
    leases = changes([{"id": job.id, "lease_token": job.lease_token} for job in jobs])
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        _, plan = session.plans(
            "SELECT * FROM rota.heartbeat('w1', '{}', %s::json, %s::json, 60, '2030-01-01 12:00Z')",
            leases,
            leases,
        )
        assert "running_id" in plan and "LockRows" in plan and not HOT.search(plan), plan


async def test_a_turn_with_both_kinds_of_ends_locks_through_the_index(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new() for _ in range(200)], T0)
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        rows, _ = session.turn(*NOTHING_ENDED, None, None)
        plain, others = rows[1:51], rows[51:101]
        rows, plan = session.turn(*successes(plain)[:4], changes(others), None, None)
        assert not rows[0]["refused"]
        assert "LockRows" in plan
        assert_pinned(plan)


async def test_pages_use_the_index_of_each_table(store: PostgresStore, migrated_postgres_url: str) -> None:
    await store.insert([new() for _ in range(2000)], T0)
    jobs = await claim(store, want(1500), T0)
    states = [State.FAILED] * 3 + [State.SUCCEEDED] * 997
    await settle(store, [change(job, state) for job, state in zip(jobs, states, strict=False)], T0)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE")

        def plan(where: JobFilter, ask: PageRequest) -> str:
            statement, params = page_statement(where, ask)
            return "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}".encode(), params))

        everything = plan(JobFilter(), PageRequest(limit=5, cursor=jobs[1200].id))
        assert "queued_id" in everything and "running_id" in everything, everything
        failures = plan(JobFilter(states=(State.FAILED,)), PageRequest(limit=5))
        assert "queued" not in failures and "running" not in failures, failures
        assert re.search(r"done_\w+_id_idx1", failures), failures  # the partial index of failures


async def test_an_insert_of_one_job_uses_indexes(store: PostgresStore, migrated_postgres_url: str) -> None:
    job = NewJob(id=new().id, task="work", key="k")
    session = Explained(migrated_postgres_url)
    with session.connection:
        for path in ("insert_plain", "insert_jobs"):
            text = f'[{{"id":"{job.id}","task":"work","key":"k"}}]'
            _, plan = session.plans(f"SELECT * FROM rota.{path}(%s::json, NULL, true, true)", text)
            assert not HOT.search(plan), plan


async def test_a_claim_without_tenants_and_rules_reads_the_line_and_nothing_else(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new(concurrency_key=f"k{n}") for n in range(300)], T0)
    session = Explained(migrated_postgres_url)
    with session.connection:
        rows, plan = session.turn(*NOTHING_ENDED, None, None)
        assert len(rows) == 101
        shared = re.search(
            r"queued_tenant|queued_held|rota\.(?:limits|tenants|buckets|hold|claim_fairly)", plan
        )
        assert shared is None, plan
        statements = re.findall(r"Query Text: (.*)", plan)
        assert len(statements) <= 12, (
            statements
        )  # the lock of rules, segments, the next due job, queues, jobs, the move


@pytest.mark.parametrize("rule", ["queue:default", "task:work", "key:k*", "tenant:default"])
async def test_a_claim_under_a_limit_uses_indexes(
    store: PostgresStore, migrated_postgres_url: str, rule: str
) -> None:
    await store.put_rules([LimitRule(name=rule, chosen=Limit(running=150, rate="1000/s"))], T0)
    await store.insert([new(concurrency_key=f"k{n % 200}") for n in range(600)], T0)
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        ends = NOTHING_ENDED
        for _ in range(7):  # beyond the fifth run a statement may get another plan
            rows, plan = session.turn(*ends, None, None)
            assert not HOT.search(plan), plan
            ends = successes(rows[:-1]) if len(rows) > 1 else NOTHING_ENDED


async def test_a_claim_shared_between_tenants_uses_indexes(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new(tenant="hot") for _ in range(600)], T0)
    await store.insert([new(tenant=f"t{n % 90}") for n in range(300)], T0)
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("ANALYZE")
        for _ in range(7):
            rows, plan = session.turn(*NOTHING_ENDED, ["paused"], None)
            assert len(rows) == 101
            assert "queued_tenant" in plan and not HOT.search(plan), plan


FILL_TENANTS = """
INSERT INTO rota.queued (id, created_at, run_at, task, queue, rank, payload, due, lane, tenant)
SELECT (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, %(now)s, %(now)s, 'work', 'q' || i %% 3,
       -(i %% 10), '{}', CASE i %% 50 WHEN 0 THEN false WHEN 1 THEN NULL ELSE true END, '',
       CASE WHEN i %% 2 = 0 THEN 'hot' ELSE 't' || i %% 1000 END
  FROM generate_series(1, %(jobs)s) AS i
"""
READ = """
SELECT sum(pg_stat_get_xact_tuples_returned(i::regclass))
  FROM unnest(ARRAY['rota.queued_tenant', 'rota.queued_beside']) AS i
"""
COUNT = "SELECT * FROM rota.count_waiting(%s, %s)"


@pytest.mark.parametrize("is_analyzed", [False, True])
async def test_the_waiting_jobs_of_a_tenant_are_counted_by_indexes_as_far_as_asked(
    store: PostgresStore, migrated_postgres_url: str, is_analyzed: bool
) -> None:
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("SET auto_explain.log_min_duration = -1")
        connection.execute(FILL_TENANTS, {"now": T0, "jobs": 200_000})
        if is_analyzed:
            connection.execute("ANALYZE rota.queued")
        connection.execute("SET auto_explain.log_min_duration = 0")
        for _ in range(7):  # beyond the fifth run a statement may get another plan
            found, plan = session.plans(COUNT, ["hot", "t1", "none", "default"], 150_000)
            assert sorted(found) == [("hot", 100_000), ("none", 0), ("t1", 200)]
            assert "queued_tenant" in plan and "queued_beside" in plan and not HOT.search(plan), plan
        with connection.transaction():
            before = session.plans(READ)[0][0][0]
            assert session.plans(COUNT, ["hot"], 1000)[0] == [("hot", 1000)]
            read = session.plans(READ)[0][0][0]
        assert int(str(read)) - int(str(before)) < 2000


FILL_ONE_TENANT = """
INSERT INTO rota.queued (id, created_at, run_at, task, queue, rank, payload, due, lane, tenant)
SELECT (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, %(now)s, %(now)s, 'work', 'default', 0,
       '{}', true, '', 'crowd'
  FROM generate_series(1, %(jobs)s) AS i
"""
READ_LINE = "SELECT pg_stat_get_xact_tuples_returned('rota.queued_due'::regclass)"


async def test_tenants_that_statistics_do_not_know_are_not_looked_for_along_the_whole_line(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new(tenant="crowd")], T0)  # notes that there are tenants
    session = Explained(migrated_postgres_url)
    with session.connection as connection:
        connection.execute("SET auto_explain.log_min_duration = -1")
        connection.execute(FILL_ONE_TENANT, {"now": T0, "jobs": 50_000})
        connection.execute("ANALYZE rota.queued")
        await store.insert([new(tenant=f"late-{n}") for n in range(50)], T0)
        begun = set()
        for _ in range(3):
            with connection.transaction():
                before = session.plans(READ_LINE)[0][0][0]
                rows, _ = session.turn(*NOTHING_ENDED, None, None)
                read = int(str(session.plans(READ_LINE)[0][0][0])) - int(str(before))
            begun.update(row["tenant"] for row in rows)
            assert read < 5_000
        assert len(begun & {f"late-{n}" for n in range(50)}) == 50
        with connection.transaction():
            before = session.plans(READ_LINE)[0][0][0]
            assert session.plans(COUNT, ["late-1"], 1000)[0] == [("late-1", 0)]
            assert int(str(session.plans(READ_LINE)[0][0][0])) - int(str(before)) < 5_000
