"""SQLite: the statements of the hot path walk their indexes, whether the tables are empty or full."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from rota.model import JobFilter, State
from rota.store.sqlite.address import parse
from rota.store.sqlite.claiming import merged_pick
from rota.store.sqlite.connection import connect, migrate
from rota.store.sqlite.inserting import insert
from rota.store.sqlite.listing import matching
from rota.store.sqlite.rows import micros
from rota.store.sqlite.statements import statement
from rota.store.sqlite.writer import Transaction
from rota.testing.conformance.given import T0, at, new

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


def plan(connection: sqlite3.Connection, sql: str, params: Sequence[Any]) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)]


def reads_of_jobs(steps: Sequence[str]) -> list[str]:
    names = ("rota_jobs", "beside", "beyond", "seen", "held")
    starts = tuple(f"{verb} {name}" for verb in ("SCAN", "SEARCH") for name in names)
    return [step for step in steps if step.startswith(starts)]


HOT = {
    "promote": ((NOW,), ["INTEGER PRIMARY KEY", "rota_jobs_later (run_at<?)"]),
    "next_due": ((), ["rota_jobs_later"]),
    "claim": (("w", 1, 1, "[1]"), ["INTEGER PRIMARY KEY"]),
    "expired": ((NOW, 10), ["rota_jobs_running (lease_until<?)"]),
    "take_over": (("w", 1, "[]"), ["rota_jobs_id (id=?)"]),
    "claimed": (("[1]",), ["INTEGER PRIMARY KEY"]),
    "finish": (("{}", NOW, "succeeded", 0), ["rota_jobs_id (id=?)"]),
    "requeue": (("{}", NOW), ["rota_jobs_id (id=?)"]),
    "delete": (("[]",), ["rota_jobs_id (id=?)"]),
    "renew": (("[]", NOW), ["rota_jobs_id (id=?)"]),
    "outdated": (("failed", NOW, 9), ["rota_jobs_finished (state=? AND finished_at>? AND finished_at<?)"]),
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


def test_the_leases_of_a_batch_are_looked_up_by_id(connection: sqlite3.Connection) -> None:
    (read,) = reads_of_jobs(plan(connection, statement("held"), ("{}",)))
    assert "rota_jobs_id (id=?)" in read


@pytest.mark.parametrize("lanes", [1, 5, 50])
def test_the_lanes_of_a_queue_are_merged_without_sorting(connection: sqlite3.Connection, lanes: int) -> None:
    steps = plan(connection, merged_pick(lanes), [*(("q0", "t0", 0) * lanes), 100])
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
    ],
)
def test_a_page_is_read_in_order_without_sorting(
    connection: sqlite3.Connection, where: JobFilter, index: str
) -> None:
    text, params = matching(where)
    steps = plan(connection, f"SELECT id {text} ORDER BY id DESC LIMIT 50", params)
    assert len(steps) == 1, steps
    assert index in steps[0]
