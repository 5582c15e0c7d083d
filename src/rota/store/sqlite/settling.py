"""The end of attempts, and heartbeats: written only where the token still holds.

A batch goes to SQLite as one JSON text and one statement for each way to end: that is faster than a
statement per job, and a thread that runs few statements seldom has to wait for the interpreter.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...model import Change, JobId, Pulse, Reply, State
from .documents import write_document
from .inserting import insert
from .rows import MINUTE, Row, as_json, new_attempt, some_micros, span
from .statements import statement
from .writer import Transaction

WORKER = "worker"  # the kind of document a heartbeat writes
REMOVED = "removed"  # what the tally calls a job that deleted itself


def settle(transaction: Transaction, changes: Sequence[Change], now: int) -> frozenset[JobId]:
    """Carry out the changes; the ids that were refused because the lease is gone."""
    first = {change.id: change for change in reversed(changes)}
    refused = frozenset(_settle(transaction, list(first.values())[::-1], now)) if first else frozenset()
    if len(first) == len(changes):
        return refused
    # several changes of one job: the later ones must find what the first has left
    later = [change for change in changes if first[change.id] is not change]
    return refused | settle(transaction, later, now)


def _settle(transaction: Transaction, changes: Sequence[Change], now: int) -> set[JobId]:
    held = _remove(transaction, [change for change in changes if change.remove], now)
    changed = [change for change in changes if not change.remove]
    held |= _requeue(transaction, [change for change in changed if change.state is State.QUEUED], now)
    held |= _finish(transaction, [change for change in changed if change.state is not State.QUEUED], now)
    kept = [change for change in changes if change.id in held]
    records = [new_attempt(change.record) for change in kept if change.record and not change.remove]
    if records:
        transaction.executemany(statement("record"), records)
    if then := [job for change in kept for job in change.then]:
        insert(transaction, then, now)
    return {change.id for change in changes} - held


def _finish(transaction: Transaction, changes: Sequence[Change], now: int) -> set[JobId]:
    if not changes:
        return set()
    states = {change.id: change.state.value for change in changes}
    rows = transaction.execute(statement("finish"), (_texts(changes), now)).fetchall()
    minute = now // MINUTE
    for id, queue, task in rows:
        transaction.tally(states[id], minute, queue, task)
        transaction.finished.add(id)
    return {row[0] for row in rows}


def _remove(transaction: Transaction, changes: Sequence[Change], now: int) -> set[JobId]:
    if not changes:
        return set()
    leases = as_json([(change.id, change.token) for change in changes])
    rows = transaction.execute(statement("remove"), (leases,)).fetchall()
    held = {row[0] for row in rows}
    transaction.execute(statement("delete_attempts"), (as_json(list(held)),))
    transaction.finished |= held
    for _, queue, task in rows:
        transaction.tally(REMOVED, now // MINUTE, queue, task)
    return held


def _requeue(transaction: Transaction, changes: Sequence[Change], now: int) -> set[JobId]:
    if not changes:
        return set()
    rows = transaction.execute(statement("requeue"), (_texts(changes), now)).fetchall()
    transaction.ready.update(row[1] for row in rows)
    return {row[0] for row in rows}


def _texts(changes: Sequence[Change]) -> str:
    return as_json([_columns(change) for change in changes])


def _columns(change: Change) -> Row:
    """In the order that ``finish.sql`` and ``requeue.sql`` read."""
    return (
        change.id,
        change.token,
        change.state.value,
        change.attempt,
        change.output_json,
        change.error_json,
        some_micros(change.started_at),
        change.cost_cents,
        change.progress_json,
        some_micros(change.run_at),
    )


def beat(transaction: Transaction, pulse: Pulse, now: int) -> Reply:
    """Renew the leases that are still ours, write the notes, record the worker."""
    leases = as_json([(lease.id, lease.token) for lease in pulse.leases])
    rows = transaction.execute(statement("renew"), (leases, now + span(pulse.lease_s))).fetchall()
    held = {row[0] for row in rows}
    if pulse.notes:
        notes = [(note.progress_json, note.id, note.token) for note in pulse.notes]
        transaction.executemany(statement("note"), notes)
    write_document(transaction, WORKER, pulse.worker, pulse.document, now)
    return Reply(
        lost=frozenset(lease.id for lease in pulse.leases if lease.id not in held),
        cancel=frozenset(id for (id,) in transaction.execute(statement("asked_to_stop"), (pulse.worker,))),
    )
