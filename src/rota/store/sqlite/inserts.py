"""New jobs. Many are stored with few statements, whether they come from one call or from many.

Where a job conflicts with a stored one, a script continues job by job. The same script serves the
caller's own transactions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from typing import Any, cast

from ...errors import SchemaMismatch, StoreError
from ...model import InsertResult, NewJob, State
from ..sql.external import Script
from .machine_clock import machine_micros
from .rows import Row, alike_cells, as_json, likeness, replacement, span, varied_cells
from .statements import insert_many, insert_one, insert_varied, statement
from .writer import Transaction

LARGEST = 256  # rows in one statement

Cells = tuple[tuple[str, Any], ...]  # columns and values
Call = tuple[Sequence[NewJob], int]  # the jobs of one caller, and its time


def insert(transaction: Transaction, jobs: Sequence[NewJob], now: int) -> Sequence[InsertResult]:
    """Store the jobs in our own transaction and wake workers."""
    return insert_calls(transaction, [(jobs, now)])[0]


def insert_calls(transaction: Transaction, calls: Sequence[Call]) -> list[Sequence[InsertResult]]:
    """Store the jobs of several callers; the results of each."""
    if _all_new(transaction, calls):
        results: list[Sequence[InsertResult]] = [
            [InsertResult(id=job.id, outcome="created") for job in jobs] for jobs, _ in calls
        ]
    else:
        results = [_drive(transaction, script(jobs, now)) for jobs, now in calls]
    for jobs, _ in calls:
        transaction.ready.update([job.queue for job in jobs])
    return results


def _all_new(transaction: Transaction, calls: Sequence[Call]) -> bool:
    """Store all of them; or none, if any meets a job that is there already, or a key that is kept."""
    keyed = [job for jobs, _ in calls for job in jobs if job.key is not None]
    if keyed and _any_kept(transaction, keyed, min(now for _, now in calls)):
        return False
    kinds: defaultdict[Cells, list[Row]] = defaultdict(list)
    for jobs, now in calls:
        for _, alike in groupby(jobs, likeness):
            group = list(alike)
            cells, run_at = alike_cells(group[0], now)
            kinds[tuple(cells.items())] += [
                (job.id, job.payload_json, run_at, now, job.tenant, job.concurrency_key) for job in group
            ]
    transaction.execute("SAVEPOINT rota_insert")
    missed = any(_insert(transaction, cells, rows) < len(rows) for cells, rows in kinds.items())
    if missed:
        transaction.execute("ROLLBACK TO rota_insert")
    transaction.execute("RELEASE rota_insert")
    if not missed and (kept := [plan for job in keyed if (plan := _plan(job, job.id)) is not None]):
        transaction.executemany(statement("plan_to_keep"), kept)
    return not missed


def _any_kept(transaction: Transaction, keyed: Sequence[NewJob], now: int) -> bool:
    keys = as_json([(job.tenant, job.key) for job in keyed])
    return transaction.execute(statement("any_kept"), (keys, now)).fetchone() is not None


def _plan(job: NewJob, holder: str) -> Row | None:
    """The parameters of ``plan_to_keep.sql``; None: its key is free at its end."""
    return None if job.key_for is None else (job.tenant, job.key, holder, span(job.key_for))


def _insert(transaction: Transaction, alike: Cells, rows: Sequence[Row]) -> int:
    """How many were stored."""
    varied = {row[-2:] for row in rows}
    queue, rank = dict(alike)["queue"], dict(alike)["rank"]
    transaction.tenants.update((queue, rank, tenant) for tenant, _ in varied if tenant != "default")
    render = insert_varied
    if len(varied) == 1:
        alike += tuple(varied_cells(*varied.pop()).items())
        rows, render = [row[:-2] for row in rows], insert_many
    columns, values = zip(*alike, strict=True)
    stored = start = 0
    for size in _sizes(len(rows)):
        params = (*values, *chain.from_iterable(rows[start : start + size]))
        stored += transaction.execute(render(columns, size), params).rowcount
        start += size
    return stored


def _sizes(n: int) -> Iterator[int]:
    """Parts that add up to n, powers of two: so that few texts serve all numbers of rows."""
    size = LARGEST
    while n:
        while size > n:
            size //= 2
        yield size
        n -= size


def _drive(transaction: Transaction, steps: Script[Sequence[InsertResult]]) -> Sequence[InsertResult]:
    try:
        step = next(steps)
        while True:
            step = steps.send(transaction.execute(*step).fetchall())
    except StopIteration as end:
        return cast(Sequence[InsertResult], end.value)


def script_for_caller(jobs: Sequence[NewJob], now: int | None, where: str) -> Script[Sequence[InsertResult]]:
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


def script(jobs: Sequence[NewJob], now: int | None) -> Script[Sequence[InsertResult]]:
    """Insert one after another; ``now=None``: the machine's time."""
    if now is None:
        now = machine_micros()
    answers = []
    for job in jobs:
        answers.append((yield from _insert_or_meet(job, now)))
    return answers


def _insert_or_meet(job: NewJob, now: int) -> Script[InsertResult]:
    cells, run_at = alike_cells(job, now)
    cells |= varied_cells(job.tenant, job.concurrency_key)
    text = insert_one(tuple(cells))
    params = (*cells.values(), job.id, job.payload_json, run_at, now)
    asked = (job.id, job.tenant, job.key, job.tenant, job.key, now)
    rows = (
        (yield statement("holder"), asked) if job.key is not None else ()
    )  # a kept key has no row in the way
    for _ in range(3):  # the holder of a key may vanish between two statements in autocommit
        if rows:
            return (yield from _meet(job, now, rows[0][0], State(rows[0][1])))
        if (yield f"{text}\nRETURNING id", params):
            if (plan := _plan(job, job.id)) is not None:
                yield statement("plan_to_keep"), plan
            return InsertResult(id=job.id, outcome="created")
        rows = yield statement("holder"), asked
    raise StoreError(f"job {job.id} was refused by a constraint that no stored job explains")


def _meet(job: NewJob, now: int, holder: str, state: State) -> Script[InsertResult]:
    """The place is taken, by the same id or by the holder of the key."""
    if holder == job.id or job.on_conflict == "return":
        return InsertResult(id=holder, outcome="existing", state=state)
    if job.on_conflict == "replace" and state is State.QUEUED:
        yield statement("replace"), replacement(job, now, holder)
        if (plan := _plan(job, holder)) is not None:
            yield statement("plan_to_keep"), plan
        else:
            yield statement("forget_kept_key"), (job.tenant, job.key)
        return InsertResult(id=holder, outcome="replaced", state=state)
    return InsertResult(id=holder, outcome="refused", state=state)
