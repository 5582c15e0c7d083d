"""Random store calls in random order: after every step the store and the model must agree."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Set
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from machine.claim_check import ClaimCheck
from machine.model import LEASE_S, Entry, Model
from rota.core.ids import uuid7
from rota.core.jobs import lifecycle
from rota.model import (
    ClaimRequest,
    CurrentOverview,
    Edit,
    Heartbeat,
    Job,
    JobFilter,
    JobId,
    Lease,
    NewJob,
    PageRequest,
    RetentionCutoffs,
    Settlement,
    State,
)
from rota.store.calls import settle
from rota.store.protocol import Store
from rota.testing.conformance.factories import change

T = TypeVar("T")
Spec = dict[str, Any]
START = datetime(2030, 1, 1, 12, tzinfo=UTC)
MOST_TURNS = 20
LOOKS_AGAIN = timedelta(milliseconds=50)  # a store that says so looks at a freed slot no later
ENDS = (State.QUEUED, State.SUCCEEDED, State.FAILED, State.CANCELLED)

picks = st.integers(0, 10**6)
queues = st.sampled_from(["a", "b"])
workers = st.sampled_from(["v", "w", "rescuer"])
priorities = st.integers(-1, 1)
delays = st.sampled_from([0, 0, 0, 7, 40])
specs = st.fixed_dictionaries(
    {
        "queue": queues,
        "priority": priorities,
        "delay": delays,
        "task": st.sampled_from(["work", "work", "play"]),
        "tenant": st.sampled_from(["x", "x", "y", "default"]),
        "concurrency_key": st.sampled_from([None, None, "k1", "acc:1", "acc:2"]),
        "units": st.sampled_from([None, None, 2, 3]),
        "price": st.sampled_from([None, None, 40.0]),
        "key": st.sampled_from([None, "k1", "k2"]),
        "on_conflict": st.sampled_from(["return", "raise", "replace"]),
    }
)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self, make: Callable[[], Coroutine[Any, Any, Store]]) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = self.run(make())
        self.model = Model()
        self.now = START
        self.made: list[JobId] = []
        self.leases: list[Job] = []  # every job ever held, as its holder knows it
        self.highest: dict[JobId, int] = {}

    def run(self, verb: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(verb)

    def teardown(self) -> None:
        self.run(self.store.close())
        self.runner.close()

    def later(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    def new(self, spec: Spec) -> NewJob:
        self.made.append(uuid7(int(START.timestamp() * 1000), len(self.made) + 1))
        fields = {name: value for name, value in spec.items() if name != "delay"}
        run_at = self.later(spec["delay"]) if spec["delay"] else None
        return NewJob(id=self.made[-1], run_at=run_at, **fields)

    def some_job(self, pick: int, states: Set[State] = frozenset(State)) -> JobId:
        """Mostly an existing job in one of these states; sometimes any other, or a deleted one."""
        fit = [job.id for job in self.model.jobs.values() if job.state in states]
        among = fit if fit and pick % 4 else self.made
        return among[pick // 4 % len(among)]

    def some_lease(self, pick: int) -> Job:
        """Often a valid lease, often an old one of a job that runs again, sometimes any."""
        good = [job for job in self.leases if self.model.holds(job.id, job.lease_token, job.worker)]
        again = {job.id for job in good}
        late = [job for job in self.leases if job.id in again and job not in good]
        among = (good, good, late, self.leases)[pick % 4] or self.leases
        return among[pick // 4 % len(among)]

    # --- inserting ---------------------------------------------------------------------------

    @initialize(specs=st.lists(specs, min_size=3, max_size=6))
    def begin(self, specs: list[Spec]) -> None:
        self.insert_and_compare(specs)
        self.claim_and_compare(ClaimRequest(worker="v", limit=2, lease_s=LEASE_S))

    @rule(specs=st.lists(specs, min_size=1, max_size=4))
    def insert(self, specs: list[Spec]) -> None:
        self.insert_and_compare(specs)

    def insert_and_compare(self, specs: list[Spec]) -> None:
        jobs = [self.new(spec) for spec in specs]
        answers = self.run(self.store.insert(jobs, self.now))
        expected = [self.model.insert(job, self.now) for job in jobs]
        assert [(answer.id, answer.outcome, answer.state) for answer in answers] == expected

    @rule(pick=picks)
    def insert_again(self, pick: int) -> None:
        known = self.model.jobs.get(self.some_job(pick))
        if known is None:  # never stored, removed or deleted: the id is free
            return
        new = NewJob(id=known.id, task="work", tenant=known.tenant, key=known.key)
        (answer,) = self.run(self.store.insert([new], self.now, retrying=True))
        assert (answer.id, answer.outcome, answer.state) == self.model.insert(new, self.now, again=True)

    # --- working -----------------------------------------------------------------------------

    @rule(limit=st.integers(1, 6), worker=workers)
    def claim(self, limit: int, worker: str) -> None:
        self.claim_and_compare(ClaimRequest(worker=worker, limit=limit, lease_s=LEASE_S))

    @rule(limit=st.integers(1, 4), queue=queues, worker=workers)
    def claim_from_one_queue(self, limit: int, queue: str, worker: str) -> None:
        self.claim_and_compare(ClaimRequest(worker=worker, limit=limit, lease_s=LEASE_S, queues=(queue,)))

    @rule(limit=st.integers(1, 4), tenants=st.sets(st.sampled_from(["x", "y"]), min_size=1), worker=workers)
    def claim_without_some_tenants(self, limit: int, tenants: set[str], worker: str) -> None:
        want = ClaimRequest(worker=worker, limit=limit, lease_s=LEASE_S, exclude_tenants=tuple(tenants))
        self.claim_and_compare(want)

    def claim_and_compare(self, want: ClaimRequest) -> None:
        """Claim as a worker does: until it has what it wants, or the store has no more."""
        for _ in range(MOST_TURNS):
            found = self.run(self.store.turn((), want, self.now))
            taken = [self.model.jobs[job.id] for job in found.jobs]
            check = ClaimCheck(self.model, want, self.now)
            check.check(taken)
            sees_free_slots = check.sees_free_slots(taken)
            for job in found.jobs:
                self.hold(self.model.claim(job.id, want.worker, self.now), job)
            want = check.rest(taken)
            if want.limit == 0:
                return
            if found.next_due_at is None or found.next_due_at > self.now:
                soon = found.next_due_at is not None and found.next_due_at <= self.now + LOOKS_AGAIN
                if sees_free_slots and not soon:
                    ClaimCheck(self.model, want, self.now).check_all_are_held_up()
                return
        raise AssertionError("the store asks to claim again, for ever")

    def hold(self, entry: Entry, job: Job) -> None:
        assert (job.lease_token, job.attempt) == (entry.lease_token, entry.attempt)
        self.leases.append(msgspec.structs.replace(job, worker=entry.worker))

    @precondition(lambda self: self.leases)
    @rule(
        pick=picks,
        state=st.sampled_from(ENDS),
        delay=delays,
        refund=st.booleans(),
        then=st.lists(specs, max_size=1),
    )
    def settle(self, pick: int, state: State, delay: int, refund: bool, then: list[Spec]) -> None:
        job = self.some_lease(pick)
        settlement = change(
            job,
            state,
            attempt=attempt_after(job, state, refund),
            run_at=self.later(delay) if delay and state is State.QUEUED else None,
            then=tuple(self.new(spec) for spec in then),
        )
        self.settle_and_compare([settlement])

    @precondition(lambda self: self.leases)
    @rule(pick=picks, state=st.sampled_from(ENDS), worker=workers)
    def settle_as_another_worker(self, pick: int, state: State, worker: str) -> None:
        self.settle_and_compare([change(self.some_lease(pick), state, worker=worker)])

    @precondition(lambda self: self.leases)
    @rule(ends=st.lists(st.tuples(picks, st.sampled_from(ENDS), st.booleans()), min_size=1, max_size=4))
    def settle_several(self, ends: list[tuple[int, State, bool]]) -> None:
        changes: dict[JobId, Settlement] = {}
        for pick, state, remove in ends:
            job = self.some_lease(pick)
            changes[job.id] = change(job, state, remove=remove and state is State.SUCCEEDED)
        self.settle_and_compare(list(changes.values()))

    @precondition(lambda self: self.leases)
    @rule(pick=picks, state=st.sampled_from(ENDS), refund=st.booleans())
    def settle_and_run_again(self, pick: int, state: State, refund: bool) -> None:
        """Settle, retry and claim at once: long histories are rare if every step is drawn separately."""
        job = self.some_lease(pick)
        self.settle_and_compare([change(job, state, attempt=attempt_after(job, state, refund))])
        self.edit_and_compare(lifecycle.retry(self.now), {job.id})
        self.claim_and_compare(ClaimRequest(worker="w", limit=6, lease_s=LEASE_S))

    def settle_and_compare(self, changes: list[Settlement]) -> None:
        refused = {change.id for change in changes if not self.model.settle(change, self.now)}
        assert self.run(settle(self.store, changes, self.now)) == refused

    @precondition(lambda self: self.leases)
    @rule(worker=workers, pick=picks)
    def beat(self, worker: str, pick: int) -> None:
        mine = {job.id: job for job in self.model.live() if job.lease_until and job.worker == worker}
        leases = {id: Lease(id=id, lease_token=job.lease_token) for id, job in mine.items()}
        other = self.some_lease(pick)
        if other.id not in mine:  # too late, or held by another worker
            leases[other.id] = Lease(id=other.id, lease_token=other.lease_token)
        pulse = Heartbeat(worker=worker, document="{}", lease_s=LEASE_S, leases=list(leases.values()))
        reply = self.run(self.store.heartbeat(pulse, self.now))
        for job in mine.values():
            job.lease_until = self.later(LEASE_S)
        assert reply.lost == leases.keys() - mine.keys()
        assert reply.cancel == {job.id for job in mine.values() if job.cancel_requested}

    @rule(seconds=st.sampled_from([1, 7, 20, 40]))
    def wait(self, seconds: int) -> None:
        self.now = self.later(seconds)

    @rule(limit=st.integers(1, 3), seconds=st.sampled_from([0, 40]))
    def reclaim(self, limit: int, seconds: int) -> None:
        self.now = self.later(seconds)
        expired = self.model.expired(self.now)
        for _ in range(10):  # a store may pass some rescues over after the machine stalled
            jobs = self.run(self.store.reclaim("rescuer", LEASE_S, limit, self.now))
            if jobs or not expired:
                break
        assert len(jobs) == min(limit, len(expired))
        for job in jobs:
            assert job.id in expired
            assert job.worker == self.model.jobs[job.id].worker
            self.hold(self.model.reclaim(job.id, "rescuer", self.now), job)

    # --- operating ---------------------------------------------------------------------------

    @rule(chosen=st.sets(picks, min_size=1, max_size=3))
    def cancel(self, chosen: set[int]) -> None:
        self.operate(lifecycle.cancel("no", self.now), chosen)

    @rule(chosen=st.sets(picks, min_size=1, max_size=3))
    def retry(self, chosen: set[int]) -> None:
        self.operate(lifecycle.retry(self.now), chosen)

    @rule(chosen=st.sets(picks, min_size=1, max_size=2))
    def delete(self, chosen: set[int]) -> None:
        self.operate(lifecycle.delete(), chosen)

    @rule(chosen=st.sets(picks, min_size=1, max_size=2), delay=delays, queue=queues, priority=priorities)
    def move(self, chosen: set[int], delay: int, queue: str, priority: int) -> None:
        edit = lifecycle.move(run_at=self.later(delay), queue=queue, priority=priority)
        self.operate(edit, chosen)

    def operate(self, edit: Edit, chosen: set[int]) -> None:
        self.edit_and_compare(edit, {self.some_job(pick, edit.touches) for pick in chosen})

    def edit_and_compare(self, edit: Edit, ids: set[JobId]) -> None:
        expected = self.model.editable(ids, edit)
        touched = self.run(self.store.edit(tuple(sorted(ids)), edit, self.now))
        assert len(set(touched)) == len(touched)
        assert set(touched) <= expected
        for id in touched:
            self.model.edit(id, edit, self.now)
        if edit.verb == "retry":  # of several with one key only one can be retried, and one must be
            assert not self.model.editable(ids, edit)
        else:
            assert set(touched) == expected

    @rule(state=st.sampled_from(ENDS[1:]), age=st.sampled_from([0, 20]), limit=st.integers(1, 3))
    def prune(self, state: State, age: int, limit: int) -> None:
        before = self.later(-age) + timedelta(microseconds=1)
        expected = self.model.prunable(state, before)
        cutoffs = RetentionCutoffs(jobs={state: before})
        count = self.run(self.store.maintain(cutoffs, limit, self.now)).jobs
        gone = self.model.jobs.keys() - {job.id for job in self.everything()}
        assert gone <= expected
        assert len(gone) == count == min(limit, len(expected))
        for id in gone:
            del self.model.jobs[id]

    # --- invariants ---------------------------------------------------------------

    def everything(self) -> list[Job]:
        return list(self.run(self.store.jobs(JobFilter(), PageRequest(limit=1000))).items)

    @invariant()
    def store_and_model_agree(self) -> None:
        found = {job.id: _shown(job) for job in self.everything()}
        assert found == {job.id: _shown(job) for job in self.model.jobs.values()}

    @invariant()
    def tokens_never_decrease(self) -> None:
        for job in self.everything():
            assert job.lease_token >= self.highest.get(job.id, 0)
            self.highest[job.id] = job.lease_token

    @invariant()
    def a_key_has_one_live_job(self) -> None:
        held = [(job.tenant, job.key) for job in self.everything() if job.key and not job.is_final]
        assert len(held) == len(set(held))

    @invariant()
    def counts_agree(self) -> None:
        overview = self.run(self.store.survey(CurrentOverview(self.now)))
        states = [job.state for job in self.model.jobs.values()]
        for state in State:
            if state.value not in overview.estimated:
                assert overview.counts[state.value] == states.count(state), state


def attempt_after(job: Job, state: State, refund: bool) -> int:
    """A success is never refunded, and a store may count on it."""
    return job.attempt - (refund and state is not State.SUCCEEDED)


def _shown(job: Job | Entry) -> tuple[object, ...]:
    running = job.state is State.RUNNING
    lease = (job.worker, job.lease_until, job.cancel_requested) if running else None
    moment = job.run_at if job.state is State.QUEUED else job.finished_at
    return (
        job.state,
        job.lease_token,
        job.attempt,
        job.queue,
        job.priority,
        moment,
        job.key,
        job.tenant,
        lease,
    )
