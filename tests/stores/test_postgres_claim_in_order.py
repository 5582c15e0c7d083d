"""PostgreSQL: claims that take the next jobs just as they come, and claims that must not."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.rows import dict_row

from rota.model import Job, Limit, LimitRule, NewJob, State, TenantRule
from rota.store.calls import claim, settle
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, change, ids, new, want

CLAIM = "SELECT * FROM rota.claim('w', %s, 60, NULL, '{}', %s, NULL, %s, %s, %s, NULL, NULL, %s)"
FAIRLY = """
SELECT * FROM rota.claim_fairly(
    'w', %s, %s, NULL, '{}', %s, NULL, %s, %s, %s, NULL, NULL, false, true, NULL, %s)
"""
# the planner is led as inside rota.claim
SETTINGS = """
SELECT set_config(split_part(c, '=', 1), split_part(c, '=', 2), true)
  FROM pg_proc AS p, unnest(p.proconfig) AS c
 WHERE p.oid = 'rota.claim'::regproc AND c NOT LIKE 'search_path%'
"""
CALLS = "SELECT coalesce(sum(calls), 0) FROM pg_stat_xact_user_functions WHERE funcname = %s"
# what a claim leaves behind: what runs under which limits, and what the buckets have left
LEFT = """
SELECT (SELECT json_agg(ARRAY[id::text, ruled::text] ORDER BY id) FROM rota.running),
       (SELECT json_agg(ARRAY[name, full_ns::text] ORDER BY name) FROM rota.limits),
       (SELECT json_agg(ARRAY[concurrency_key, full_ns::text] ORDER BY concurrency_key) FROM rota.buckets),
       (SELECT count(*) FROM rota.queued WHERE due IS NULL)
