"""What is done to one job, and what is read of all: the plain acts, without access or audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..core.ids import is_id
from ..core.jobs import lifecycle
from ..errors import IllegalMove, NotFound, OptionError
from ..model import Attempt, CurrentOverview, Edit, Job, JobFilter, PageRequest, State
from ..runtime.clock import Clock
from ..store.protocol import Store


async def get(store: Store, job_id: str) -> Job:
    """The job, or NotFound; an id that cannot be one is an OptionError."""
    job_id = check_id(job_id)
    page = await store.jobs(JobFilter(ids=(job_id,)), PageRequest(limit=1))
    if not page.items:
        raise NotFound(f"there is no job {job_id}: it was never stored, or it has been removed since")
    return page.items[0]


def check_id(job_id: str) -> str:
    lowered = job_id.strip().lower() if isinstance(job_id, str) else ""
    if not is_id(lowered):
        raise OptionError(f"{job_id!r} is not a job id: it looks like 0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60")
    return lowered


def check_state(state: str) -> State:
    if state not in list(State):
        raise OptionError(f"state={state!r}: must be one of {', '.join(State)}")
    return State(state)


async def attempts(store: Store, job: Job) -> Sequence[Attempt]:
    """All attempts, oldest first; a silent first success is told from the job itself."""
    recorded = list(await store.attempts(job.id))
    if job.state is State.SUCCEEDED and not any(a.token == job.token for a in recorded):
        assert job.finished_at is not None
        recorded.append(
            Attempt(
                job=job.id,
                attempt=job.attempt,
                token=job.token,
                outcome="succeeded",
                worker=job.worker,
                started_at=job.started_at,
                finished_at=job.finished_at,
                cost_cents=job.cost_cents,
            )
        )
    return recorded


async def delete(store: Store, clock: Clock, job_id: str) -> None:
    """Remove a job that does not run, with its history."""
    job = await get(store, job_id)
    if not await store.edit((job.id,), lifecycle.delete(), clock.now()):
        raise _illegal(await get(store, job_id), "delete")


async def edit_one(store: Store, clock: Clock, job_id: str, edit: Edit, verb: str) -> Job:
    job = await get(store, job_id)
    if job.state not in edit.touches:
        raise _illegal(job, verb)
    touched = await store.edit((job.id,), edit, clock.now())
    now = await get(store, job.id)
    if not touched:
        raise _illegal(now, verb)
    return now


def _illegal(job: Job, verb: str) -> IllegalMove:
    if verb == "retry" and job.is_final and job.key is not None:
        return IllegalMove(
            f"cannot retry job {job.id}: its key {job.key!r} is held by a newer job; let that one end",
            job.state,
        )
    remedy = {
        "cancel": "only queued, waiting and running jobs can be cancelled",
        "retry": "only jobs that have ended can be retried",
        "delete": "a running job must be cancelled first",
        "move": "only queued jobs can be moved",
    }[verb]
    return IllegalMove(f"cannot {verb} job {job.id}, which is {job.state}: {remedy}", job.state)


async def stats(store: Store, clock: Clock) -> dict[str, Any]:
    """Counts by state, the age of the oldest due job, and the depth of each queue."""
    overview = await store.survey(CurrentOverview(clock.now()))
    return {
        **{str(state): overview.counts.get(state, 0) for state in State},
        "oldest_due_s": overview.oldest_due_s,
        "queues": {name: msgspec.to_builtins(depth) for name, depth in overview.queues.items()},
        "estimated": sorted(overview.estimated),
    }
