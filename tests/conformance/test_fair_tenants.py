"""Tenants share a queue by weight, whatever each has waiting. Large numbers, and no clock but the test's.

``ROTA_LONG=1`` has a million jobs wait.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import timedelta

import pytest

from rota.core.ids import uuid7
from rota.model import ClaimRequest, Job, NewJob, Settlement, State, TenantRule
from rota.store.protocol import Store
from rota.testing.conformance.factories import T0, change

LONG = os.environ.get("ROTA_LONG") == "1"
MANY = 1_000_000 if LONG else 6_000
LATER = 100
EACH_S = 0.02  # the test's time from one claim to the next


@pytest.fixture(params=("sqlite-memory", "postgres"))
def store_url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite-memory":
        return "sqlite://:memory:"
    url: str = request.getfixturevalue("migrated_postgres_url")
    return url


class Producer:
    def __init__(self, store: Store) -> None:
        self.store, self.count = store, 0

    async def add(self, tenant: str, count: int) -> None:
        """Jobs in the order of the calls."""
        for first in range(0, count, 10_000):
            jobs = [self._new(tenant) for _ in range(min(10_000, count - first))]
            await self.store.insert(jobs, T0)

    def _new(self, tenant: str) -> NewJob:
        self.count += 1
        return NewJob(id=uuid7(int(T0.timestamp() * 1000), self.count), task="work", tenant=tenant)


class Claimer:
    """A worker whose jobs take no time: every turn settles the jobs of the one before."""

    def __init__(self, store: Store, limit: int) -> None:
        self.store, self.limit = store, limit
        self.turns = 0
        self.held: list[Job] = []
        self.begun: Counter[str] = Counter()

    async def turn(self) -> list[Job]:
        self.turns += 1
        request = ClaimRequest(worker="w", limit=self.limit, lease_s=30)
        settled: list[Settlement] = [
            change(job, State.SUCCEEDED, worker="w", remove=True) for job in self.held
        ]
        now = T0 + timedelta(seconds=self.turns * EACH_S)
        self.held = list((await self.store.turn(settled, request, now)).jobs)
        self.begun.update(job.tenant for job in self.held)
        return self.held


@pytest.mark.parametrize("limit", [10, 500])
async def test_a_hundred_that_come_after_a_crowd_begin_within_twice_their_share(
    store: Store, limit: int
) -> None:
    producer, claimer = Producer(store), Claimer(store, limit)
    await producer.add("crowd", MANY)
    await claimer.turn()
    await claimer.turn()
    for n in range(LATER):
        await producer.add(f"later-{n}", 1)
    begun_before = sum(claimer.begun.values())
    while sum(tenant != "crowd" for tenant in claimer.begun) < LATER:
        assert len(await claimer.turn()) == limit, "the crowd gets all the rest"
        begun = sum(claimer.begun.values()) - begun_before
        # Each is one of 101: the turn of its job is among the first 101, counted in whole claims.
        assert begun <= 2 * (LATER + 1) + limit, f"{len(claimer.begun) - 1} of {LATER} after {begun} jobs"
    assert max(claimer.begun[f"later-{n}"] for n in range(LATER)) == 1


async def test_weights_of_one_and_three_come_out_over_ten_thousand_jobs(store: Store) -> None:
    producer, claimer = Producer(store), Claimer(store, 32)
    assert await store.put_rules([TenantRule(name="heavy", weight=3.0)], T0) == [1]
    await producer.add("light", 10_000)
    await producer.add("heavy", 10_000)
    while sum(claimer.begun.values()) < 10_000:
        assert len(await claimer.turn()) == 32
    ratio = claimer.begun["heavy"] / claimer.begun["light"]
    assert 3 / 1.15 <= ratio <= 3 * 1.15, claimer.begun


async def test_small_claims_keep_to_weights_too(store: Store) -> None:
    producer, claimer = Producer(store), Claimer(store, 1)
    await store.put_rules([TenantRule(name="heavy", weight=3.0)], T0)
    await producer.add("light", 200)
    await producer.add("heavy", 200)
    for _ in range(200):
        assert len(await claimer.turn()) == 1
    assert claimer.begun["heavy"] / claimer.begun["light"] == pytest.approx(3, rel=0.15)


async def test_order_within_a_tenant_is_kept_while_others_pass(store: Store) -> None:
    producer, claimer = Producer(store), Claimer(store, 7)
    for n in range(300):
        await producer.add("abc"[n % 7 % 3], 1)
    order: dict[str, list[str]] = defaultdict(list)
    while held := await claimer.turn():
        for job in sorted(held, key=lambda job: (job.run_at, job.id)):
            order[job.tenant].append(job.id)
    assert sum(map(len, order.values())) == 300
    for ids in order.values():
        assert ids == sorted(ids)


async def test_a_slow_tenant_beside_a_fast_one_does_not_end_with_every_slot(store: Store) -> None:
    slots, slow_turns, turns = 20, 100, 150
    producer = Producer(store)
    for _ in range(40):
        await producer.add("slow", 10)
        await producer.add("fast", 97)
    running: dict[str, tuple[Job, int]] = {}  # until which turn
    begun: Counter[str] = Counter()
    for turn in range(turns):
        ended = [job for job, end in running.values() if end <= turn]
        for job in ended:
            del running[job.id]
        for job in await turn_of(store, ended, running, slots, turn):
            running[job.id] = (job, turn + (slow_turns if job.tenant == "slow" else 1))
            begun[job.tenant] += turn >= turns // 2
    held = Counter(job.tenant for job, _ in running.values())
    assert held["slow"] <= slots * 0.6, held
    assert begun["fast"] >= slots * 0.4 * turns / 2 * 0.9, begun


async def turn_of(
    store: Store, ended: list[Job], running: dict[str, tuple[Job, int]], slots: int, turn: int
) -> Iterator[Job]:
    holds = Counter(job.tenant for job, _ in running.values())
    request = ClaimRequest(worker="w", limit=slots - len(running), lease_s=3000, holds=tuple(holds.items()))
    settled = [change(job, State.SUCCEEDED, worker="w", remove=True) for job in ended]
    found = await store.turn(settled, request, T0 + timedelta(seconds=turn * EACH_S))
    return iter(found.jobs)
