"""Random verbs in random order: after every step the store and the model of its rules must agree.

``ROTA_MACHINE=long`` walks much further, along other ways each time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from machine.model import LEASE_S, Entry, Model
from rota.core import lifecycle
from rota.core.ids import uuid7
from rota.model import Change, Edit, JobFilter, JobId, Lease, NewJob, PageAsk, Pulse, State, Want
from rota.store.open import open_store
from rota.store.protocol import Store

T = TypeVar("T")
LONG = os.environ.get("ROTA_MACHINE") == "long"
START = datetime(2030, 1, 1, 12, tzinfo=UTC)
ENDS = (State.QUEUED, State.SUCCEEDED, State.FAILED, State.CANCELLED)

queues = st.sampled_from(["a", "b"])
tenants = st.sampled_from(["x", "y"])
keys = st.sampled_from([None, None, "k1", "k2"])
priorities = st.integers(-1, 1)
delays = st.sampled_from([0, 0, 0, 7, 40])
picks = st.integers(0, 10**6)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, make: Callable[[], Coroutine[Any, Any, Store]]) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = self.run(make())
        self.model = Model()
        self.now = START
        self.made: list[JobId] = []
        self.leases: list[tuple[Lease, int]] = []  # every lease ever held, with its attempt
        self.highest: dict[JobId, int] = {}

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(verb)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    def later(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def new_id(self) -> JobId:
        self.made.append(uuid7(int(START.timestamp() * 1000), len(self.made) + 1))
        return self.made[-1]

    # --- verbs -------------------------------------------------------------------------------

    @rule(queue=queues, priority=priorities, tenant=tenants, delay=delays, key=keys,
          on_conflict=st.sampled_from(["return", "raise", "replace"]))  # fmt: skip
    def insert(
        self, queue: str, priority: int, tenant: str, delay: int, key: str | None, on_conflict: Any
    ) -> None:
        new = NewJob(
            id=self.new_id(), task="work", queue=queue, priority=priority, tenant=tenant, key=key,
            on_conflict=on_conflict, run_at=self.later(delay) if delay else None,
        )  # fmt: skip
        (answer,) = self.run(self.store.insert([new], self.now))
        assert (answer.id, answer.outcome, answer.state) == self.model.insert(new, self.now)

    @precondition(lambda self: self.made)
    @rule(pick=picks)
    def insert_again(self, pick: int) -> None:
        known = self.model.jobs.get(self.made[pick % len(self.made)])
        if known is None:  # refused, removed or deleted: the id is free
            return
        new = NewJob(id=known.id, task="work", tenant=known.tenant, key=known.key)
        (answer,) = self.run(self.store.insert([new], self.now, again=True))
        assert (answer.id, answer.outcome, answer.state) == self.model.insert(new, self.now, again=True)

    @rule(
        limit=st.integers(1, 4), named=st.sampled_from([None, ("a",), ("b",)]), worker=st.sampled_from("vw")
    )
    def claim(self, limit: int, named: tuple[str, ...] | None, worker: str) -> None:
        want = Want(worker=worker, limit=limit, lease_s=LEASE_S, queues=named)
        due = self.model.due(want, self.now)
        jobs = self.run(self.store.claim(want, self.now))
        taken = [self.model.jobs[job.id] for job in jobs]
        assert len(taken) == min(limit, len(due))
        assert sorted(job.priority for job in taken) == sorted(job.priority for job in due[:limit])
        for queue in {job.queue for job in due}:
            mine = [job.id for job in taken if job.queue == queue]
            assert mine == [job.id for job in due if job.queue == queue][: len(mine)]
        for job in jobs:
            entry = self.model.claim(job.id, worker, self.now)
            self.leases.append((Lease(id=job.id, token=entry.token), entry.attempt))
            assert (job.token, job.attempt, job.worker) == (entry.token, entry.attempt, worker)

    @precondition(lambda self: self.leases)
    @rule(
        pick=picks,
        state=st.sampled_from(ENDS),
        delay=delays,
        refund=st.booleans(),
        follow=st.booleans(),
        key=keys,
    )
    def settle(
        self, pick: int, state: State, delay: int, refund: bool, follow: bool, key: str | None
    ) -> None:
        lease, attempt = self.leases[-1 - pick % min(len(self.leases), 6)]
        then = (NewJob(id=self.new_id(), task="work", queue="a", tenant="x", key=key),) if follow else ()
        change = Change(
            id=lease.id, token=lease.token, state=state, attempt=attempt - refund, then=then,
            run_at=self.later(delay) if delay and state is State.QUEUED else None,
        )  # fmt: skip
        self.settle_as_the_model(change)

    @precondition(lambda self: self.leases)
    @rule(pick=picks)
    def remove(self, pick: int) -> None:
        lease, attempt = self.leases[pick % len(self.leases)]
        self.settle_as_the_model(
            Change(id=lease.id, token=lease.token, state=State.SUCCEEDED, attempt=attempt, remove=True)
        )

    def settle_as_the_model(self, change: Change) -> None:
        accepted = self.model.settle(change, self.now)
        assert self.run(self.store.settle([change], self.now)) == (frozenset() if accepted else {change.id})

    @rule(worker=st.sampled_from("vw"))
    def beat(self, worker: str) -> None:
        recent = {lease.id: lease for lease, _ in self.leases[-8:]}  # a process holds a job once
        held = [self.model.holds(lease.id, lease.token) for lease in recent.values()]
        pulse = Pulse(worker=worker, document="{}", lease_s=LEASE_S, leases=list(recent.values()))
        reply = self.run(self.store.beat(pulse, self.now))
        mine = [job for job in held if job is not None]
        for job in mine:
            job.lease_until = self.later(LEASE_S)
        assert reply.lost == recent.keys() - {job.id for job in mine}
        assert reply.cancel >= {job.id for job in mine if job.cancel_requested}

    @rule(seconds=st.sampled_from([1, 7, 20, 40]))
    def wait(self, seconds: int) -> None:
        self.now = self.later(seconds)

    @rule(limit=st.integers(1, 3))
    def reclaim(self, limit: int) -> None:
        expired = self.model.expired(self.now)
        jobs = self.run(self.store.reclaim("rescuer", LEASE_S, limit, self.now))
        assert len(jobs) == min(limit, len(expired))
        for job in jobs:
            assert job.id in expired
            assert job.worker == self.model.jobs[job.id].worker
            entry = self.model.reclaim(job.id, "rescuer", self.now)
            self.leases.append((Lease(id=job.id, token=entry.token), entry.attempt))
            assert (job.token, job.attempt) == (entry.token, entry.attempt)

    # --- operators ---------------------------------------------------------------------------

    @precondition(lambda self: self.made)
    @rule(verb=st.sampled_from(["cancel", "retry", "delete"]), chosen=st.sets(picks, min_size=1, max_size=4))
    def edit(self, verb: str, chosen: set[int]) -> None:
        edits = {"cancel": lifecycle.cancel("no", self.now), "retry": lifecycle.retry(self.now)}
        edit = edits.get(verb, lifecycle.delete())
        self.edit_as_the_model(edit, {self.made[pick % len(self.made)] for pick in chosen})

    @precondition(lambda self: self.made)
    @rule(pick=picks, delay=delays, queue=queues, priority=priorities)
    def move(self, pick: int, delay: int, queue: str, priority: int) -> None:
        edit = lifecycle.move(run_at=self.later(delay), queue=queue, priority=priority)
        self.edit_as_the_model(edit, {self.made[pick % len(self.made)]})

    def edit_as_the_model(self, edit: Edit, ids: set[JobId]) -> None:
        expected = self.model.editable(ids, edit)
        touched = self.run(self.store.edit(JobFilter(ids=tuple(sorted(ids))), edit, 100, self.now))
        assert len(set(touched)) == len(touched)
        if edit.verb != "retry":
            assert set(touched) == expected
        for id in touched:
            assert id in expected
            self.model.edit(id, edit, self.now)
        assert edit.verb != "retry" or not self.model.editable(ids, edit)  # whoever could be retried was

    @rule(state=st.sampled_from(ENDS[1:]), age=st.sampled_from([0, 20]), limit=st.integers(1, 3))
    def prune(self, state: State, age: int, limit: int) -> None:
        before = self.later(-age) + timedelta(microseconds=1)
        expected = self.model.prunable(state, before)
        count = self.run(self.store.prune({state: before}, limit, self.now))
        assert count == min(limit, len(expected))
        left = {job.id for job in self.everything()}
        gone = self.model.jobs.keys() - left
        assert gone <= expected
        assert len(gone) == count
        for id in gone:
            del self.model.jobs[id]

    # --- what must always hold ---------------------------------------------------------------

    def everything(self) -> list[Any]:
        return list(self.run(self.store.jobs(JobFilter(), PageAsk(limit=1000))).items)

    @invariant()
    def store_and_model_agree(self) -> None:
        found = {job.id: job for job in self.everything()}
        assert found.keys() == self.model.jobs.keys()
        for id, job in found.items():
            assert _shown(job) == _shown(self.model.jobs[id])

    @invariant()
    def tokens_never_fall(self) -> None:
        for job in self.model.jobs.values():
            assert job.token >= self.highest.get(job.id, 0)
            self.highest[job.id] = job.token

    @invariant()
    def a_key_has_one_live_job(self) -> None:
        held = [(job.tenant, job.key) for job in self.everything() if job.key and not job.is_final]
        assert len(held) == len(set(held))

    @invariant()
    def counts_agree(self) -> None:
        overview = self.run(self.store.overview(self.now))
        states = [job.state for job in self.model.jobs.values()]
        for state in State:
            if state.value not in overview.estimated:
                assert overview.counts[state.value] == states.count(state), state


def _shown(job: Any | Entry) -> tuple[object, ...]:
    running = job.state is State.RUNNING
    lease = (job.worker, job.lease_until, job.cancel_requested) if running else None
    return (
        job.state,
        job.token,
        job.attempt,
        job.queue,
        job.priority,
        job.run_at,
        job.key,
        job.finished_at,
        lease,
    )


def walk(make: Callable[[], Coroutine[Any, Any, Store]], ways: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: StoreMachine(make),
        settings=settings(
            max_examples=5000 if LONG else ways,
            stateful_step_count=200 if LONG else steps,
            derandomize=not LONG,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )


@pytest.mark.timeout(0)
def test_sqlite_in_memory_keeps_the_rules_on_every_way() -> None:
    async def make() -> Store:
        store = open_store("sqlite://:memory:")
        await store.migrate()
        await store.open()
        return store

    walk(make, ways=100, steps=40)


@pytest.mark.timeout(0)
def test_sqlite_in_a_file_keeps_the_rules_on_every_way(tmp_path: Path) -> None:
    serial = iter(range(10**9))

    async def make() -> Store:
        store = open_store(f"sqlite:///{tmp_path / f'{next(serial)}.db'}")
        await store.migrate()
        await store.open()
        return store

    walk(make, ways=20, steps=30)


@pytest.mark.timeout(0)
def test_postgres_keeps_the_rules_on_every_way(migrated_postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(migrated_postgres_url, autocommit=True) as admin:
        tables = admin.execute(
            "SELECT string_agg(format('%I.%I', n.nspname, c.relname), ', ') FROM pg_class c"
            " JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE n.nspname = 'rota' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
            " AND c.relname <> 'migrations'"
        ).fetchone()
        assert tables is not None

        async def make() -> Store:
            admin.execute(f"TRUNCATE {tables[0]}".encode())
            store = open_store(migrated_postgres_url)
            await store.open()
            return store

        walk(make, ways=50, steps=35)
