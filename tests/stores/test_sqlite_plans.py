"""SQLite: the statements of the hot path walk their indexes, whether the tables are empty or full."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import rota.store.sqlite
from rota.model import AuditFilter, JobFilter, State
from rota.store.sqlite import audit
from rota.store.sqlite.claims import merged_select
from rota.store.sqlite.connection import connect
from rota.store.sqlite.inserts import insert
from rota.store.sqlite.job_pages import matching
from rota.store.sqlite.rows import micros
from rota.store.sqlite.ruled_claims import merged_line
from rota.store.sqlite.schema import migrate
from rota.store.sqlite.statements import insert_many, statement
from rota.store.sqlite.url import parse
from rota.store.sqlite.writer import Transaction
from rota.testing.conformance.factories import T0, at, new

NOW = micros(T0)


@pytest.fixture(params=[0, 3000], ids=["empty", "full"])
def connection(request: pytest.FixtureRequest) -> Iterator[sqlite3.Connection]:
    address = parse("sqlite://:memory:")
    opened = connect(address)
    migrate(opened, address)
    jobs = [new(queue=f"q{n % 3}", task=f"t{n % 4}", run_at=at(n % 2 * 60)) for n in range(request.param)]
    insert(Transaction(opened), jobs, NOW)
    if request.param:
        opened.execute("UPDATE rota_jobs SET state = 'running', lease_until = 1 WHERE rowid % 10 = 0")
        opened.execute("UPDATE rota_jobs SET state = 'succeeded', finished_at = 1 WHERE rowid % 10 = 1")
        opened.execute("ANALYZE")
    yield opened
    opened.close()


def plan(connection: sqlite3.Connection, sql: str, params: Sequence[Any] | Mapping[str, Any]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]


def reads_of_jobs(steps: Sequence[str]) -> list[str]:
    names = ("rota_jobs", "beside", "beyond", "seen", "held", "waits")
    starts = tuple(f"{verb} {name}" for verb in ("SCAN", "SEARCH") for name in names)
    return [step for step in steps if step.startswith(starts)]


HOT = {
    "promote": ((NOW,), ["INTEGER PRIMARY KEY", "rota_jobs_later (run_at<?)", "rota_jobs_tenants"]),
    "next_due": ((), ["rota_jobs_later"]),
    "claim": (("w", 1, 1, "[1]"), ["INTEGER PRIMARY KEY"]),
    "expired": ((NOW, 10), ["rota_jobs_running (lease_until<?)"]),
    "take_over": (("w", 1, "[]"), ["rota_jobs_id (id=?)"]),
    "claimed": (("[1]",), ["INTEGER PRIMARY KEY"]),
    "finish": ({"changes": "{}", "now": NOW, "state": "succeeded", "more": 0}, ["rota_jobs_id (id=?)"]),
    "requeue": ({"changes": "{}", "now": NOW}, ["rota_jobs_id (id=?)", "rota_jobs_tenants"]),
    "delete": (("[]",), ["rota_jobs_id (id=?)"]),
    "renew": ({"leases": "[]", "until": NOW, "worker": "w"}, ["rota_jobs_id (id=?)"]),
    "remove": (("{}",), ["rota_jobs_id (id=?)"]),
    "outdated": (("failed", NOW, 9), ["rota_jobs_finished (state=? AND finished_at>? AND finished_at<?)"]),
    "any_rules": ((), ["rota_jobs_held", "rota_jobs_tenants"] * 2),
    "hold": (('[[1, ""]]',), ["INTEGER PRIMARY KEY"]),
    "running_keys": (("[]",), ["rota_jobs_running_key (concurrency_key=?)"]),
    "retried": (("[]",), ["rota_jobs_retried (concurrency_key=?)"]),
    "keys_of": (("[]",), ["rota_jobs_id (id=?)"]),
    "released": (("[]",), ["rota_jobs_id (id=?)"]),
    "reserved": ({"tenant": "x", "unit": "day", "begins": 1}, ["rota_jobs_priced (tenant=? AND price>?)"]),
    "lane_jobs": (
        ("q0", "x", "", "t0", 9),
        ["rota_jobs_held (queue=? AND tenant=? AND lane=? AND task=?)"],
    ),
    "lane_heads": (
        {"queue": "q0", "lanes": "[]"},
        [
            "rota_jobs_held (queue=? AND tenant=? AND lane=?)",
            "INTEGER PRIMARY KEY",
            "rota_jobs_held (queue=? AND tenant=? AND lane=? AND task>?)",
            "INTEGER PRIMARY KEY",
        ],
    ),
    "held_lanes": (
        {"queue": "", "tenant": "", "lane": "", "task": "", "most": 9, "queues": "[]", "tenants": "[]"},
        [
            "rota_jobs_held ((queue,tenant,lane,task)>(?,?,?,?))",
            "INTEGER PRIMARY KEY",
            "rota_jobs_held (queue=? AND tenant=? AND lane=? AND task>?)",
            "rota_jobs_held (queue=? AND tenant=? AND lane>?)",
            "rota_jobs_held (queue=? AND tenant>?)",
            "rota_jobs_held (queue>?)",
            "INTEGER PRIMARY KEY",
        ],
    ),
    "tenants_in_line": (
        {"queue": "q0", "rank": 0, "most": 9},
        ["rota_jobs_tenants (queue=? AND rank=?)", "rota_jobs_tenants (queue=? AND rank=? AND tenant>?)"],
    ),
    "tenant_heads": (
        {"tenants": "[]", "queue": "q0", "rank": 0, "tasks": "[]", "each": 1},
        ["INTEGER PRIMARY KEY", "rota_jobs_tenants (queue=? AND rank=? AND tenant=?)"],
    ),
    "tenant_quota": (
        ("x", 9, "x", "x", 9, "x", 9),
        [
            "rota_jobs_live",
            "rota_jobs_beside (tenant=?)",
            "rota_jobs_tenants",
            "INTEGER PRIMARY KEY",
            "rota_jobs_tenants (queue=? AND rank>?)",
            "rota_jobs_tenants (queue>?)",
            "INTEGER PRIMARY KEY",
            "rota_jobs_tenants (queue=? AND rank=? AND tenant=?)",
        ],
    ),
    "ahead": (
        ("q0", "t0", 1, 1, "", 9),
        ["rota_jobs_ready (queue=? AND task=? AND (rank,run_at,id)<(?,?,?))"],
    ),
    "ended_of_tenant": (
        {"tenant": "x", "state": "failed", "most": 9},
        ["rota_jobs_finished (state=? AND finished_at>?)"],
    ),
    "lanes": (
        (),
        [
            "rota_jobs_ready",
            "INTEGER PRIMARY KEY",
            "rota_jobs_ready (queue=? AND task>?)",
            "rota_jobs_ready (queue>?)",
            "INTEGER PRIMARY KEY",
        ],
    ),
}


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_walks_its_indexes(connection: sqlite3.Connection, name: str) -> None:
    params, expected = HOT[name]
    steps = plan(connection, statement(name), params)
    reads = reads_of_jobs(steps)
    assert len(reads) == len(expected), steps
    for step, index in zip(reads, expected, strict=True):
        assert index in step
    assert not any("TEMP B-TREE" in step for step in steps), steps


def test_running_jobs_are_counted_among_any_number_of_others(connection: sqlite3.Connection) -> None:
    (read,) = reads_of_jobs(plan(connection, statement("running_by"), ()))
    assert "rota_jobs_running" in read


def test_the_leases_of_a_batch_are_looked_up_by_id(connection: sqlite3.Connection) -> None:
    (read,) = reads_of_jobs(plan(connection, statement("held"), ("{}",)))
    assert "rota_jobs_id (id=?)" in read


@pytest.mark.parametrize("lanes", [1, 5, 50])
def test_the_lanes_of_a_queue_are_merged_without_sorting(connection: sqlite3.Connection, lanes: int) -> None:
    steps = plan(connection, merged_select(lanes), [*(("q0", "t0", 0) * lanes), 100])
    reads = reads_of_jobs(steps)
    assert len(reads) == lanes
    assert all("rota_jobs_ready (queue=? AND task=? AND rank<?)" in step for step in reads)
    assert not any("TEMP B-TREE" in step for step in steps)


@pytest.mark.parametrize("lanes", [1, 50])
def test_so_are_they_where_there_are_rules(connection: sqlite3.Connection, lanes: int) -> None:
    steps = plan(connection, merged_line(lanes), [*(("q0", "t0", 0) * lanes), 100])
    reads = reads_of_jobs(steps)
    assert len(reads) == lanes
    assert all("rota_jobs_ready (queue=? AND task=? AND rank<?)" in step for step in reads)
    assert not any("TEMP B-TREE" in step for step in steps)


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (JobFilter(), "rota_jobs_id"),
        (JobFilter(states=(State.SUCCEEDED,)), "rota_jobs_id"),
        (JobFilter(states=(State.QUEUED,)), "rota_jobs_live"),
        (JobFilter(states=(State.FAILED,)), "rota_jobs_failed"),
        (JobFilter(states=(State.CANCELLED,), queue="q"), "rota_jobs_cancelled"),
        (JobFilter(key="k"), "rota_jobs_key"),
        (JobFilter(parent="p", states=(State.SUCCEEDED,)), "rota_jobs_parent"),
        (JobFilter(schedule="s"), "rota_jobs_schedule"),
        (JobFilter(error="x"), "rota_jobs_error"),
        (JobFilter(error="x", states=(State.FAILED,)), "rota_jobs_failed"),
        (JobFilter(after_id="a", before_id="b"), "rota_jobs_id (id>? AND id<?)"),
        (JobFilter(after_id="a", states=(State.FAILED,)), "rota_jobs_failed (id>?)"),
    ],
)
def test_a_page_is_read_in_order_without_sorting(
    connection: sqlite3.Connection, where: JobFilter, index: str
) -> None:
    text, params = matching(where)
    steps = plan(connection, f"SELECT id {text} ORDER BY id DESC LIMIT 50", params)
    assert len(steps) == 1, steps
    assert index in steps[0]


def test_running_jobs_are_found_among_any_number_of_others(connection: sqlite3.Connection) -> None:
    text, params = matching(JobFilter(states=(State.RUNNING,)))
    steps = plan(connection, f"SELECT id {text} ORDER BY id DESC LIMIT 50", params)
    assert "rota_jobs_running" in steps[0]


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (AuditFilter(), "rota_audit_id (id>? AND id<?)"),
        (AuditFilter(action="job.", since_at=T0), "rota_audit_id (id>? AND id<?)"),
        (AuditFilter(object="job:1", tenant="x"), "rota_audit_object (object=? AND id>? AND id<?)"),
        (AuditFilter(actor="ann", tenant="x"), "rota_audit_actor (actor=? AND id>? AND id<?)"),
        (AuditFilter(tenant="x", result="done"), "rota_audit_tenant (tenant=? AND id>? AND id<?)"),
    ],
)
def test_a_page_of_the_audit_log_is_read_in_order_without_sorting(
    connection: sqlite3.Connection, where: AuditFilter, index: str
) -> None:
    text, params = audit.matching(where)
    query = f"SELECT * {text} AND id < ? ORDER BY id DESC LIMIT 50"
    (step,) = plan(connection, query, [*params, "f"])
    assert index in step


def test_sealed_lines_of_the_audit_log_are_found_by_their_seal(connection: sqlite3.Connection) -> None:
    steps = plan(connection, statement("prune_audit"), (10,))
    assert any("rota_audit_seal (seal<?)" in step for step in steps), steps


def test_days_that_are_long_over_are_found_without_reading_the_others(connection: sqlite3.Connection) -> None:
    (step,) = plan(connection, statement("prune_run_counts"), (5,))
    assert "rota_run_counts_day (day<?)" in step


def test_no_statement_numbers_its_placeholders() -> None:
    """Python 3.12 warns of ``?1`` with a sequence, and later versions refuse it: name them instead."""
    folder = Path(rota.store.sqlite.__file__).parent
    sources = [*folder.rglob("*.sql"), *folder.rglob("*.py")]
    assert len(sources) > 50
    numbered = [path.name for path in sources if re.search(r"\?[0-9]", path.read_text(encoding="utf-8"))]
    assert numbered == []
    assert "?1" not in insert_many(("queue", "tenant"), 3)