"""
LIM = 80
FAMILY, QUEUE, TASK = "key:*", "queue:default", "task:work"


class Claimed(NamedTuple):
    ids: list[str]
    was_in_order: bool


def calls(admin: psycopg.Connection, function: str) -> int:
    """By this session; those of earlier transactions may still be among them."""
    ((count,),) = admin.execute(CALLS, (function,)).fetchall()
    return int(count)


class Session:
    """A caller of ``rota.claim`` that continues where its last claim ended, as a store does."""

    def __init__(self, admin: psycopg.Connection) -> None:
        self.admin = admin
        self.since: str | None = None
        self.state: str | None = None

    def claim(
        self, lim: int = LIM, now: datetime = T0, free: int | None = None, seed: float = 0.5
    ) -> Claimed:
        with self.admin.transaction(), self.admin.cursor(row_factory=dict_row) as cursor:
            cursor.execute("SET LOCAL track_functions = 'all'")
            cursor.execute(
                "SELECT setseed(%s)", (seed,)
            )  # with the one given it does not go round the tenants
            before = calls(self.admin, "claim_fairly")
            cursor.execute(CLAIM, (lim, None, self.since, free, self.state, now))
            rows: list[dict[str, Any]] = cursor.fetchall()
            answer = next(row for row in rows if row["id"] is None)
            self.since = answer["created_at"]
            self.state = None if answer["payload"] is None else json.dumps(answer["payload"])
            taken = [str(row["id"]) for row in rows if row["id"] is not None]
            return Claimed(taken, was_in_order=calls(self.admin, "claim_fairly") == before)


async def rules(store: PostgresStore, **limits: dict[str, Any]) -> None:
    await store.put_rules([LimitRule(name=name, chosen=Limit(**given)) for name, given in limits.items()], T0)


def tenants(count: int, **fields: Any) -> list[NewJob]:
    return [new(tenant=f"t{n}", **fields) for n in range(count)]


def keys(count: int, each: int = 1) -> list[NewJob]:
    return [new(concurrency_key=f"k{n // each}") for n in range(count)]


PLAIN = [new() for _ in range(3 * LIM)]
IN_ORDER: dict[str, tuple[dict[str, dict[str, Any]], list[NewJob]]] = {
    "a job each of many tenants": ({}, tenants(3 * LIM)),
    "one tenant beside the default one": ({}, [new(tenant="acme") for _ in range(3 * LIM)]),
    "an ample queue": ({QUEUE: {"running": 1000}}, PLAIN),
    "an ample task": ({TASK: {"running": 1000}}, PLAIN),
    "an ample tenant": ({"tenant:default": {"running": 1000}}, PLAIN),
    "an ample key": ({"key:k0": {"running": 1000}}, keys(3 * LIM, each=3 * LIM)),
    "an ample family": ({FAMILY: {"running": 3}}, keys(3 * LIM)),
    "an ample family and queue": ({FAMILY: {"running": 3}, QUEUE: {"running": 1000}}, keys(3 * LIM)),
    "an ample rate": ({QUEUE: {"rate": "100/s", "burst": 1000}}, PLAIN),
    "ample rates of keys": ({FAMILY: {"rate": "100/s", "burst": 1000}}, keys(3 * LIM, each=3)),
    "limits of other things": (
        {"task:other": {"running": 1}, "tenant:other": {"running": 1}, "key:other": {"running": 1}},
        PLAIN,
    ),
}


@pytest.mark.parametrize("case", IN_ORDER)
async def test_claims_are_in_order_where_that_is_fair_and_limits_are_ample(
    store: PostgresStore, admin: psycopg.Connection, case: str
) -> None:
    limits, jobs = IN_ORDER[case]
    await rules(store, **limits)
    await store.insert(jobs, T0)
    session = Session(admin)
    first = session.claim()
    second, third = session.claim(), session.claim()
    assert second.was_in_order and third.was_in_order
    assert sorted([*first.ids, *second.ids, *third.ids]) == sorted(job.id for job in jobs)


def walking_seed(admin: psycopg.Connection) -> float:
    """With it a claim in order looks for tenants that the line does not show."""
    for seed in (n / 100 for n in range(100)):
        admin.execute("SELECT setseed(%s)", (seed,))
        ((chance,),) = admin.execute("SELECT random()").fetchall()
        if 0.04 < chance < 0.24:
            return seed
    raise AssertionError("no seed gives such a chance")


async def test_the_next_claim_starts_behind_the_last_job_of_the_line_that_was_taken(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    names = [f"t{n:03}" for n in range(5 * LIM)]
    random.Random(1).shuffle(names)
    jobs = [new(tenant=name) for _ in range(2) for name in names]
    await store.insert(jobs, T0)
    session, seed = Session(admin), walking_seed(admin)
    line, taken = [job.id for job in jobs], set(session.claim().ids)
    for n in range(4):
        state = json.loads(session.state or "{}") | {
            "walk": ["default", names[0] if n % 2 else sorted(names)[-9]]
        }
        session.state = json.dumps(state)
        found = session.claim(seed=seed)
        assert found.was_in_order
        taken.update(found.ids)
        assert session.since is not None
        (place,) = json.loads(session.since)
        assert taken.issuperset(line[: line.index(place["id"]) + 1])
    assert len(taken) == 5 * LIM
    assert taken != set(line[: 5 * LIM])  # some were looked for behind the line


async def test_a_spoiled_family_leaves_the_keys_to_the_next_longest(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await rules(store, **{"key:a:*": {"running": 1}, "key:a:b*": {"running": 1}})
    admin.execute("UPDATE rota.limits SET running = -5 WHERE name = 'key:a:b*'")
    session = Session(admin)
    running = Counter[str]()
    for n in range(4):
        jobs = {job.id: job for job in [new(concurrency_key=f"a:b{i}") for i in range(LIM)]}
        await store.insert(list(jobs.values()), at(n))
        running.update(str(jobs[one].concurrency_key) for one in session.claim(now=at(n)).ids if one in jobs)
    assert set(running.values()) == {1}


async def test_claims_beside_limits_of_idle_queues_are_plain(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    await rules(store, **{"queue:other": {"running": 1}})
    await store.insert(PLAIN, T0)
    with admin.transaction():
        admin.execute("SET LOCAL track_functions = 'all'")
        rows = admin.execute(CLAIM, (LIM, None, None, None, None, T0)).fetchall()
        assert calls(admin, "pick_in_order") == calls(admin, "claim_fairly") == 0
    assert len(rows) == LIM + 1
    await store.insert([new(queue="other") for _ in range(2)], T0)
    taken = await claim(store, want(3 * LIM), T0)  # now one of them has something due
    assert Counter(job.queue for job in taken) == {"default": 2 * LIM, "other": 1}


async def start(
    store: PostgresStore, session: Session, limits: dict[str, dict[str, Any]], jobs: list[NewJob]
) -> None:
    """The limits are known to the session, as after its first claims, and then the jobs come."""
    await rules(store, **limits)
    await store.insert([new(concurrency_key="k-first") for _ in range(2)], at(-1))
    assert len(session.claim(2, at(-1)).ids) == 2
    await store.insert(jobs, T0)


NOT_IN_ORDER: dict[str, tuple[dict[str, dict[str, Any]], list[NewJob], int]] = {
    # limits, jobs, how many of them begin
    "a tenant with more jobs than others": ({}, [*tenants(LIM - 1), new(tenant="t0"), *tenants(LIM)], LIM),
    "a full queue": ({QUEUE: {"running": 42}}, PLAIN, 40),
    "a full task": ({TASK: {"running": 42}}, PLAIN, 40),
    "a full tenant": ({"tenant:default": {"running": 42}}, PLAIN, 40),
    "a full key": ({"key:k0": {"running": 40}}, keys(LIM, each=LIM), 40),
    "a key with too many of a family": (
        {FAMILY: {"running": 3}},
        [*keys(LIM - 4), *keys(4, each=4)],
        LIM - 2,
    ),
    "a task that some have": (
        {"task:slow": {"running": 5}},
        [*[new(task="slow") for _ in range(8)], *[new() for _ in range(LIM)]],
        LIM,
    ),
    "a tenant that some have": ({"tenant:t1": {"running": 1000}}, tenants(LIM), LIM),
    "a key beside its family": (
        {FAMILY: {"running": 9}, "key:k1": {"running": 1}},
        keys(LIM, each=4),
        LIM - 3,
    ),
    "two families": (
        {"key:a*": {"running": 2}, "key:b*": {"running": 3}},
        [new(concurrency_key="ab"[n % 2]) for n in range(LIM)],
        5,
    ),
    "too few tokens": ({QUEUE: {"rate": "1/s", "burst": 30}}, PLAIN, 29),
    "too few tokens for the units": (
        {QUEUE: {"rate": "1/s", "burst": 62}},
        [new(units=2) for _ in range(LIM)],
        30,
    ),
    "too few tokens of a key": ({FAMILY: {"rate": "1/s", "burst": 3}}, keys(LIM, each=5), LIM * 3 // 5),
    "strict keys": ({FAMILY: {"running": 3, "strict": True}}, keys(LIM), LIM),
}


@pytest.mark.parametrize("case", NOT_IN_ORDER)
async def test_claims_are_not_in_order_where_not_all_may_begin_alike(
    store: PostgresStore, admin: psycopg.Connection, case: str
) -> None:
    limits, jobs, begin = NOT_IN_ORDER[case]
    session = Session(admin)
    await start(store, session, limits, jobs)
    taken = session.claim()
    assert not taken.was_in_order
    assert len(taken.ids) == begin


async def test_a_budget_is_asked_before_each_job(store: PostgresStore, admin: psycopg.Connection) -> None:
    session = Session(admin)
    await store.put_rules([TenantRule(name="acme", budget=10.0, period="day")], T0)
    await start(store, session, {}, [new(tenant="acme", price=1.0) for _ in range(LIM)])
    taken = session.claim()
    assert not taken.was_in_order and len(taken.ids) == 10


@pytest.mark.parametrize(("free", "begin"), [(10, 10), (LIM, LIM)])
async def test_no_more_than_the_free_slots_are_claimed_of_a_limit_that_is_not_ample(
    store: PostgresStore, admin: psycopg.Connection, free: int, begin: int
) -> None:
    session = Session(admin)
    await start(store, session, {QUEUE: {"running": 100}}, PLAIN)
    taken = session.claim(free=free)
    assert len(taken.ids) == begin
    assert taken.was_in_order == (begin == LIM)


async def full_key(store: PostgresStore, held: int) -> Job:
    """A job that fills the key a, whose other jobs are held, as the store's last claim has seen."""
    await rules(store, **{"key:a": {"running": 1}})
    await store.insert([new(concurrency_key="a") for _ in range(1 + held)], T0)
    (running,) = await claim(store, want(), T0)
    assert not await claim(store, want(), T0)
    return running


