"""Claims: promote what fell due, find the lanes, take from each queue its share of the claim.

The ready index is ordered by lane (see ``lanes.py``), so jobs of tasks that the worker does not know,
and of queues closed to it, are never looked at; SQLite merges the lanes of one queue and reads each
only as far as needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import msgspec

from ...core.jobs.admission import shares
from ...model import ClaimRequest, Job
from .lanes import open_queues, park
from .rows import alike_jobs, as_json, instant, job, micros, span
from .statements import statement
from .writer import Transaction

MERGED = 50  # lanes in one statement; SQLite allows 500

Place = tuple[int, int, str, int]  # rank, run_at, id and rowid

_PLACES = msgspec.json.Decoder(list[Place])


def claim(transaction: Transaction, want: ClaimRequest, now: int) -> Sequence[Job]:
    """Jobs for the worker, best first: running now, each with a new token."""
    if want.until is not None and now > micros(want.until):
        return ()
    transaction.execute(statement("promote"), (now,))
    if want.exclude_tenants:
        park(transaction, want)
    jobs: list[Job] = []
    while (free := want.limit - len(jobs)) > 0:
        queues = open_queues(transaction, want)
        before = len(jobs)
        heads = {queue: min(lanes.values()) for queue, lanes in queues.items()}
        for queue, limit, last_rank in shares(heads, free):
            chosen = _select(transaction, queue, list(queues[queue]), limit, last_rank)
            jobs += _take(transaction, chosen, want, now)
        if len(jobs) == before or len(queues) == 1:
            break
    jobs.sort(key=_order)
    return jobs


def _order(job: Job) -> tuple[int, object, str]:
    return (-job.priority, job.run_at, job.id)


def _select(
    transaction: Transaction, queue: str, tasks: Sequence[str], limit: int, rank: int
) -> Sequence[int]:
    """The rowids of the first ``limit`` jobs of a queue, whatever their task."""
    found: list[Place] = []
    for start in range(0, len(tasks), MERGED):
        merged = tasks[start : start + MERGED]
        params = [value for task in merged for value in (queue, task, rank)]
        rows = transaction.execute(merged_select(len(merged)), (*params, limit)).fetchone()
        found += _PLACES.decode(rows[0])
    if len(tasks) > MERGED:
        found.sort()
    return [place[-1] for place in found[:limit]]


@cache
def merged_select(lanes: int) -> str:
    """Reads ``lanes`` lanes as one. The result is one string: each row would cost a switch of threads."""
    selects = "\nUNION ALL\n".join([statement("select_claimable")] * lanes)
    merged = f"{selects}\nORDER BY rank, run_at, id LIMIT ?"
    return f"SELECT json_group_array(json_array(rank, run_at, id, rowid)) FROM (\n{merged}\n)"


def _take(transaction: Transaction, rowids: Sequence[int], want: ClaimRequest, now: int) -> Sequence[Job]:
    if not rowids:
        return ()
    text = as_json(rowids)
    transaction.execute(statement("claim"), (want.worker, now + span(want.lease_s), now, text))
    try:
        return alike_jobs(transaction.execute(statement("claimed"), (text,)).fetchone()[0])
    except Exception:  # one was edited by hand and is no JSON any more
        return [job(row) for row in transaction.execute(statement("claimed_rows"), (text,)).fetchall()]


def next_due(transaction: Transaction) -> int | None:
    """When the earliest job that is not due yet will be."""
    value: int | None = transaction.execute(statement("next_due")).fetchone()[0]
    return value


def reclaim(transaction: Transaction, holder: str, lease_s: float, limit: int, now: int) -> Sequence[Job]:
    """Running jobs whose lease is over, now the holder's; each still names its former worker."""
    former = [job(row) for row in transaction.execute(statement("expired"), (now, limit)).fetchall()]
    if not former:
        return ()
    until = now + span(lease_s)
    transaction.execute(statement("take_over"), (holder, until, as_json([job.id for job in former])))
    lease_until = instant(until)
    return [
        msgspec.structs.replace(job, lease_token=job.lease_token + 1, lease_until=lease_until)
        for job in former
    ]
