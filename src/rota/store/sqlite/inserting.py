"""New jobs. One script serves our own transactions and the caller's; a bulk takes a shorter way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ...errors import SchemaMismatch, StoreError
from ...model import Inserted, NewJob, State
from ..sql.callers import Script
from .rows import new_job, replacement
from .statements import statement
from .writer import Transaction

INSERT = statement("insert")
INSERT_ONE = INSERT + "\nRETURNING id"
BULK = 4  # from here on one statement for all pays


def insert(transaction: Transaction, jobs: Sequence[NewJob], now: int) -> Sequence[Inserted]:
    """Store the jobs in our own transaction and tell the wakers."""
    transaction.ready.update(job.queue for job in jobs)
    if len(jobs) >= BULK and _all_new(transaction, jobs, now):
        return [Inserted(id=job.id, outcome="created") for job in jobs]
    return _drive(transaction, script(jobs, now))


def _all_new(transaction: Transaction, jobs: Sequence[NewJob], now: int) -> bool:
    """Store all of them at once; or none, if any meets a job that is there already."""
    transaction.execute("SAVEPOINT rota_bulk")
    cursor = transaction.executemany(INSERT, [new_job(job, now) for job in jobs])
    complete = cursor.rowcount == len(jobs)
    if not complete:
        transaction.execute("ROLLBACK TO rota_bulk")
    transaction.execute("RELEASE rota_bulk")
    return complete


def _drive(transaction: Transaction, steps: Script[Sequence[Inserted]]) -> Sequence[Inserted]:
    try:
        step = next(steps)
        while True:
            step = steps.send(transaction.execute(*step).fetchall())
    except StopIteration as end:
        return cast(Sequence[Inserted], end.value)


def script_for_caller(jobs: Sequence[NewJob], now: int | None, where: str) -> Script[Sequence[Inserted]]:
    """``script`` on a connection of someone else, which may lead to another database."""
    try:
        return (yield from script(jobs, now))
    except Exception as error:
        if "no such table: rota_" not in str(error):
            raise
        raise SchemaMismatch(
            f"connection= leads to a database without rota's tables: connect it to {where}, "
            "and run `rota migrate` if that is new"
        ) from error


def script(jobs: Sequence[NewJob], now: int | None) -> Script[Sequence[Inserted]]:
    """Insert one after another; ``now=None`` asks the database for the time."""
    if now is None:
        rows = yield statement("clock"), ()
        now = int(rows[0][0])
    answers = []
    for job in jobs:
        answers.append((yield from _insert_one(job, now)))
    return answers


def _insert_one(job: NewJob, now: int) -> Script[Inserted]:
    for _ in range(3):  # the holder of a key may vanish between two statements in autocommit
        if (yield INSERT_ONE, new_job(job, now)):
            return Inserted(id=job.id, outcome="created")
        rows = yield statement("holder"), (job.id, job.tenant, job.key)
        if rows:
            return (yield from _meet(job, now, rows[0][0], State(rows[0][1])))
    raise StoreError(f"job {job.id} was refused by a constraint that no stored job explains")


def _meet(job: NewJob, now: int, holder: str, state: State) -> Script[Inserted]:
    """The place is taken, by the same id or by the holder of the key."""
    if holder == job.id or job.on_conflict == "return":
        return Inserted(id=holder, outcome="existing", state=state)
    if job.on_conflict == "replace" and state is State.QUEUED:
        yield statement("replace"), replacement(job, now, holder)
        return Inserted(id=holder, outcome="replaced", state=state)
    return Inserted(id=holder, outcome="refused", state=state)