async def test_a_held_job_of_a_key_comes_before_those_in_the_line(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    running = await full_key(store, held=1)
    another = PostgresStore(migrated_postgres_url)
    await settle(another, [change(running, State.SUCCEEDED)], T0)
    await another.close()
    later, other = new(concurrency_key="a"), new()
    await store.insert([later, other], T0)
    taken = await claim(store, want(), T0)
    assert later.id not in ids(taken) and len(taken) == 2


async def test_a_place_that_a_turn_frees_is_taken_in_that_turn(store: PostgresStore) -> None:
    running = await full_key(store, held=1)
    await store.insert([new() for _ in range(3)], T0)
    result = await store.turn([change(running, State.SUCCEEDED)], want(), T0)
    assert Counter(job.concurrency_key for job in result.jobs) == {"a": 1, None: 3}


async def test_a_limit_that_was_raised_lets_held_jobs_begin_at_once(store: PostgresStore) -> None:
    await full_key(store, held=3)
    await store.put_rules([LimitRule(name="key:a", chosen=Limit(running=3), version=1)], T0)
    await store.insert([new()], T0)
    taken = await claim(store, want(), T0)
    assert Counter(job.concurrency_key for job in taken) == {"a": 2, None: 1}


async def test_held_jobs_keep_large_claims_from_nothing_but_get_their_turn(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    """Another worker frees the places: large claims look into the lanes again within 50 ms."""
    await rules(store, **{"tenant:a": {"running": 5}})
    await store.insert([new(tenant="a") for _ in range(100)], T0)
    running = await claim(store, want(100), T0)
    assert len(running) == 5
    await store.insert([new(tenant="b") for _ in range(40 * LIM)], T0)
    session, now, in_order = Session(admin), T0, 0
    for _ in range(8):
        now += timedelta(milliseconds=5)
        taken = session.claim(now=now)
        assert len(taken.ids) == LIM
        in_order += taken.was_in_order
    assert in_order >= 4
    await settle(store, [change(job, State.SUCCEEDED) for job in running], now)
    freed_at = now
    mine = {job.id for job in running}
    while True:
        now += timedelta(milliseconds=5)
        begun = set(session.claim(now=now).ids)
        of_a = {
            str(one) for (one,) in admin.execute("SELECT id FROM rota.running WHERE tenant = 'a'").fetchall()
        } - mine
        if of_a:
            break
        assert now - freed_at < timedelta(milliseconds=50)
    assert of_a <= begun and len(of_a) == 5


async def test_due_jobs_start_first_and_held_ones_are_looked_for_soon(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    running = await full_key(store, held=2)
    other = new()
    await store.insert([other], T0)
    result = await store.turn([], want(), T0)
    assert ids(result.jobs) == [other.id]
    assert result.next_due_at is None  # nothing that is held can begin
    another = PostgresStore(migrated_postgres_url)
    await settle(another, [change(running, State.SUCCEEDED)], T0)
    await another.close()
    other = new()
    await store.insert([other], T0)
    result = await store.turn([], want(), T0)
    assert ids(result.jobs) == [other.id]
    assert result.next_due_at is not None and result.next_due_at <= T0 + timedelta(milliseconds=50)
    (held,) = await claim(store, want(), result.next_due_at)
    assert held.concurrency_key == "a"


async def test_a_tenant_behind_a_line_of_others_gets_its_turn(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    """The line shows a job each of hundreds that have many; the late one is at its end."""
    await store.insert([job for _ in range(40) for job in tenants(2 * LIM)], T0)
    (late,) = await store.insert([new(tenant="t-late")], T0)
    session, in_order = Session(admin), 0
    for n in range(1, 41):
        taken = session.claim(seed=n / 41)
        in_order += taken.was_in_order
        if late.id in taken.ids:
            break
    else:
        raise AssertionError(f"not among the first {40 * LIM} jobs")
    assert in_order > n / 2


def mixed(seed: int) -> tuple[dict[str, dict[str, Any]], list[TenantRule], list[NewJob], int | None]:
    """Some limits, tenants and jobs, and how many slots are free."""
    chance = random.Random(seed)
    tenants_of = chance.choice(
        [lambda n: "default", lambda n: "acme", lambda n: f"t{n}", lambda n: f"t{n % 90}"]
    )
    key_of = chance.choice(
        [
            lambda n: None,
            lambda n: f"k{n}",
            lambda n: f"k{n % 30}",
            lambda n: "k",
            lambda n: [None, "k1"][n % 2],
        ]
    )
    units = chance.choice([None, None, 1, 3])
    task_of = chance.choice([lambda n: "work", lambda n: "work", lambda n: ["work", "other"][n % 2]])
    jobs = [
        new(
            tenant=tenants_of(n),
            concurrency_key=key_of(n),
            task=task_of(n),
            units=units,
            priority=n % chance.choice([1, 1, 2]),
        )
        for n in range(4 * LIM)
    ]
    names = [
        "queue:default",
        "tenant:t3",
        "task:work",
        "task:other",
        "tenant:acme",
        "key:*",
        "key:k*",
        "key:k1",
        "key:k",
    ]
    given: list[dict[str, Any]] = [
        {"running": 10_000}, {"running": 400}, {"running": 170}, {"running": 4},
        {"rate": "1000/s", "burst": 5000}, {"rate": "10/s", "burst": 900},
        {"running": 300, "rate": "50/s", "burst": 600},
    ]  # fmt: skip
    limits = {name: chance.choice(given) for name in chance.sample(names, chance.randint(0, 3))}
    rules = [TenantRule(name="t3", weight=2.0)] if chance.random() < 0.2 else []
    return limits, rules, jobs, chance.choice([None, 5, LIM])


async def test_a_claim_in_order_comes_to_the_same_as_one_that_weighs_every_job(
    store: PostgresStore, admin: psycopg.Connection
) -> None:
    in_order = 0
    for seed in range(150):
        limits, tenant_rules, jobs, free = mixed(seed)
        admin.execute("TRUNCATE rota.queued, rota.running, rota.limits, rota.buckets, rota.tenants")
        admin.execute("UPDATE rota.segments SET version = version + 1, fair = false, many = false, rules = 0")
        await rules(store, **limits)
        await store.put_rules(tenant_rules, T0)
        await store.insert(jobs, T0)
        session = Session(admin)
        for n in range(3):
            now = at(n)
            left: list[Any] = []
            since, state = session.since, session.state
            with admin.transaction(force_rollback=True):
                admin.execute("SELECT setseed(0.5)")
                lease_until = now + timedelta(seconds=60)
                admin.execute(FAIRLY, (LIM, lease_until, None, since, free, state, now))
                left += admin.execute(LEFT).fetchall()
            taken = session.claim(now=now, free=free)
            if taken.was_in_order:
                in_order += 1
                assert admin.execute(LEFT).fetchall() == left, (seed, n, limits)
    assert 75 <= in_order <= 375, in_order
