"""The end of attempts, and heartbeats: written only where the token and the holder are still the same.

A batch goes to SQLite as one JSON text, and for each way to end there are two statements at most: that is
faster than a statement per job, and a thread that runs few statements, and reads few rows, rarely has to
wait for the interpreter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from ...model import Heartbeat, HeartbeatReply, JobId, Settlement, State
from . import audit
from .allowances import give_back
from .documents import write_document
from .expenses import spend
from .inserts import insert
from .rows import MINUTE, Row, as_json, instant, micros, new_attempt, some_micros, span
from .statements import statement
from .writer import Transaction

WORKER = "worker"  # the kind of document a heartbeat writes
REMOVED = "removed"  # what the tally calls a job that deleted itself

_IDS = msgspec.json.Decoder(list[JobId])


def settle(transaction: Transaction, changes: Sequence[Settlement], now: int) -> frozenset[JobId]:
    """Carry out the changes; the ids that were refused because the lease is gone."""
    first = {change.id: change for change in reversed(changes)}
    refused = frozenset(_settle(transaction, list(first.values())[::-1], now)) if first else frozenset()
    if len(first) == len(changes):
        return refused
    # several changes of one job: the later ones must find what the first has left
    later = [change for change in changes if first[change.id] is not change]
    return refused | settle(transaction, later, now)


def _settle(transaction: Transaction, changes: Sequence[Settlement], now: int) -> set[JobId]:
    ways: defaultdict[str, list[Settlement]] = defaultdict(list)
    for change in changes:
        ways[REMOVED if change.remove else change.state.value].append(change)
    held: list[Settlement] = []
    for way, alike in ways.items():
        held += _end(transaction, way, alike, now)
    records = [new_attempt(change.record) for change in held if change.record and not change.remove]
    if records:
        transaction.executemany(statement("record"), records)
    spend(transaction, held, now)
    if then := [job for change in held for job in change.then]:
        insert(transaction, then, now)
    refused = {change.id for change in changes}.difference([change.id for change in held])
    if entries := [entry for change in changes if change.id not in refused for entry in change.audit]:
        audit.append(transaction, entries)
    return refused


def _end(transaction: Transaction, way: str, changes: Sequence[Settlement], now: int) -> Sequence[Settlement]:
    """Carry out changes that end in one way; those of them whose lease still holds.

    The number of rows that were written tells whether a single change was refused. Of several it does not
    show which one, and a savepoint to find out would cost more than to ask first.
    """
    text = _texts(changes)
    if len(changes) > 1:
        (found,) = transaction.execute(statement("held"), (text,)).fetchone()
        held = frozenset(_IDS.decode(found))
        if len(held) < len(changes):
            changes = [change for change in changes if change.id in held]
            text = _texts(changes)
    if not changes or not _write(transaction, way, changes, text, now):
        return ()
    if way == State.QUEUED:
        transaction.ready.update([change.queue for change in changes])
        if unbegun := [change.id for change in changes if _has_not_begun(change)]:
            give_back(transaction, unbegun, now)
        return changes
    if way in (State.SUCCEEDED, REMOVED):
        keyed = [(change.tenant, change.key, change.id) for change in changes if change.key is not None]
        if keyed:
            transaction.execute(statement("keep_keys"), {"keys": as_json(keyed), "now": now})
    if way == REMOVED:
        transaction.execute(statement("delete_attempts"), (as_json([change.id for change in changes]),))
    for (queue, task), count in Counter([(change.queue, change.task) for change in changes]).items():
        transaction.tally(way, now // MINUTE, queue, task, count)
    for change in [one for one in changes if one.schedule is not None]:
        _count_run(transaction, change, now)
    transaction.finished.update([change.id for change in changes])
    return changes


def _count_run(transaction: Transaction, change: Settlement, now: int) -> None:
    took = None
    if change.started_at is not None and change.state != State.CANCELLED:
        took = max(now - micros(change.started_at), 0)
    transaction.count_run(change.tenant, change.schedule or "", change.state.value, now, took)


def _write(transaction: Transaction, way: str, changes: Sequence[Settlement], text: str, now: int) -> int:
    """How many jobs were written: those that run under the change's lease token, held by its worker."""
    if way == State.QUEUED:
        return transaction.execute(statement("requeue"), {"changes": text, "now": now}).rowcount
    if way == REMOVED:
        return transaction.execute(statement("remove"), (text,)).rowcount
    given = {"changes": text, "now": now, "state": way, "more": any(map(_is_wordy, changes))}
    return transaction.execute(statement("finish"), given).rowcount


def _texts(changes: Sequence[Settlement]) -> str:
    return as_json({change.id: _columns(change) for change in changes})


def _columns(change: Settlement) -> Row:
    """In the order that ``held.sql``, ``finish.sql`` and ``requeue.sql`` read."""
    return (
        change.lease_token,
        change.worker,
        change.attempt,
        some_micros(change.started_at),
        change.output_json,
        change.error_json,
        change.cost_cents,
        change.progress_json,
        some_micros(change.run_at),
        change.crashes,
        change.snoozes,
    )


def _has_not_begun(change: Settlement) -> bool:
    """Whether it was claimed and released again before its task was called."""
    return change.started_at is None and change.record is None and change.crashes is None


def _is_wordy(change: Settlement) -> bool:
    """Most jobs that succeed leave nothing but their output."""
    return bool(
        change.error_json or change.cost_cents or change.progress_json or change.crashes or change.snoozes
    )


def beat(transaction: Transaction, pulse: Heartbeat, now: int) -> HeartbeatReply:
    """Renew the leases that are still ours, write the notes, record the worker."""
    leases = as_json([(lease.id, lease.lease_token) for lease in pulse.leases])
    renewal = {"leases": leases, "until": now + span(pulse.lease_s), "worker": pulse.worker}
    held = {id for (id,) in transaction.execute(statement("renew"), renewal).fetchall()}
    if pulse.notes:
        notes = [(note.progress_json, note.id, note.lease_token, pulse.worker) for note in pulse.notes]
        transaction.executemany(statement("write_progress"), notes)
    write_document(transaction, WORKER, pulse.worker, pulse.document, now)
    return HeartbeatReply(
        at=instant(now),
        lost=frozenset(lease.id for lease in pulse.leases if lease.id not in held),
        cancel=frozenset(id for (id,) in transaction.execute(statement("cancel_requested"), (pulse.worker,))),
    )
