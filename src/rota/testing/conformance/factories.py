"""Small builders for the suite: fixed instants, growing ids, jobs, claims and changes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ...core.ids import uuid7
from ...core.jobs.lifecycle import fault_json
from ...model import (
    Attempt,
    AttemptOutcome,
    ClaimRequest,
    ErrorRecord,
    Heartbeat,
    InsertResult,
    Job,
    JobFilter,
    JobId,
    Lease,
    Limit,
    LimitRule,
    LimitRules,
    NewJob,
    PageRequest,
    Settlement,
    State,
    TenantRule,
    TenantRules,
)
from ...store.calls import claim, settle
from ...store.protocol import Store

T0 = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
LEASE_S = 30.0
ERROR = fault_json(ErrorRecord(type="ValueError", message="no luck", at=T0, attempt=1))

_serial = itertools.count(1)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def new_id() -> JobId:
    return uuid7(int(T0.timestamp() * 1000), next(_serial))


def new(**fields: Any) -> NewJob:
    defaults: dict[str, Any] = {"id": new_id(), "task": "work"}
    return NewJob(**(defaults | fields))


def want(limit: int = 10, **fields: Any) -> ClaimRequest:
    defaults: dict[str, Any] = {"worker": "w1", "limit": limit, "lease_s": LEASE_S}
    return ClaimRequest(**(defaults | fields))


def pulse(leases: Sequence[Lease] = (), **fields: Any) -> Heartbeat:
    defaults: dict[str, Any] = {"worker": "w1", "document": "{}", "lease_s": LEASE_S, "leases": leases}
    return Heartbeat(**(defaults | fields))


def lease(job: Job) -> Lease:
    return Lease(id=job.id, lease_token=job.lease_token)


def change(job: Job, state: State, **fields: Any) -> Settlement:
    names = ("id", "lease_token", "worker", "queue", "task", "tenant", "key", "schedule")
    held = {name: getattr(job, name) for name in names}
    return Settlement(**(held | {"state": state, "attempt": job.attempt} | fields))


def record(job: Job, outcome: AttemptOutcome, now: datetime, **fields: Any) -> Attempt:
    defaults: dict[str, Any] = {
        "job": job.id,
        "attempt": job.attempt,
        "lease_token": job.lease_token,
        "outcome": outcome,
    }
    seen: dict[str, Any] = {"worker": job.worker, "started_at": job.started_at, "finished_at": now}
    return Attempt(**(defaults | seen | fields))


async def add(store: Store, *jobs: NewJob, now: datetime = T0) -> Sequence[InsertResult]:
    return await store.insert(jobs, now)


async def read(store: Store, job: JobId) -> Job | None:
    page = await store.jobs(JobFilter(ids=(job,)), PageRequest())
    return page.items[0] if page.items else None


async def found(store: Store, job: JobId) -> Job:
    """The job, which must be there."""
    item = await read(store, job)
    assert item is not None, f"job {job} is not in the store"
    return item


async def claimed(store: Store, job: JobId, now: datetime = T0, **fields: Any) -> Job:
    """That one job, claimed; all others that the claim may take must not exist."""
    taken = await claim(store, want(**({"limit": 1} | fields)), now)
    assert [item.id for item in taken] == [job]
    return taken[0]


async def running(store: Store, now: datetime = T0, **fields: Any) -> Job:
    """A new job, claimed by ``w1``."""
    job = new(**fields)
    await add(store, job, now=now)
    return await claimed(store, job.id, now, queues=(job.queue,))


async def in_state(store: Store, state: State, **fields: Any) -> JobId:
    """A new job brought into the state by the verbs of the store."""
    if state is State.QUEUED:
        job = new(**fields)
        await add(store, job)
        return job.id
    ran = await running(store, **fields)
    if state is not State.RUNNING:
        error = None if state is State.SUCCEEDED else ERROR
        assert not await settle(store, [change(ran, state, error_json=error)], at(1))
    return ran.id


async def put_limit(store: Store, name: str, now: datetime = T0, **fields: Any) -> None:
    """The limit is in force; without fields, it is dropped."""
    known = await store.survey(LimitRules((name,)))
    version = known[0].version if known else 0
    chosen = Limit(**fields) if fields else None
    assert await store.put_rules([LimitRule(name=name, chosen=chosen, version=version)], now) != [None]


async def put_tenant(store: Store, name: str, now: datetime = T0, **fields: Any) -> None:
    known = await store.survey(TenantRules((name,)))
    version = known[0].version if known else 0
    assert await store.put_rules([TenantRule(name=name, version=version, **fields)], now) != [None]


async def finish(store: Store, *jobs: Job, now: datetime = T0, **fields: Any) -> None:
    """They succeed."""
    assert not await settle(store, [change(job, State.SUCCEEDED, **fields) for job in jobs], now)


async def release(store: Store, *jobs: Job, now: datetime = T0) -> None:
    """They go back to the queue, none of them begun."""
    back = [change(job, State.QUEUED, attempt=job.attempt - 1, run_at=job.run_at) for job in jobs]
    assert not await settle(store, back, now)


def ids(jobs: Sequence[Job]) -> list[JobId]:
    return [job.id for job in jobs]


FINAL_STATES = (State.SUCCEEDED, State.FAILED, State.CANCELLED)
REACHABLE = (State.QUEUED, State.RUNNING, *FINAL_STATES)
EVERYTHING = JobFilter()
