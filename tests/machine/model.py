"""The rules of a store in a hundred lines of plain Python, for comparison with every store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from machine.rules_model import Rules
from rota.model import FINAL, LIVE, ClaimRequest, Edit, JobId, NewJob, Settlement, State

LEASE_S = 30.5  # all other times are whole seconds, so a lease never expires exactly now


@dataclass
class Entry:
    id: JobId
    tenant: str
    queue: str
    priority: int
    run_at: datetime
    key: str | None
    task: str = "work"
    concurrency_key: str | None = None
    units: int = 1
    price: float | None = None
    state: State = State.QUEUED
    lease_token: int = 0
    attempt: int = 0
    worker: str | None = None
    lease_until: datetime | None = None
    finished_at: datetime | None = None
    cancel_requested: bool = False
    claimed_at: datetime | None = None  # None: reclaimed since

    def limit_like(self, new: NewJob) -> None:
        self.task, self.concurrency_key = new.task, new.concurrency_key
        self.units, self.price = 1 if new.units is None else new.units, new.price

    def leave(self, state: State, now: datetime) -> None:
        self.state, self.lease_until = state, None
        self.finished_at = now if state in FINAL else None


class Model:
    def __init__(self) -> None:
        self.jobs: dict[JobId, Entry] = {}
        self.rules = Rules()

    def live(self) -> list[Entry]:
        return [job for job in self.jobs.values() if job.state in LIVE]

    def holder(self, tenant: str, key: str | None) -> Entry | None:
        held = [job for job in self.live() if key is not None and (job.tenant, job.key) == (tenant, key)]
        return held[0] if held else None

    def insert(self, new: NewJob, now: datetime, again: bool = False) -> tuple[JobId, str, State]:
        known = self.jobs.get(new.id)
        if known is not None and (again or known.state in LIVE):
            return known.id, "existing", known.state
        holder = self.holder(new.tenant, new.key)
        if holder is None:
            run_at = new.run_at or now
            self.jobs[new.id] = entry = Entry(new.id, new.tenant, new.queue, new.priority, run_at, new.key)
            entry.limit_like(new)
            return new.id, "created", State.QUEUED
        if new.on_conflict == "return":
            return holder.id, "existing", holder.state
        if new.on_conflict == "raise" or holder.state is State.RUNNING:
            return holder.id, "refused", holder.state
        holder.queue, holder.priority, holder.run_at = new.queue, new.priority, new.run_at or now
        holder.attempt, holder.cancel_requested = 0, False
        holder.limit_like(new)
        return holder.id, "replaced", State.QUEUED

    def due(self, want: ClaimRequest, now: datetime) -> list[Entry]:
        """The jobs that a claim may take, in the order within a queue."""
        ready = [job for job in self.jobs.values() if job.state is State.QUEUED and job.run_at <= now]
        ready = [job for job in ready if want.queues is None or job.queue in want.queues]
        ready = [job for job in ready if job.tenant not in want.exclude_tenants]
        ready = [job for job in ready if want.tasks is None or job.task in want.tasks]
        return sorted(ready, key=lambda job: (-job.priority, job.run_at, job.id))

    def claim(self, id: JobId, worker: str, now: datetime) -> Entry:
        job = self.jobs[id]
        assert job.state is State.QUEUED
        job.state, job.worker = State.RUNNING, worker
        job.lease_token, job.attempt = job.lease_token + 1, job.attempt + 1
        job.lease_until = now + timedelta(seconds=LEASE_S)
        job.claimed_at = now
        self.rules.begin(job, now)
        return job

    def holds(self, id: JobId, lease_token: int, worker: str | None) -> Entry | None:
        job = self.jobs.get(id)
        if job is None or job.state is not State.RUNNING:
            return None
        return job if (job.lease_token, job.worker) == (lease_token, worker) else None

    def settle(self, change: Settlement, now: datetime) -> bool:
        job = self.holds(change.id, change.lease_token, change.worker)
        if job is None:
            return False
        self.rules.end(job, change, now)
        if change.remove:
            del self.jobs[job.id]
        else:
            job.leave(change.state, now)
            job.attempt, job.run_at = change.attempt, self._run_at(change, job, now)
        for follower in change.then:
            self.insert(follower, now)
        return True

    def _run_at(self, change: Settlement, job: Entry, now: datetime) -> datetime:
        return (change.run_at or now) if change.state is State.QUEUED else job.run_at

    def expired(self, now: datetime) -> list[JobId]:
        return [job.id for job in self.jobs.values() if job.lease_until is not None and job.lease_until < now]

    def reclaim(self, id: JobId, holder: str, now: datetime) -> Entry:
        job = self.jobs[id]
        job.lease_token, job.worker, job.claimed_at = job.lease_token + 1, holder, None
        job.lease_until = now + timedelta(seconds=LEASE_S)
        return job

    def editable(self, ids: Iterable[JobId], edit: Edit) -> set[JobId]:
        found = [self.jobs[id] for id in ids if id in self.jobs and self.jobs[id].state in edit.touches]
        if edit.verb == "retry":
            found = [job for job in found if self.holder(job.tenant, job.key) is None]
        return {job.id for job in found}

    def edit(self, id: JobId, edit: Edit, now: datetime) -> None:
        job = self.jobs[id]
        if edit.verb == "delete":
            del self.jobs[id]
        elif edit.verb == "retry":
            assert self.holder(job.tenant, job.key) is None
            job.leave(State.QUEUED, now)
            job.attempt, job.run_at, job.cancel_requested = 0, edit.run_at or now, False
        elif edit.verb == "move":
            job.run_at = edit.run_at or job.run_at
            job.queue = edit.queue or job.queue
            job.priority = job.priority if edit.priority is None else edit.priority
        elif job.state is State.RUNNING:
            job.cancel_requested = True
        else:
            job.leave(State.CANCELLED, now)

    def prunable(self, state: State, before: datetime) -> set[JobId]:
        return {
            j.id for j in self.jobs.values() if j.state is state and j.finished_at and j.finished_at < before
        }
