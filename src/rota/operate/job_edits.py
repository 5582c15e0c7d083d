"""Single-job edits and reads, without access checks or auditing.

An edit takes the job as its caller read it and computes the result from that, so that a job is read once.
"""

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
    """The job, or NotFound, which also says so if the text cannot be an id."""
    job_id = possible_id(job_id)
    page = await store.jobs(JobFilter(ids=(job_id,)), PageRequest(limit=1))
    if not page.items:
        raise NotFound(f"there is no job {job_id}: it was never stored, or it has been removed since")
    return page.items[0]


def possible_id(job_id: str) -> str:
    """The id; NotFound if the text cannot be one."""
    try:
        return check_id(job_id)
    except OptionError as error:
        if not isinstance(job_id, str):
            raise
        raise NotFound(f"there is no job {job_id[:40]!r}: {error}") from None


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
    """All attempts, oldest first. A first attempt that succeeded has no record: it is read off the job."""
    recorded = list(await store.attempts(job.id))
    if job.state is State.SUCCEEDED and not any(a.lease_token == job.lease_token for a in recorded):
        assert job.finished_at is not None
        recorded.append(
            Attempt(
                job=job.id,
                attempt=job.attempt,
                lease_token=job.lease_token,
                outcome="succeeded",
                worker=job.worker,
                started_at=job.started_at,
                finished_at=job.finished_at,
                cost_cents=job.cost_cents,
            )
        )
    return recorded


async def edit(store: Store, clock: Clock, job: Job, edit: Edit) -> Job:
    """Apply the edit to the job as it was read; the job as the edit leaves it (as it was, if deleted).

    The edit applies only in the state that was read, so that its result is known. If that fails because
    the job has just changed state, the edit applies in any state, and the job is read again.
    """
    if job.state not in edit.touches:
        raise _illegal(job, edit.verb)
    now, only = clock.now(), msgspec.structs.replace(edit, touches=frozenset({job.state}))
    if await store.edit((job.id,), only, now):
        return lifecycle.edited(job, edit, now)
    if not await store.edit((job.id,), edit, now):
        raise _illegal(await get(store, job.id), edit.verb)
    return job if edit.verb == "delete" else await get(store, job.id)


def _illegal(job: Job, verb: str) -> IllegalMove:
    if verb == "retry" and job.is_final and job.key is not None:
        return IllegalMove(
            f"cannot retry job {job.id}: its idempotency key {job.key!r} is held by a newer job; "
            "wait until that one has finished",
            job.state,
        )
    remedy = {
        "cancel": "only queued, waiting and running jobs can be cancelled",
        "retry": "only finished jobs can be retried",
        "delete": "a running job must be cancelled first",
        "move": "only queued jobs can be updated",
    }[verb]
    what = "update" if verb == "move" else verb
    return IllegalMove(f"cannot {what} job {job.id}, which is {job.state}: {remedy}", job.state)


async def stats(store: Store, clock: Clock) -> dict[str, Any]:
    """Counts by state, the age of the oldest due job, and the depth of each queue."""
    overview = await store.survey(CurrentOverview(clock.now()))
    return {
        **{str(state): overview.counts.get(state, 0) for state in State},
        "oldest_due_s": overview.oldest_due_s,
        "queues": {name: msgspec.to_builtins(depth) for name, depth in overview.queues.items()},
        "estimated": sorted(overview.estimated),
    }
