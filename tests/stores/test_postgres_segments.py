"""PostgreSQL: while an old snapshot is held, claims leave the index entries of jobs long gone behind."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from segments import CLAIM, OPEN, ROUNDS, TIDY, churn, drain, is_settled, listed, old_snapshot

from rota.model import CurrentOverview, NewJob, State
from rota.store.calls import claim, settle
from rota.store.postgres.definitions import FIRST_FUNCTIONS, FUNCTIONS, MIGRATIONS, PREAMBLE
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, ids, new, want

LONG = os.environ.get("ROTA_CRASH") == "long"
DEAD = 200_000 if LONG else 20_000
FEW = 5000  # entries that a claim may pass, whatever the number of dead ones
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def passed(admin: psycopg.Connection, index: str = "queued_due", limit: int = 10) -> int:
    """How many entries of the index one claim reads. The claim is taken back."""
    name = sql.Literal(f"rota.{index}")
    count = sql.SQL("SELECT pg_stat_get_xact_tuples_returned({}::regclass)").format(name)
    with admin.transaction(force_rollback=True):
        ((before,),) = admin.execute(count).fetchall()
        admin.execute(CLAIM, (limit,))
        ((after,),) = admin.execute(count).fetchall()
    return int(after - before)


async def tidied(store: PostgresStore, admin: psycopg.Connection) -> None:
    """Claims until older segments are left behind; there must be nothing to claim."""
    for _ in range(ROUNDS):
        if is_settled(admin):
            return
        assert not await claim(store, want(), at(1))
        await asyncio.sleep(0.01)
    raise AssertionError(f"older segments are still there: {listed(admin)}")


# --- the cost of a claim --------------------------------------------------------------------------


async def few_are_passed(store: PostgresStore, admin: psycopg.Connection, index: str = "queued_due") -> None:
    """The list of segments follows within about a second of claims."""
    for _ in range(ROUNDS):
        if passed(admin, index) < FEW / 3:
            return
        await claim(store, want(), T0)
        await asyncio.sleep(0.02)
    raise AssertionError(f"a claim passes {passed(admin, index)} entries: {listed(admin)}")


async def test_claims_do_not_cost_by_the_number_of_dead_entries(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    with old_snapshot(migrated_postgres_url):
        await churn(store, DEAD)
        await few_are_passed(store, admin)
        await churn(store, 5000)
        await few_are_passed(store, admin)
        await store.insert([new()], T0)
        assert passed(admin) < FEW
        assert len(await claim(store, want(), at(1))) == 1
    await churn(store, 1000)  # as before, when the snapshot is gone


@pytest.mark.parametrize("how", ["another queue", "unknown task", "unknown tasks"])
async def test_jobs_that_nobody_claims_do_not_keep_dead_entries_in_the_way(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str, how: str
) -> None:
    left = [
        new(queue="unserved") if how == "another queue" else new(task="lost", priority=1) for _ in range(700)
    ]
    left = left if how == "unknown tasks" else left[:3]
    await store.insert(left, T0)
    mine: dict[str, Any] = {"queues": ("default",)} if how == "another queue" else {"tasks": ("work",)}
    with old_snapshot(migrated_postgres_url):
        for _ in range(ROUNDS):
            await store.insert([new() for _ in range(500)], T0)
            taken = await claim(store, want(500, **mine), T0)
            assert len(taken) == 500
            await settle(store, [change(job, State.SUCCEEDED) for job in taken], at(1))
            if listed(admin)["newest"] > 4:
                break
            await asyncio.sleep(0.02)
        assert listed(admin)["newest"] > 4
        await few_are_passed_by(store, admin, mine)
    assert await drain(store) == ids(left)


async def few_are_passed_by(store: PostgresStore, admin: psycopg.Connection, mine: dict[str, Any]) -> None:
    for _ in range(ROUNDS):
        if passed(admin, limit=1) < FEW:
            return
        await claim(store, want(1, **mine), T0)
        await asyncio.sleep(0.02)
    raise AssertionError(f"a claim passes {passed(admin, limit=1)} entries: {listed(admin)}")


async def test_a_waiting_backlog_is_read_from_where_it_begins(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    backlog = [new() for _ in range(12_000)]
    await store.insert(backlog, T0)
    with old_snapshot(migrated_postgres_url):
        taken: list[str] = []
        while len(taken) < 9000:
            taken += ids(await claim(store, want(100), T0))
        for _ in range(ROUNDS):
            if passed(admin) < FEW:
                break
            taken += ids(await claim(store, want(1), T0))
            await asyncio.sleep(0.02)
        assert passed(admin) < FEW
    assert taken + await drain(store, 500) == ids(backlog)


async def test_jobs_due_later_do_not_leave_entries_in_the_way(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    with old_snapshot(migrated_postgres_url):
        await store.insert([new(run_at=LONG_AGO + HOUR) for _ in range(6000)], LONG_AGO)
        assert len(await drain(store, 1000)) == 6000
        await few_are_passed(store, admin, "queued_later")
        late = new(run_at=LONG_AGO + HOUR / 2)  # as from a transaction that was open until now
        await store.insert([late], LONG_AGO)
        assert not await claim(store, want(), at(1))
        admin.execute("UPDATE rota.segments SET checked_at = NULL")
        await store.reclaim("w2", 30, 10, T0)
        assert ids(await claim(store, want(), at(1))) == [late.id]


async def test_a_new_segment_begins_new_rows_of_the_tally(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    """Each success updates one; the versions that are gone would be in the way of the next."""
    for opened in range(3):
        await store.insert([new(), new()], T0)
        succeeded, failed = await claim(store, want(), T0)
        await settle(store, [change(succeeded, State.SUCCEEDED), change(failed, State.FAILED)], T0)
        assert admin.execute("SELECT count(*), sum(n) FROM rota.tally").fetchone() == (
            2 * opened + 2,
            2 * opened + 2,
        )
        admin.execute(OPEN)
    assert (await store.survey(CurrentOverview(T0, None))).counts[State.SUCCEEDED] == 3


FILL_RUNNING = """
INSERT INTO rota.running (id, created_at, run_at, task, queue, tenant, rank, payload, lease_token, attempt,
                          max_attempts, started_at, worker, lease_until, cancel_requested,
                          auto_remove, origin)
