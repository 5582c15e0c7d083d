"""Operators' edits and retention: jobs that are changed or deleted outside an attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from ...model import FINAL, Edit, JobFilter, JobId, State
from .job_pages import matching
from .rows import MINUTE, as_json, micros, some_micros
from .statements import statement
from .writer import Transaction


class EditedJob(NamedTuple):
    """What an edit has to know of a job."""

    finished_at: int | None
    id: JobId
    queue: str
    task: str
    state: str
    tenant: str
    schedule: str | None


def edit(transaction: Transaction, ids: Sequence[JobId], edit: Edit, now: int) -> Sequence[JobId]:
    """Apply the edit to those that are in a state it may touch, oldest id first; the ids it changed."""
    text, params = matching(JobFilter(ids=tuple(ids), states=tuple(edit.touches)))
    if edit.expired_by is not None:
        text += " AND expires_at <= ?"
        params.append(micros(edit.expired_by))
    query = f"SELECT finished_at, id, queue, task, state, tenant, schedule {text} ORDER BY id"
    found = [EditedJob(*row) for row in transaction.execute(query, params)]
    return _VERBS[edit.verb](transaction, found, edit, now)


def _cancel(transaction: Transaction, jobs: Sequence[EditedJob], edit: Edit, now: int) -> Sequence[JobId]:
    for job in jobs:
        if job.state == State.RUNNING:
            transaction.execute(statement("request_cancel"), (edit.error_json, job.id))
        else:
            transaction.execute(statement("cancel"), (edit.error_json, now, job.id))
            transaction.tally(State.CANCELLED.value, now // MINUTE, job.queue, job.task)
            if job.schedule is not None:
                transaction.count_run(job.tenant, job.schedule, State.CANCELLED.value, now)
            transaction.finished.add(job.id)
    return [job.id for job in jobs]


def _retry(transaction: Transaction, jobs: Sequence[EditedJob], edit: Edit, now: int) -> Sequence[JobId]:
    run_at = now if edit.run_at is None else micros(edit.run_at)
    done = []
    for job in jobs:
        transaction.execute(statement("record_silent"), (job.id,))  # only the job had it
        # ignored if another job holds its key now
        if transaction.execute(statement("retry"), (int(run_at <= now), run_at, job.id, now)).rowcount:
            if job.state == State.SUCCEEDED:
                transaction.execute(statement("use_kept_key"), (job.id,))
            else:  # it gave its key up when it ended, and takes it for as long as it is live
                transaction.execute(statement("free_kept_keys"), (as_json([job.id]),))
            _uncount(transaction, job)
            if job.schedule is not None and job.finished_at is not None:
                transaction.count_run(job.tenant, job.schedule, job.state, job.finished_at, step=-1)
            transaction.ready.add(job.queue)
            done.append(job.id)
    return done


def _move(transaction: Transaction, jobs: Sequence[EditedJob], edit: Edit, now: int) -> Sequence[JobId]:
    run_at = some_micros(edit.run_at)
    due = None if run_at is None else int(run_at <= now)
    rank = None if edit.priority is None else -edit.priority
    transaction.executemany(statement("move"), [(due, run_at, rank, edit.queue, job.id) for job in jobs])
    transaction.ready.update(edit.queue or job.queue for job in jobs)
    return [job.id for job in jobs]


def _delete(transaction: Transaction, jobs: Sequence[EditedJob], edit: Edit, now: int) -> Sequence[JobId]:
    transaction.execute(statement("free_kept_keys"), (as_json([job.id for job in jobs]),))
    _forget(transaction, jobs)
    return [job.id for job in jobs]


_VERBS: dict[str, Callable[[Transaction, Sequence[EditedJob], Edit, int], Sequence[JobId]]] = {
    "cancel": _cancel,
    "retry": _retry,
    "move": _move,
    "delete": _delete,
}


def prune(transaction: Transaction, before: Mapping[State, datetime], limit: int) -> int:
    """Delete final jobs that finished before their state's cutoff, the oldest first; how many."""
    outdated: list[EditedJob] = []
    for state, instant in before.items():
        if state in FINAL:
            rows = transaction.execute(statement("outdated"), (state.value, micros(instant), limit))
            outdated += [EditedJob(*row) for row in rows]
    outdated = sorted(outdated)[:limit]
    _forget(transaction, outdated)
    return len(outdated)


def prune_kept(transaction: Transaction, now: int, limit: int) -> int:
    """Delete jobs whose own retention is over; how many."""
    rows = transaction.execute(statement("outdated_kept"), {"now": now, "most": limit})
    outdated = [EditedJob(*row) for row in rows]
    _forget(transaction, outdated)
    return len(outdated)


def prune_keys(transaction: Transaction, now: int) -> None:
    """Delete the keys that were kept until now, and those of jobs that ended without success."""
    transaction.execute(statement("prune_kept_keys"), (now,))
    transaction.execute(statement("prune_unused_keys"))


def _forget(transaction: Transaction, jobs: Sequence[EditedJob]) -> None:
    if not jobs:
        return
    ids = as_json([job.id for job in jobs])
    transaction.execute(statement("delete"), (ids,))
    transaction.execute(statement("delete_attempts"), (ids,))
    for job in jobs:
        _uncount(transaction, job)
        transaction.finished.add(job.id)


def _uncount(transaction: Transaction, job: EditedJob) -> None:
    if job.finished_at is not None:
        transaction.tally(job.state, job.finished_at // MINUTE, job.queue, job.task, -1)
