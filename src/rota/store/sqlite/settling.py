"""The end of attempts, and heartbeats: written only where the token still holds."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Change, JobId, Pulse, Reply, State
from .documents import write_document
from .inserting import insert
from .rows import MINUTE, as_json, micros, new_attempt, some_micros, span
from .statements import statement
from .writer import Transaction

WORKER = "worker"  # the kind of document a heartbeat writes
REMOVED = "removed"  # what the tally calls a job that deleted itself


def settle(transaction: Transaction, changes: Sequence[Change], now: int) -> frozenset[JobId]:
    """Carry out the changes; the ids that were refused because the lease is gone."""
    return frozenset(change.id for change in changes if not _settle(transaction, change, now))


def _settle(transaction: Transaction, change: Change, now: int) -> bool:
    if change.remove:
        held = _remove(transaction, change, now)
    elif change.state is State.QUEUED:
        held = _requeue(transaction, change, now)
    else:
        held = _finish(transaction, change, now)
    if held:
        if change.record is not None and not change.remove:
            transaction.execute(statement("record"), new_attempt(change.record))
        if change.then:
            insert(transaction, change.then, now)
    return held


def _finish(transaction: Transaction, change: Change, now: int) -> bool:
    state = change.state.value
    rows = transaction.execute(
        statement("finish"),
        (
            state,
            change.attempt,
            change.output_json,
            change.error_json,
            some_micros(change.started_at),
            now,
            change.cost_cents,
            change.progress_json,
            change.id,
            change.token,
        ),
    ).fetchall()
    return _ended(transaction, change, state, rows, now)


def _remove(transaction: Transaction, change: Change, now: int) -> bool:
    rows = transaction.execute(statement("remove"), (change.id, change.token)).fetchall()
    if rows:
        transaction.execute(statement("delete_attempts"), (as_json([change.id]),))
    return _ended(transaction, change, REMOVED, rows, now)


def _ended(
    transaction: Transaction, change: Change, state: str, rows: Sequence[tuple[str, str]], now: int
) -> bool:
    for queue, task in rows:
        transaction.tally(state, now // MINUTE, queue, task)
        transaction.finished.add(change.id)
    return bool(rows)


def _requeue(transaction: Transaction, change: Change, now: int) -> bool:
    run_at = now if change.run_at is None else micros(change.run_at)
    rows = transaction.execute(
        statement("requeue"),
        (
            run_at <= now,
            run_at,
            change.attempt,
            change.output_json,
            change.error_json,
            some_micros(change.started_at),
            change.cost_cents,
            change.progress_json,
            change.id,
            change.token,
        ),
    ).fetchall()
    transaction.ready.update(queue for queue, _ in rows)
    return bool(rows)


def beat(transaction: Transaction, pulse: Pulse, now: int) -> Reply:
    """Renew the leases that are still ours, write the notes, record the worker."""
    until = now + span(pulse.lease_s)
    lost, cancel = set(), set()
    for lease in pulse.leases:
        row = transaction.execute(statement("renew"), (until, lease.id, lease.token)).fetchall()
        if not row:
            lost.add(lease.id)
        elif row[0][0]:
            cancel.add(lease.id)
    if pulse.notes:
        notes = [(note.progress_json, note.id, note.token) for note in pulse.notes]
        transaction.executemany(statement("note"), notes)
    write_document(transaction, WORKER, pulse.worker, pulse.document, now)
    return Reply(lost=frozenset(lost), cancel=frozenset(cancel))
