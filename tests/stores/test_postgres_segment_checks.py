"""PostgreSQL: segments of due jobs when much is unusual: open transactions, thousands of queues, timeouts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import psycopg
import pytest
from segments import CLAIM, OPEN, ROUNDS, TIDY, drain, is_settled, listed, old_snapshot

from rota.errors import StoreUnavailable
from rota.model import JobsAhead, State
from rota.store.calls import claim, settle
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import LEASE_S, T0, at, change, ids, new, want

# A row as a program of the version before segments writes it, or a hand.
ROW = """
INSERT INTO rota.queued (id, payload, created_at, run_at, rank, due, task, queue, tenant)
SELECT gen_random_uuid(), '{}', now(), '2030-01-01 11:00Z', 0, true, 'work', 'default', 'default'
  FROM generate_series(1, %s)
"""
DEAD = 20_000


@pytest.fixture
async def late(migrated_postgres_url: str) -> AsyncIterator[psycopg.Connection]:
    """The open transaction of a caller."""
    with psycopg.connect(migrated_postgres_url) as connection:
        yield connection
        connection.rollback()


def transactions(admin: psycopg.Connection) -> int:
    """How many have got an id so far, which are those that write."""
    ((count,),) = admin.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint").fetchall()
    return int(count)


# --- open transactions ----------------------------------------------------------------------------


async def test_an_open_transaction_is_listed_once_however_many_segments_are_left(
    store: PostgresStore, admin: psycopg.Connection, late: psycopg.Connection
) -> None:
    (job,) = store.insert_with(late, [new()], T0)  # type: ignore[misc]
    for _ in range(300):
        admin.execute(OPEN)
        admin.execute(TIDY)
    assert len(listed(admin)["awaited"]) == 1 and listed(admin)["awaited_from"] == [0]
    (second,) = store.insert_with(late, [new()], T0)  # type: ignore[misc]
    late.commit()
    found: list[str] = []
    for _ in range(3):  # some hundred segments at a time
        found += ids(await claim(store, want(), at(1)))
    assert found == [job.id, second.id]
    assert is_settled(admin)


async def test_polls_write_and_wait_for_nothing_while_a_transaction_is_open(
    store: PostgresStore, admin: psycopg.Connection, late: psycopg.Connection, migrated_postgres_url: str
) -> None:
    store.insert_with(late, [new()], T0)
    admin.execute(OPEN)
    admin.execute(TIDY)
    with psycopg.connect(migrated_postgres_url) as other:
        assert other.execute(CLAIM, (5,)).fetchone() == (0,)
        before = transactions(admin)
        async with asyncio.timeout(20):  # of a claim that would wait for the other one
            assert not await claim(store, want(), at(1))
        assert transactions(admin) == before


async def test_a_claim_with_one_snapshot_leaves_the_list_alone(
    store: PostgresStore, admin: psycopg.Connection, late: psycopg.Connection, migrated_postgres_url: str
) -> None:
    """It does not see the job that was committed meanwhile."""
    (job,) = store.insert_with(late, [new()], T0)  # type: ignore[misc]
    admin.execute(OPEN)
    admin.execute(TIDY)
    with old_snapshot(migrated_postgres_url) as worker:
        late.commit()
        assert worker.execute(CLAIM, (5,)).fetchone() == (0,)
        worker.commit()
    assert ids(await claim(store, want(), at(1))) == [job.id]


async def test_urgent_jobs_of_an_older_segment_come_first(
    store: PostgresStore, admin: psycopg.Connection, late: psycopg.Connection
) -> None:
    """Also for a worker that would start where its last claim ended."""
    await store.insert([new(run_at=at(-9)) for _ in range(20)], T0)
    urgent = [new(priority=5), new(priority=5)]
    store.insert_with(late, [*urgent, *(new() for _ in range(300))], T0)
    assert len(await claim(store, want(20), T0)) == 20
    admin.execute(OPEN)
    admin.execute(TIDY)
    await store.insert([new() for _ in range(100)], T0)
    assert len(await claim(store, want(50), T0)) == 50
    late.commit()
    admin.execute(TIDY)
    assert listed(admin)["old_segment"] == [0]
    assert ids(await claim(store, want(16), T0))[:2] == ids(urgent)


# --- what others store ----------------------------------------------------------------------------


async def test_a_row_without_a_segment_goes_to_the_newest(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    admin.execute(OPEN)
    admin.execute(TIDY)
    admin.execute(ROW, (3,))
    assert len(await claim(store, want(), at(1))) == 3


async def test_rows_of_a_restored_backup_are_found(store: PostgresStore, admin: psycopg.Connection) -> None:
    """Its data alone, in a store that was made before: segments and transactions of another server."""
    admin.execute(ROW, (2,))
    admin.execute("UPDATE rota.queued SET segment = 7")
    admin.execute("INSERT INTO rota.segments (version, newest, noted) VALUES (2, 3, '99999999')")
    await store.reclaim("w2", LEASE_S, 10, T0)
    assert len(await claim(store, want(), at(1))) == 2
    assert admin.execute("SELECT count(*) FROM rota.segments").fetchone() == (1,)


async def test_a_transaction_to_come_says_nothing_about_snapshots(
    admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    with old_snapshot(migrated_postgres_url):
        assert admin.execute("SELECT rota.is_held_since('99999999')").fetchone() == (None,)


async def test_jobs_of_the_first_instant_do_not_stop_the_list(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    admin.execute(
        "SELECT rota.enqueue('work', run_at => '4714-11-24 00:00:00+00 BC') FROM generate_series(1, 201)"
    )
    admin.execute(OPEN)
    admin.execute(TIDY)
    assert listed(admin)["old_segment"] == [0]
    assert len(await drain(store, 50)) == 201


async def test_living_entries_are_not_counted_as_dead(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    """Of queues whose jobs no one runs, in pages that need no look at the table."""
    queues = tuple(f"q{n}" for n in range(1500))
    await store.insert([new(queue=queue) for queue in queues], T0)
    admin.execute("VACUUM (ANALYZE) rota.queued")
    for _ in range(3):
        assert not await claim(store, want(exclude_queues=queues), T0)
    assert listed(admin)["noted"] is None


async def test_jobs_ahead_are_counted_in_every_segment(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    for _ in range(3):
        await store.insert([new(run_at=at(-5)) for _ in range(300)], T0)
        admin.execute(OPEN)
        admin.execute(TIDY)
    last = new()
    await store.insert([last, new(priority=3)], T0)
    (job,) = (job for job in await claim(store, want(1000), T0) if job.id == last.id)
    await settle(store, [change(job, State.QUEUED)], at(1))
    await store.insert([new(run_at=at(-5)) for _ in range(40)], T0)
    assert await store.survey(JobsAhead(job, 1000)) == 40
    assert await store.survey(JobsAhead(job, 7)) == 7


# --- checks ---------------------------------------------------------------------------------------


async def test_a_check_that_fails_costs_no_rescue_and_is_not_made_again_at_once(
    store: PostgresStore, admin: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    other = PostgresStore(store._given)
    await other.open()
    admin.execute(
        "CREATE OR REPLACE FUNCTION rota.check_segments() RETURNS void LANGUAGE plpgsql "
        "AS $$ BEGIN RAISE 'too slow'; END $$"
    )
    with caplog.at_level(logging.WARNING, "rota.store"):
        assert not await store.reclaim("w2", LEASE_S, 10, T0)
    assert caplog.text.count("the segments of due jobs were not checked: too slow") == 1
    assert listed(admin)["checked_at"] is not None
    await store.insert([new()], T0)
    (job,) = await claim(store, want(), T0)
    assert ids(await store.reclaim("w2", LEASE_S, 10, at(100))) == [job.id]
    await other.reclaim("w3", LEASE_S, 10, T0)
    await other.close()
    assert caplog.text.count("too slow") == 1


async def test_a_check_continues_where_the_last_one_stopped(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    await store.reclaim("w2", LEASE_S, 10, T0)
    with old_snapshot(migrated_postgres_url):
        admin.execute("CREATE TABLE public.other (id int)")  # a transaction after the snapshot
        for _ in range(2):
            admin.execute("SELECT rota.check_segments()")
        admin.execute("UPDATE rota.segments SET version = version + 1, newest = 4500")
        admin.execute(ROW, (2,))
        admin.execute(
            "UPDATE rota.queued SET segment = 4100 WHERE ctid = (SELECT min(ctid) FROM rota.queued)"
        )
        reached = []
        for _ in range(3):
            admin.execute("SELECT rota.check_segments()")
            reached.append((listed(admin)["strays_next"], listed(admin)["closed"]))
        assert reached == [(2000, []), (4000, []), (0, [4100])]
        assert len(await claim(store, want(), at(1))) == 2
    for _ in range(2):  # no snapshot is as old as this: earlier segments need no look
        admin.execute("SELECT rota.check_segments()")
    assert listed(admin)["strays_from"] == 4500


async def test_claims_that_the_server_cancels_are_helped_out(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    """As with a statement timeout, if there are too many dead entries for one claim."""
    with old_snapshot(migrated_postgres_url):
        admin.execute(ROW, (DEAD,))
        admin.execute("DELETE FROM rota.queued")
        with psycopg.connect(migrated_postgres_url) as other:
            other.execute("LOCK TABLE rota.queued")
            claiming = asyncio.create_task(claim(store, want(), at(1)))
            await asyncio.to_thread(cancel_blocked, admin)
            with pytest.raises(StoreUnavailable, match="cancel"):
                await claiming
        await store.insert([new()], T0)
        for _ in range(ROUNDS):  # no claim among them
            await store.reclaim("w2", LEASE_S, 10, T0)
            if listed(admin)["newest"] == 1 and not listed(admin)["closed"]:
                break
            await asyncio.sleep(0.3)
        now = listed(admin)
        assert (now["newest"], now["closed"], now["old_segment"]) == (1, [], [])
        assert len(await claim(store, want(), at(1))) == 1


def cancel_blocked(admin: psycopg.Connection) -> None:
    statement = (
        "SELECT pg_cancel_backend(pid) FROM pg_locks WHERE relation = 'rota.queued'::regclass AND NOT granted"
    )
    for _ in range(100_000):
        if admin.execute(statement).fetchall():
            return
    raise AssertionError("nothing waits for the table")


async def test_many_queues_in_older_segments_share_evenly(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    jobs = [new(queue=f"q{n % 800}") for n in range(1600)]
    await store.insert(jobs, T0)
    admin.execute(OPEN)
    admin.execute(TIDY)
    assert len(listed(admin)["old_queue"]) == 800
    first = await claim(store, want(800), at(1))
    assert len({job.queue for job in first}) == 800
    assert sorted(ids(first) + await drain(store, 300)) == sorted(ids(jobs))
