"""PostgreSQL: the audit log keeps its entries for every role, and finds them by index."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors

from rota.model import AuditEntry, AuditFilter, PageRequest, RetentionCutoffs, State
from rota.store.calls import settle
from rota.store.postgres.audit_queries import page_statement
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.audit import seal
from rota.testing.conformance.factories import ERROR, T0, at, change, running

EVERYTHING = AuditFilter()


def line(action: str = "job.cancel", **fields: object) -> AuditEntry:
    return AuditEntry(**({"action": action, "at": T0, "actor": "ann"} | fields))  # type: ignore[arg-type]


async def actions(store: PostgresStore, where: AuditFilter = EVERYTHING) -> list[str]:
    return [entry.action for entry in (await store.audit(where, PageRequest(newest_first=False))).items]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rota.audit SET actor = 'changed'",
        "DELETE FROM rota.audit",
        "TRUNCATE rota.audit",
        "INSERT INTO rota.audit (id, at, action, actor, via, result) VALUES (1, now(), 'a', 'b', 'c', 'd')",
    ],
)
async def test_even_the_owner_cannot_rewrite_the_log(
    store: PostgresStore, migrated_postgres_url: str, statement: str
) -> None:
    await store.append_audit([line()])
    with (
        psycopg.connect(migrated_postgres_url, autocommit=True) as connection,
        pytest.raises((errors.InsufficientPrivilege, errors.GeneratedAlways)),
    ):
        connection.execute(statement.encode())
    ((entry),) = (await store.audit(EVERYTHING, PageRequest())).items
    assert (entry.action, entry.actor) == ("job.cancel", "ann")


async def test_after_pruning_the_same_transaction_may_not_delete_either(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.append_audit([line("old", at=at(-10))])
    await seal(store, T0)
    await store.append_audit([line("new", at=at(10))])
    with psycopg.connect(migrated_postgres_url) as connection:
        assert connection.execute("SELECT rota.prune_audit(%s, 10)", (T0,)).fetchall() == [(1,)]
        connection.execute("SET LOCAL rota.pruning = 'on'")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("DELETE FROM rota.audit")
        connection.rollback()
    assert (await store.maintain(RetentionCutoffs(audit=T0), 10, T0)).audit_entries == 1
    assert await actions(store) == ["new"]


async def test_a_seal_is_given_once_and_with_it_nothing_else_changes(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.append_audit([line()])
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("UPDATE rota.audit SET seal = 1, actor = 'other'")
        assert await seal(store, T0) is not None
        for change_ in ("seal = NULL", "seal = 2", "actor = 'other'"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(f"UPDATE rota.audit SET {change_}".encode())


async def test_a_line_that_commits_late_is_sealed_later(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url) as slow:
        row = "(at, action, actor, via, result) VALUES (now(), 'slow', 'a', 'sql', 'done')"
        slow.execute(f"INSERT INTO rota.audit {row}".encode())
        await store.append_audit([line("quick")])
        first = await seal(store, T0)
        slow.commit()
    second = await seal(store, T0)
    assert first is not None and second is not None
    assert (first.entries, second.entries, second.first_id < first.first_id) == (1, 1, True)


async def test_a_role_that_does_not_own_the_schema_can_add_seal_and_prune(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE runtime LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        connection.execute("GRANT USAGE ON SCHEMA rota TO runtime")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO runtime")
    runtime = PostgresStore(migrated_postgres_url.replace("//rota@", "//runtime@"))
    await runtime.append_audit([line(at=at(-10))])
    assert await seal(runtime, T0) is not None
    await runtime.append_audit([line("job.retry")])
    assert (await runtime.maintain(RetentionCutoffs(audit=T0), 10, T0)).audit_entries == 1
    assert await actions(runtime) == ["job.retry"]
    await runtime.close()


async def test_ids_grow_as_texts_too_when_the_clock_steps_back(store: PostgresStore) -> None:
    await store.append_audit([line(f"a.{n}", at=at(-n)) for n in range(12)])
    entries = (await store.audit(EVERYTHING, PageRequest(newest_first=False))).items
    assert [entry.action for entry in entries] == [f"a.{n}" for n in range(12)]
    assert [entry.id for entry in entries] == sorted({entry.id for entry in entries})


async def test_lines_of_a_plain_success_are_not_lost_on_the_quick_road(store: PostgresStore) -> None:
    job = await running(store)
    ended = change(
        job, State.SUCCEEDED, audit=(line("email.sent", object=f"job:{job.id}"), line("email.kept"))
    )
    assert not await settle(store, [ended], at(1))
    assert await actions(store) == ["email.sent", "email.kept"]
    assert await settle(store, [ended], at(2)) == {job.id}
    assert await actions(store) == ["email.sent", "email.kept"]


async def test_text_that_the_server_cannot_hold_does_not_lose_the_line(store: PostgresStore) -> None:
    job = await running(store)
    said = line("job.exhausted_retries", message="a\0b", after_json='{"why":"\\u0000"}')
    assert not await settle(store, [change(job, State.FAILED, error_json=ERROR, audit=(said,))], at(1))
    ((entry),) = (await store.audit(EVERYTHING, PageRequest())).items
    assert (entry.message, entry.after) == ("a\ufffdb", {"why": "\0"})


@pytest.mark.parametrize(
    ("where", "index"),
    [
        (AuditFilter(), "audit_pkey"),
        (AuditFilter(object="job:7"), "audit_object"),
        (AuditFilter(tenant="t7"), "audit_tenant"),
        (AuditFilter(actor="u7"), "audit_actor"),
        (AuditFilter(action="a.7"), "audit_action"),
        (AuditFilter(since_at=T0, until_at=at(5)), "audit_at"),
        (AuditFilter(seal=0), "audit_unsealed"),
        (AuditFilter(seal=7), "audit_seal"),
    ],
)
async def test_pages_of_the_log_use_indexes(
    store: PostgresStore, migrated_postgres_url: str, where: AuditFilter, index: str
) -> None:
    lines = [
        line(f"a.{n % 500}", at=at(n), actor=f"u{n % 500}", tenant=f"t{n % 500}", object=f"job:{n % 500}")
        for n in range(20_000)
    ]
    await store.append_audit(lines)
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute("ANALYZE rota.audit")
        statement, params = page_statement(where, PageRequest(limit=50))
        plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN {statement}".encode(), params))
    assert index in plan and "Seq Scan" not in plan, plan
