"""PostgreSQL: lanes of held jobs and limits, where the other stores have nothing to compare."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta

import psycopg
import pytest

from rota.errors import StoreError
from rota.model import ClaimRequest, Limit, LimitRule, State, TenantRule
from rota.store.calls import claim, settle
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, ids, new, want

SETTLE = "SELECT rota.settle(ARRAY[%s]::uuid[], ARRAY[%s::bigint], ARRAY[%s], NULL, NULL, NULL, %s)"
WAITS_FOR = (
    "SELECT wait_event FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
FLAGS = "SELECT fair, many, rules FROM rota.segments ORDER BY version DESC LIMIT 1"
CLAIM = "SELECT * FROM rota.claim('w', %s, 60, NULL, '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, %s)"


def flags(admin: psycopg.Connection) -> tuple[bool, bool, int]:
    (row,) = admin.execute(FLAGS).fetchall()
    return row


def limit(name: str, **fields: object) -> LimitRule:
    return LimitRule(name=name, chosen=Limit(**fields))  # type: ignore[arg-type]


async def test_a_claim_is_plain_until_there_are_tenants_rules_or_held_jobs(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.insert([new() for _ in range(10)], T0)
    await claim(store, want(2), T0)
    assert flags(admin) == (False, False, 0)
    await store.insert([new(tenant="acme")], T0)
    assert flags(admin) == (True, True, 0)
    await store.put_rules([limit("queue:mail", running=1), TenantRule(name="acme", weight=2.0)], T0)
    assert flags(admin) == (True, True, 1 | 32)


@pytest.mark.parametrize("jobs", [1, 5, 80])
async def test_every_way_to_store_jobs_notes_that_there_are_tenants(
    store: PostgresStore, admin: psycopg.Connection, jobs: int
) -> None:
    await store.insert([new(tenant="acme") for _ in range(jobs)], T0)
    assert flags(admin) == (True, True, 0)
    await store.insert([new() for _ in range(jobs)], T0)  # now the default tenant has a lane as well
    assert admin.execute("SELECT count(*) FROM rota.queued WHERE lane = ''").fetchone() == (2 * jobs,)


async def test_claims_are_plain_again_when_nothing_is_left_to_share(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.put_rules([limit("queue:default", running=1)], T0)
    await store.insert([new(task="unknown") for _ in range(400)], T0)
    assert not await claim(store, want(tasks=("work",)), T0)
    await store.put_rules([LimitRule(name="queue:default", version=1)], T0)
    admin.execute("SELECT rota.check_segments()")
    assert flags(admin) == (True, False, 0)  # jobs are held
    assert len(await claim(store, want(400), T0)) == 400
    admin.execute("SELECT rota.check_segments()")
    assert flags(admin) == (False, False, 0)


async def test_claims_stay_plain_beside_a_session_that_takes_many_jobs(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.insert([new() for _ in range(700)], T0)
    admin.execute("BEGIN")
    admin.execute(CLAIM, (400, T0))
    assert len(await claim(store, want(200, tasks=("work",)), T0)) == 200
    admin.execute("COMMIT")
    assert flags(admin) == (False, False, 0)


async def test_a_shared_claim_passes_what_another_session_is_taking(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.insert([new(tenant=f"t{n % 50}") for n in range(600)], T0)
    admin.execute("BEGIN")
    admin.execute(CLAIM, (200, T0))
    with admin.transaction():
        taken = {str(one) for (one,) in admin.execute("SELECT id FROM rota.running").fetchall()}
    jobs = await claim(store, want(300), T0)
    admin.execute("ROLLBACK")
    assert len(taken) == 200 and len(jobs) == 300
    assert taken.isdisjoint(ids(jobs))
    assert len(await claim(store, want(400), at(1))) == 300  # what was rolled back waits where it was


async def test_a_claim_that_waited_for_another_reads_its_jobs_again(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.put_rules([limit("key:*", running=1)], T0)
    await store.insert([new(concurrency_key=f"k{n % 60}") for n in range(120)], T0)
    admin.execute("BEGIN")
    admin.execute(CLAIM, (30, T0))
    waiting = asyncio.create_task(claim(store, want(30), T0))
    await asyncio.sleep(0.02)
    admin.execute("COMMIT")
    jobs = await waiting
    # it found the next thirty keys, and none of those that the other claim has filled
    assert sorted(job.concurrency_key or "" for job in jobs) == sorted(f"k{n}" for n in range(30, 60))


async def test_a_limit_that_another_session_keeps_locked_holds_up_no_other(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.put_rules([limit("key:a", running=1), limit("key:b", running=1)], T0)
    await store.insert([new(concurrency_key=key) for key in "ab"], T0)
    admin.execute("BEGIN")
    admin.execute("SELECT FROM rota.limits WHERE name = 'key:a' FOR UPDATE")
    assert [job.concurrency_key for job in await claim(store, want(), T0)] == ["b"]
    admin.execute("COMMIT")
    assert [job.concurrency_key for job in await claim(store, want(), at(1))] == ["a"]


@pytest.mark.parametrize("name", ["queue:default", "task:work"])
@pytest.mark.parametrize("in_hand", [False, True])
async def test_tenants_share_what_a_rate_lets_begin_one_by_one(
    store: PostgresStore, name: str, in_hand: bool
) -> None:
    await store.put_rules([limit(name, rate="1/s", burst=1), TenantRule(name="b", weight=2.0)], T0)
    for tenant in "abc":
        await store.insert([new(tenant=tenant) for _ in range(80)], T0)
    served: Counter[str] = Counter()
    last = ""
    for second in range(80):
        holds = ((last, 1),) if in_hand and last else ()
        (job,) = await claim(store, want(8, holds=holds), at(second))
        last = job.tenant
        served[last] += 1
    assert 16 <= served["a"] <= 24 and 34 <= served["b"] <= 46 and 16 <= served["c"] <= 24, served


async def test_ten_thousand_full_lanes_are_read_two_thousand_at_a_time(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    lanes = 10_000
    await store.put_rules([limit("key:k*", running=1)], T0)
    await store.insert([new(concurrency_key=f"k{n}") for n in range(lanes) for _ in range(2)], T0)
    taken = 0
    while jobs := await claim(store, want(2500), T0):
        taken += len(jobs)
    assert taken == lanes
    admin.execute("VACUUM rota.queued")  # what claims have moved is no lane
    with admin.transaction():
        admin.execute(CLAIM, (10, T0))
        ((read,),) = admin.execute("SELECT pg_stat_get_xact_tuples_fetched('rota.queued_held'::regclass)")
    assert 2048 <= read < 5 * 2048  # some probes for each lane
    rounds = 1
    while (result := await store.turn([], want(10), at(1))).next_due_at is not None:
        assert not result.jobs
        assert result.next_due_at == at(1)  # again at once: the round is not finished
        rounds += 1
    assert 5 <= rounds <= 12


async def test_a_rule_waits_for_a_claim_under_way_but_not_for_ever(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.insert([new() for _ in range(3)], T0)
    admin.execute("BEGIN")
    admin.execute(CLAIM, (1, T0))
    with pytest.raises(StoreError, match="rules were not changed: a claim of another session"):
        await store.put_rules([limit("queue:default", running=2)], T0)
    waiting = asyncio.create_task(store.put_rules([limit("queue:default", running=2)], T0))
    await asyncio.sleep(0)
    admin.execute("COMMIT")
    assert await waiting == [1]
    assert len(await claim(store, want(), T0)) == 1  # one that ran already counts


async def test_a_rule_and_a_turn_that_settles_and_claims_never_wait_for_each_other(
    store: PostgresStore, admin: psycopg.Connection, migrated_postgres_url: str
) -> None:
    await store.insert([new() for _ in range(3)], T0)
    (job,) = await claim(store, want(1), T0)
    admin.execute("BEGIN")
    admin.execute(SETTLE, (job.id, job.lease_token, job.worker, T0))
    waiting = asyncio.create_task(store.put_rules([limit("queue:default", running=2)], T0))
    with psycopg.connect(migrated_postgres_url, autocommit=True) as watch:
        async with asyncio.timeout(30):
            while (waits_for := watch.execute(WAITS_FOR).fetchone()) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
    assert waits_for == ("advisory",)  # not for the job, with all claims stopped
    await asyncio.to_thread(admin.execute, CLAIM, (1, T0))
    admin.execute("COMMIT")
    assert await waiting == [1]
    assert len(await claim(store, want(), T0)) == 1


async def test_a_claim_that_cannot_lock_a_limit_takes_what_is_not_under_it(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.put_rules([limit("key:a", running=1)], T0)
    jobs = [new(concurrency_key="a"), new(concurrency_key="b"), new()]
    await store.insert(jobs, T0)
    admin.execute("BEGIN")
    admin.execute("SELECT FROM rota.limits FOR UPDATE")
    result = await store.turn([], want(), T0)
    assert ids(result.jobs) == [jobs[1].id, jobs[2].id]
    assert result.next_due_at is not None and T0 < result.next_due_at < at(1)  # it comes back for the other
    admin.execute("ROLLBACK")
    assert ids(await claim(store, want(), T0)) == [jobs[0].id]


async def test_limits_hold_where_the_role_defaults_to_one_snapshot_per_transaction(
    migrated_postgres_url: str, admin: psycopg.Connection
) -> None:
    admin.execute(
        "ALTER DATABASE " + admin.info.dbname + " SET default_transaction_isolation = 'repeatable read'"
    )
    store = PostgresStore(migrated_postgres_url)
    await store.put_rules([limit("key:a", running=2)], T0)
    await store.insert([new(concurrency_key="a") for _ in range(9)], T0)
    claims = await asyncio.gather(*(claim(store, want(worker=f"w{n}"), T0) for n in range(6)))
    assert sum(map(len, claims)) == 2
    await store.close()


async def test_a_freed_slot_is_filled_in_the_same_turn_behind_many_full_lanes(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.put_rules([limit("key:k*", running=1)], T0)
    await store.insert([new(concurrency_key=f"k{n}", priority=1) for n in range(600) for _ in range(2)], T0)
    running = [job for _ in range(2) for job in await claim(store, want(300), T0)]
    assert len(running) == 600
    await store.insert([new() for _ in range(50)], at(1))
    ended = next(job for job in running if job.concurrency_key == "k371")
    result = await store.turn([change(ended, State.SUCCEEDED)], want(5), at(2))
    assert "k371" in {job.concurrency_key for job in result.jobs}


async def test_a_slot_that_is_freed_without_a_claim_wakes_the_queue(store: PostgresStore) -> None:
    await store.put_rules([limit("key:a", running=1)], T0)
    await store.insert([new(concurrency_key="a") for _ in range(2)], T0)
    (job,) = await claim(store, want(), T0)
    heard = asyncio.create_task(store.waker().wait(["default"], 600))
    await asyncio.sleep(0)
    await settle(store, [change(job, State.SUCCEEDED)], at(1))
    async with asyncio.timeout(30):
        await heard
    assert len(await claim(store, want(), at(2))) == 1


async def test_tenants_share_across_segments_and_in_their_own_order(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    opened = "UPDATE rota.segments SET version = version + 1, newest = newest + 1, closed = closed || newest"
    jobs = []
    for _ in range(3):
        some = [new(tenant=tenant) for tenant in ("a", "a", "a", "b") for _ in range(10)]
        await store.insert(some, T0)
        jobs += some
        admin.execute(opened)
    taken = []
    while batch := await claim(store, want(8), T0):
        taken += batch
    assert len(taken) == len(jobs)
    for tenant in "ab":
        assert ids([job for job in taken if job.tenant == tenant]) == [
            j.id for j in jobs if j.tenant == tenant
        ]
    assert Counter(job.tenant for job in taken[:32])["b"] >= 12


async def test_buckets_that_are_full_again_are_forgotten(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    past = T0 - timedelta(days=365 * 20)
    await store.put_rules([limit("key:k*", rate="10/s")], past)
    await store.insert([new(concurrency_key=f"k{n}") for n in range(5)], past)
    assert len(await claim(store, want(), past)) == 5
    assert admin.execute("SELECT count(*) FROM rota.buckets").fetchone() == (5,)
    admin.execute("SELECT rota.check_segments()")
    assert admin.execute("SELECT count(*) FROM rota.buckets").fetchone() == (0,)


async def test_a_claim_compares_no_key_with_each_of_thousands_of_families(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    families = [limit(f"key:{n}:*", running=1, rate="60/m") for n in range(3000)]
    await store.put_rules([*families, limit("key:7:7:*", running=2, rate="60/m", burst=2)], T0)
    keys = ["5:1", "5:1", "5:2", "7:7:1", "7:7:1", "7:7:1", "7:7", "7", "2999:x", "3000:x", "3000:x"]
    await store.insert([new(concurrency_key=key) for key in keys], T0)
    names = admin.execute("SELECT rota.name_limits(NULL, NULL, NULL, %s, 16)", (keys,)).fetchone()
    assert names is not None and len(names[0]) < 4 * len(keys)
    taken = Counter(job.concurrency_key for job in await claim(store, want(), T0))
    expected = {"5:1": 1, "5:2": 1, "7:7:1": 2, "7:7": 1, "7": 1, "2999:x": 1, "3000:x": 2}
    assert taken == expected
    assert admin.execute("SELECT count(*) FROM rota.buckets").fetchone() == (5,)


async def test_a_claim_fills_a_limit_from_a_lane_whatever_joins_that_lane_meanwhile(
    store: PostgresStore,
) -> None:
    await store.put_rules([limit("key:a", running=20)], T0)
    await store.insert([new(concurrency_key="a") for _ in range(60)], T0)
    running = await claim(store, want(60), T0)
    assert len(running) == 20
    await settle(store, [change(job, State.SUCCEEDED) for job in running], at(1))
    await store.insert([new(concurrency_key="a") for _ in range(3)], at(1))  # these join their lane
    assert len(await claim(store, want(50), at(1))) == 20


async def test_held_jobs_stay_in_the_lane_of_their_key_whoever_looks_at_them(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await store.put_rules([limit("key:k", running=1)], T0)
    await store.insert([new(concurrency_key="k")], T0)
    assert len(await claim(store, want(), T0)) == 1
    await store.insert([new(task="rare", concurrency_key="k") for _ in range(600)], T0)
    knows, does_not = want(10, tasks=("a", "rare")), want(10, tasks=("a",))

    async def lanes_after(*claims: ClaimRequest) -> list[tuple[str, str]]:
        for n, one in enumerate(claims):
            assert list(await claim(store, one, at(1 + n))) == []
        return admin.execute("SELECT ctid::text, lane FROM rota.queued ORDER BY id").fetchall()

    await lanes_after(*[does_not] * 20)  # some are held as jobs of an unknown task
    placed = await lanes_after(*[knows] * 150)
    assert {lane for _, lane in placed} == {"k:k"}
    assert await lanes_after(*[does_not, knows] * 20) == placed
