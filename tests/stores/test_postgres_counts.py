"""PostgreSQL: counts and searches are bounded, and use indexes where the tables grow."""

from __future__ import annotations

import asyncio
import re

import psycopg
import pytest

from rota.errors import OptionError
from rota.model import CurrentOverview, JobCount, JobFilter, PageRequest, State
from rota.store.calls import claim, settle
from rota.store.postgres import job_counts, job_pages
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, in_state, new, new_id, running, want

FILL = """
INSERT INTO rota.queued (id, created_at, run_at, task, queue, rank, payload, due)
SELECT (lpad(to_hex(i), 12, '0') || '70008000000000000000')::uuid, %(now)s, %(now)s, 'work', 'q' || i %% 3,
       -(i %% 10), '{}', true
  FROM generate_series(1, 100000) AS i
"""


async def test_the_place_in_line_is_read_from_the_claim_index(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(FILL, {"now": T0})
        connection.execute("LOAD 'auto_explain'")
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        connection.execute("SET auto_explain.log_nested_statements = on")
        connection.execute("SET client_min_messages = log")
        connection.execute("SET auto_explain.log_min_duration = 0")
        ask = "SELECT rota.ahead('q1', 0, %s, 'ffffffff-ffff-ffff-ffff-ffffffffffff', 1000)"
        assert connection.execute(ask.encode(), (T0,)).fetchall() == [(1000,)]
    plan = "\n".join(notices)
    assert "queued_due" in plan and not re.search(r"(Seq|Bitmap Heap) Scan on queued", plan), plan


async def test_pages_between_two_ids_use_the_index_of_each_table(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.insert([new() for _ in range(2000)], T0)
    jobs = await claim(store, want(1500), T0)
    await settle(store, [change(job, State.SUCCEEDED) for job in jobs[:1000]], T0)
    where = JobFilter(after_id=jobs[400].id, before_id=jobs[450].id)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE")
        for statement, params in (
            job_pages.page_statement(where, PageRequest(limit=5)),
            job_pages.count_statement(where, 100),
        ):
            plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}".encode(), params))
            for index in ("queued_id", "running_id", r"done_\w+_id_idx"):
                assert re.search(index, plan), plan
    assert await store.survey(JobCount(where, 100)) == 49
    assert await store.survey(JobCount(where, 10)) == 10


async def test_nothing_lies_beyond_what_is_no_id(store: PostgresStore) -> None:
    await store.insert([new()], T0)
    assert await store.survey(JobCount(JobFilter(after_id="'; --"), 10)) == 0
    assert await store.survey(JobCount(JobFilter(before_id="zzz"), 10)) == 0
    assert await store.survey(JobCount(JobFilter(after_id=new_id().replace("0190", "0000")), 10)) == 0


async def test_a_search_in_errors_passes_over_what_the_server_cannot_decode(store: PostgresStore) -> None:
    for message in ("\\u0000 no Luck", "100% \\\\u0000", "else"):
        job = await running(store)
        error = f'{{"type":"ValueError","message":"{message}","traceback":"hidden"}}'
        await settle(store, [change(job, State.FAILED, error_json=error)], at(1))
    await in_state(store, State.SUCCEEDED)
    for text, count in {"LUCK": 1, "100% \\u": 1, "valueerror": 3, "hidden": 0, "_": 0}.items():
        where = JobFilter(error=text)
        assert await store.survey(JobCount(where, 10)) == count, text
        assert len((await store.jobs(where, PageRequest())).items) == count


async def test_a_search_that_takes_too_long_says_to_narrow_it(
    store: PostgresStore, migrated_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "SEARCH_WITHIN_MS", 20)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(FILL, {"now": T0})
        connection.execute("""UPDATE rota.queued SET error = '{"type": "E", "message": "m"}'""")
    with pytest.raises(OptionError, match="narrow it by"):
        await store.survey(JobCount(JobFilter(error="nowhere"), 1000))
    with pytest.raises(OptionError, match="narrow it by"):
        await store.jobs(JobFilter(error="nowhere"), PageRequest())
    assert await store.survey(JobCount(JobFilter(), 10)) == 10
    ((left,),) = await store._connections.rows("SELECT current_setting('statement_timeout')")
    assert left == "0"


async def test_counts_of_a_tenant_beyond_the_bound_are_said_to_be_estimated(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        await in_state(store, State.SUCCEEDED, tenant="a")
        await in_state(store, State.SUCCEEDED, tenant="b")
    await in_state(store, State.FAILED, tenant="b")
    await store.insert([new(tenant=name) for name in ("a", "a", "b")], T0)
    exact = await store.survey(CurrentOverview(at(9), "a"))
    assert not exact.estimated
    assert (exact.counts["succeeded"], exact.counts["failed"], exact.counts["queued"]) == (4, 0, 2)
    assert exact.queues["default"].due == 2
    monkeypatch.setattr(job_counts, "SAMPLE", 4)
    monkeypatch.setattr(job_counts, "COUNT_AT_MOST", 2)
    rough = await store.survey(CurrentOverview(at(9), "a"))
    assert rough.estimated == {"succeeded", "failed", "cancelled", "queued"}
    assert rough.counts["succeeded"] == 4  # two of the newest four, of eight
    assert (await store.survey(CurrentOverview(at(9), "missing"))).queues == {}


async def test_gauges_count_lent_idle_and_waiting_connections(store: PostgresStore) -> None:
    def gauge(name: str) -> float:
        return store.gauges[f"connections_{name}"]

    async with asyncio.timeout(20):
        loans = [store._connections.borrow() for _ in range(4)]
        for loan in loans:
            await loan.__aenter__()
        assert (gauge("open"), gauge("lent"), gauge("idle"), gauge("waiting")) == (4, 4, 0, 0)
        waiting = asyncio.create_task(store.clock())
        while gauge("waiting") != 1:  # noqa: ASYNC110
            await asyncio.sleep(0)
        for loan in loans:
            await loan.__aexit__(None, None, None)
        await waiting
        assert (gauge("open"), gauge("lent"), gauge("idle"), gauge("waiting")) == (4, 0, 4, 0)