SELECT gen_random_uuid(), now(), now(), 'work', 'default', 'default', 0,
       to_json(repeat('x', 1800)), 1, 1, 3, now(), 'gone', 'infinity', false, false, 'api'
  FROM generate_series(1, 20000);
DELETE FROM rota.running;
"""


async def test_workers_share_the_sweeps_of_a_table_full_of_dead_rows(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    first, second = new(), new()
    with old_snapshot(migrated_postgres_url):
        admin.execute(FILL_RUNNING)
        await store.insert([first], T0)
        assert ids(await claim(store, want(), T0)) == [first.id]
        assert ids(await store.reclaim("w2", 600, 10, at(100))) == [first.id]
        await store.insert([second], T0)
        assert ids(await claim(store, want(), T0)) == [second.id]
        admin.execute("UPDATE rota.segments SET swept_at = clock_timestamp() + interval '-1 s'")
        assert not await store.reclaim("w3", 600, 10, at(100))
        admin.execute("UPDATE rota.segments SET swept_at = swept_at - interval '5 s'")
        assert ids(await store.reclaim("w3", 600, 10, at(100))) == [second.id]


# --- nothing is lost ------------------------------------------------------------------------------


async def test_a_late_commit_into_an_older_segment_is_found_at_once(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url) as late:
        (job,) = store.insert_with(late, [new()], T0)  # type: ignore[misc]
        for _ in range(3):
            admin.execute(OPEN)
            admin.execute(TIDY)
            assert not await claim(store, want(), at(1))
        assert listed(admin)["awaited_from"] == [0]
        assert not listed(admin)["closed"] and not listed(admin)["old_segment"]
        late.commit()
    assert ids(await claim(store, want(), at(1))) == [job.id]
    await tidied(store, admin)


async def test_a_rolled_back_insert_leaves_nothing_to_wait_for(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url) as late:
        store.insert_with(late, [new()], T0)
        admin.execute(OPEN)
        admin.execute(TIDY)
        assert not await claim(store, want(), at(1))
        assert listed(admin)["awaited"]
        late.rollback()
    await tidied(store, admin)


async def test_a_claim_that_is_rolled_back_gives_its_jobs_back(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    jobs = [new() for _ in range(5)]
    await store.insert(jobs, T0)
    with psycopg.connect(migrated_postgres_url) as other:
        assert other.execute(CLAIM, (3,)).fetchone() == (3,)
        admin.execute(OPEN)
        assert ids(await claim(store, want(), T0)) == ids(jobs[3:])
        assert not await claim(store, want(), T0)
        other.rollback()
    assert ids(await claim(store, want(), T0)) == ids(jobs[:3])


async def test_an_insert_that_waited_for_the_table_goes_to_the_newest_segment(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    """It reads which one that is only after it has the lock that rota.tidy looks for."""
    many = [new() for _ in range(60)]  # streamed
    alike = [new(), new()]
    with psycopg.connect(migrated_postgres_url) as other:
        other.execute("LOCK TABLE rota.queued")
        inserts = [
            asyncio.create_task(store.insert(some, T0)) for some in ([new()], alike, [new(key="k")], many)
        ]
        waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'rota.queued'::regclass AND NOT granted"
        for _ in range(ROUNDS):
            if admin.execute(waiting).fetchone() == (4,):
                break
            await asyncio.sleep(0.02)
        assert admin.execute(waiting).fetchone() == (4,)
        other.execute(OPEN)
        other.commit()
        await asyncio.gather(*inserts)
    found = admin.execute("SELECT DISTINCT segment FROM rota.queued").fetchall()
    assert found == [(1,)]


@pytest.mark.parametrize("on_conflict", [None, "replace"])
async def test_a_job_stored_with_an_old_view_is_found_at_once(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str, on_conflict: str | None
) -> None:
    if on_conflict is not None:
        await store.insert([new(key="k", run_at=at(3600))], T0)
    with old_snapshot(migrated_postgres_url) as caller:
        admin.execute(OPEN)
        await tidied(store, admin)
        fields = {} if on_conflict is None else {"key": "k", "on_conflict": on_conflict}
        (job,) = store.insert_with(caller, [new(**fields)], T0)  # type: ignore[misc]
        caller.commit()
    assert ids(await claim(store, want(), at(1))) == [job.id]
    await tidied(store, admin)


async def test_a_list_that_was_emptied_by_hand_is_made_again(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    admin.execute(OPEN)
    await tidied(store, admin)
    before, after = new(), new()
    await store.insert([before], T0)
    admin.execute("TRUNCATE rota.segments")
    await store.insert([after], T0)
    assert ids(await claim(store, want(), at(1))) == [after.id]
    await store.reclaim("w2", 30, 10, T0)
    assert ids(await claim(store, want(), at(1))) == [before.id]


async def test_every_way_back_into_the_queue_leads_to_a_segment_that_is_read(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    retried, later, parked = new(), new(run_at=at(1)), new(tenant="paused")
    await store.insert([retried, later, parked], T0)
    (job,) = await claim(store, want(exclude_tenants=("paused",)), T0)
    admin.execute(OPEN)
    admin.execute(TIDY)
    assert is_settled(admin)
    await settle(store, [change(job, State.QUEUED)], T0)
    admin.execute(OPEN)
    found = await claim(store, want(), at(1))
    assert sorted(ids(found)) == sorted(ids([retried, later, parked]))


# --- order ----------------------------------------------------------------------------------------


async def test_the_order_is_exact_across_segments(store: PostgresStore, admin: psycopg.Connection) -> None:
    jobs: list[NewJob] = []
    for turn in range(6):
        jobs += (some := [new(priority=n % 3, run_at=at(-(n * 7 % 50))) for n in range(400)])
        await store.insert(some, T0)
        admin.execute(OPEN)
        if turn % 2:
            first = sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))[:15]
            assert ids(await claim(store, want(15), T0)) == ids(first)
            jobs = [job for job in jobs if job not in first]
    expected = sorted(jobs, key=lambda job: (-job.priority, job.run_at, job.id))
    assert await drain(store, 45) == ids(expected)
    await tidied(store, admin)


async def test_paused_tenants_stand_aside_in_every_segment(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    loud, quiet = [], []
    for _ in range(3):
        loud += (some := [new(tenant="loud") for _ in range(300)])
        quiet += (others := [new(tenant="quiet") for _ in range(30)])
        await store.insert([*some, *others], T0)
        admin.execute(OPEN)
    assert await drain(store, exclude_tenants=("loud",)) == ids(quiet)
    assert await drain(store, 50) == ids(loud)


async def test_concurrent_claims_inserts_and_rotations_lose_and_double_nothing(
    migrated_postgres_url: str, admin: psycopg.Connection
) -> None:
    stores = [PostgresStore(migrated_postgres_url) for _ in range(5)]
    for store in stores:
        await store.open()
    stored: list[str] = []
    taken: list[str] = []
    wanted = (20_000 if LONG else 3000) // 3
    producing = 3

    async def produce(number: int) -> None:
        nonlocal producing
        for n in range(0, wanted, 10):
            jobs = [new(queue=f"q{number % 2}", priority=n % 4) for _ in range(60 if n % 100 == 0 else 10)]
            await stores[number].insert(jobs, T0)
            stored.extend(ids(jobs))
        producing -= 1

    async def consume(number: int) -> None:
        while True:
            is_last = producing == 0
            jobs = await claim(stores[number], want(9 + number), at(1))
            taken.extend(ids(jobs))
            await settle(stores[number], [change(job, State.SUCCEEDED) for job in jobs], at(1))
            if is_last and not jobs:
                return

    async def rotate() -> None:
        while producing:
            await asyncio.to_thread(admin.execute, OPEN)
            await asyncio.sleep(0.02)

    with old_snapshot(migrated_postgres_url):
        async with asyncio.timeout(300):
            await asyncio.gather(*map(produce, range(3)), consume(3), consume(4), rotate())
    taken += await drain(stores[0])
    for store in stores:
        await store.close()
    assert sorted(taken) == sorted(stored)


# --- migration ------------------------------------------------------------------------------------


async def test_jobs_that_wait_during_the_migration_keep_their_order(postgres_url: str) -> None:
    jobs = [new(priority=n % 3) for n in range(200)]
    parts = [PREAMBLE, *(function.sql for function in FIRST_FUNCTIONS)]
    parts += [migration.sql for migration in MIGRATIONS if migration.name < "0006_segments"]
    parts += [function.sql for function in FUNCTIONS if function.name.startswith("count_ended")]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("".join(parts).encode())
        connection.cursor().executemany(
            "INSERT INTO rota.queued (id, created_at, run_at, rank, task, due) "
            "VALUES (%s, %s, %s, %s, 't', %s)",
            [*((j.id, T0, T0, -j.priority, True) for j in jobs), (new().id, T0, at(3600), 0, False)],
        )
    store = PostgresStore(postgres_url)
    assert (await store.schema.migrate())[0] == "0006_segments"
    await store.open()
    try:
        assert await drain(store) == ids(sorted(jobs, key=lambda job: (-job.priority, job.id)))
        assert len(await claim(store, want(), at(3600))) == 1
    finally:
        await store.close()
