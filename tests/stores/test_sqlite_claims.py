"""SQLite: what a claim costs where there are no rules, and how far it looks where much is held up."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from rota.model import Limit, LimitRule
from rota.store.sqlite import rules
from rota.store.sqlite.claims import claim, merged_select
from rota.store.sqlite.connection import connect
from rota.store.sqlite.inserts import insert
from rota.store.sqlite.lanes import ClaimMemory
from rota.store.sqlite.rows import micros
from rota.store.sqlite.ruled_claims import ALWAYS, MOST_LANES
from rota.store.sqlite.schema import migrate
from rota.store.sqlite.statements import statement
from rota.store.sqlite.url import parse
from rota.store.sqlite.writer import Transaction
from rota.testing.conformance.factories import T0, new, want

NOW = micros(T0)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    address = parse("sqlite://:memory:")
    opened = connect(address)
    migrate(opened, address)
    yield opened
    opened.close()


class Watched(Transaction):
    """Notes every statement and what was given with it."""

    __slots__ = ("seen",)

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.seen: list[tuple[str, Any]] = []
        self.execute = self._note

    def _note(self, sql: str, given: Any = ()) -> sqlite3.Cursor:
        self.seen.append((sql, given))
        return self.connection.execute(sql, given)


def statements_of_a_claim(connection: sqlite3.Connection, memory: ClaimMemory) -> list[str]:
    watched = Watched(connection)
    claim(watched, want(10), NOW, memory)
    return [sql for sql, _ in watched.seen]


def test_without_rules_a_claim_runs_the_statements_of_order_alone(connection: sqlite3.Connection) -> None:
    memory = ClaimMemory()
    insert(Transaction(connection), [new() for _ in range(50)], NOW)
    promote, lanes, select, take, read = statements_of_a_claim(connection, memory)
    assert (promote, select) == (statement("promote"), merged_select(1))
    assert lanes.startswith(statement("lanes"))
    assert (take, read) == (statement("claim"), statement("claimed"))


def test_a_rule_and_a_second_tenant_are_seen_by_the_next_claim(connection: sqlite3.Connection) -> None:
    memory = ClaimMemory()
    insert(Transaction(connection), [new() for _ in range(50)], NOW)
    assert merged_select(1) in statements_of_a_claim(connection, memory)
    insert(Transaction(connection), [new(tenant="acme")], NOW)
    assert merged_select(1) not in statements_of_a_claim(connection, memory)
    assert connection.execute("SELECT fair FROM rota_claiming").fetchone() == (1,)


def test_a_job_stored_after_those_of_another_tenant_can_be_reached_by_its_own(
    connection: sqlite3.Connection,
) -> None:
    early, late = new(), new()
    insert(Transaction(connection), [early], NOW)
    insert(Transaction(connection), [new(tenant="acme")], NOW)
    insert(Transaction(connection), [late], NOW)
    lanes = dict(connection.execute("SELECT id, lane FROM rota_jobs").fetchall())
    assert (lanes[early.id], lanes[late.id]) == (None, "")


def test_a_claim_reads_a_bounded_number_of_full_lanes_and_the_next_continues(
    connection: sqlite3.Connection,
) -> None:
    lanes = MOST_LANES + 500
    transaction, memory = Watched(connection), ClaimMemory()
    jobs = [new(concurrency_key=f"k{n // 2}") for n in range(2 * lanes)]
    insert(transaction, jobs, NOW)
    rules.put(transaction, [LimitRule(name="key:*", chosen=Limit(running=1))], NOW)
    connection.execute("UPDATE rota_jobs SET state = 'running', lease_until = 1 WHERE rowid % 2 = 1")
    connection.execute("UPDATE rota_jobs SET due = 2, lane = 'k:' || concurrency_key WHERE rowid % 2 = 0")

    first = claim(transaction, want(10), NOW, memory)
    assert (list(first.jobs), first.again_at) == ([], NOW)
    walks = [given["most"] for sql, given in transaction.seen if sql == statement("held_lanes")]
    assert sum(walks) <= ALWAYS + MOST_LANES
    second = claim(transaction, want(10), NOW, memory)
    assert (list(second.jobs), second.again_at) == ([], None)  # a whole round has found nothing
    connection.execute("UPDATE rota_jobs SET state = 'succeeded', finished_at = 1 WHERE rowid = 3001")
    found = [*claim(transaction, want(10), NOW, memory).jobs, *claim(transaction, want(10), NOW, memory).jobs]
    assert [job.id for job in found] == [jobs[3001].id]


@pytest.mark.parametrize("limit", ["queue:default", "task:t"])
@pytest.mark.parametrize("in_hand", [False, True])
def test_tenants_share_what_a_limit_lets_begin_one_by_one(
    connection: sqlite3.Connection, limit: str, in_hand: bool
) -> None:
    memory, now = ClaimMemory(), NOW
    transaction = Transaction(connection)
    for tenant in "abc":
        insert(transaction, [new(task="t", tenant=tenant) for _ in range(60)], NOW)
    rules.put(transaction, [LimitRule(name=limit, chosen=Limit(rate="1/s", burst=1))], NOW)
    served: Counter[str] = Counter()
    last = ""
    for _ in range(60):
        holds = ((last, 1),) if in_hand and last else ()
        jobs, _ = claim(transaction, want(8, holds=holds), now, memory)
        (last,) = (job.tenant for job in jobs)
        served[last] += 1
        now += 1_000_000
    assert all(17 <= served[tenant] <= 23 for tenant in "abc"), served
