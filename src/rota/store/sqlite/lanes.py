"""The lanes a worker may claim from, and the jobs that are parked.

A lane is a queue and a task that have ready jobs. Jobs of paused tenants are parked, out of the ready
index, when a claim meets them: a tenant with a million jobs at the head is passed once, and not with
every claim. They come back, as many as a claim can take, when a worker asks that may have them.
"""

from __future__ import annotations

from functools import cache

from ...core.jobs.admission import LAST_RANK, Head
from ...model import ClaimRequest
from .rows import as_json
from .statements import statement
from .writer import Transaction


def open_queues(transaction: Transaction, want: ClaimRequest) -> dict[str, dict[str, Head]]:
    """The queues open to the worker, with their lanes: task and first job."""
    rows = transaction.execute(_lanes_and_sign()).fetchall()
    if rows and rows[-1][0] is None:
        _unpark(transaction, want)
        rows = transaction.execute(statement("lanes")).fetchall()
    found: dict[str, dict[str, Head]] = {}
    for queue, task, *head in rows:
        if _is_open(want, queue, task):
            found.setdefault(queue, {})[task] = (head[0], head[1], head[2])
    return found


@cache
def _lanes_and_sign() -> str:
    """The lanes, and at the end a row of nulls if jobs are parked: asking separately would cost more."""
    return f"{statement('lanes')}\nUNION ALL\n{statement('any_parked')}"


def _is_open(want: ClaimRequest, queue: str, task: str) -> bool:
    return (
        (want.queues is None or queue in want.queues)
        and queue not in want.exclude_queues
        and (want.tasks is None or task in want.tasks)
    )


def park(transaction: Transaction, want: ClaimRequest) -> None:
    """Clear the lanes of excluded tenants' jobs as far as this claim can reach."""
    tenants = as_json(want.exclude_tenants)
    for queue, task, *_ in transaction.execute(statement("lanes")).fetchall():
        if _is_open(want, queue, task):
            asked = (queue, task, tenants, want.limit - 1)
            end = transaction.execute(statement("last_open"), asked).fetchone() or (LAST_RANK, 0, "")
            transaction.execute(statement("park"), (queue, task, *end, tenants))


def _unpark(transaction: Transaction, want: ClaimRequest) -> None:
    """The first jobs of each lane suffice: a claim takes no more than its limit from any."""
    for tenant, queue, task in transaction.execute(statement("lanes_parked")).fetchall():
        if tenant not in want.exclude_tenants and _is_open(want, queue, task):
            transaction.execute(statement("unpark"), (tenant, queue, task, want.limit))
