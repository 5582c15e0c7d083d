"""PostgreSQL: a role that uses the schema but does not own it."""

from __future__ import annotations

import psycopg
import pytest

from rota.model import JobFilter, PageRequest, RetentionCutoffs, State
from rota.store.calls import settle
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, in_state, running


async def test_upkeep_by_a_role_that_does_not_own_the_schema_warns_once(
    migrated_postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    owner = PostgresStore(migrated_postgres_url)
    await owner.maintain(RetentionCutoffs(), 1, T0)
    await owner.close()
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(
            "DO $$ BEGIN CREATE ROLE runtime LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
        )
        connection.execute("GRANT USAGE ON SCHEMA rota TO runtime")
        connection.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA rota TO runtime")
    store = PostgresStore(migrated_postgres_url.replace("//rota@", "//runtime@"))
    await store.open()
    await store.maintain(RetentionCutoffs(), 1, at(86_400 * 100))
    await store.maintain(RetentionCutoffs(), 1, at(86_400 * 100))
    assert [r.message.count("does not own") for r in caplog.records if r.name == "rota.store"] == [1]
    ended = await in_state(store, State.SUCCEEDED)
    job = await running(store)
    await settle(store, [change(job, State.SUCCEEDED)], at(86_400 * 100))
    where = "SELECT tableoid::regclass::text FROM rota.done WHERE id = %s"
    ((part,),) = await store._connections.rows(where, (job.id,))
    assert part == "rota.done_default"
    cutoffs = {state: at(86_400 * 99) for state in (State.SUCCEEDED, State.FAILED, State.CANCELLED)}
    assert (await store.maintain(RetentionCutoffs(jobs=cutoffs), 100, T0)).jobs == 1
    assert not (await store.jobs(JobFilter(ids=(ended,)), PageRequest())).items
    await store.close()
