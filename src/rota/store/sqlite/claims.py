"""Claims: promote what fell due, find the lanes, take from each queue its share of the claim.

The ready index is ordered by lane (see ``lanes.py``), so jobs of tasks that the worker does not know,
and of queues closed to it, are never looked at; SQLite merges the lanes of one queue and reads each
only as far as needed. Where there are tenants, limits or held jobs, ``ruled_claims.py`` continues.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cache
from typing import NamedTuple

import msgspec

from ...core.jobs.admission import shares
from ...core.jobs.order import claim_order
from ...model import ClaimRequest, Job, Settlement
from .claimed_jobs import take
from .lanes import TENANT, ClaimMemory, Signs, line_lanes
from .rows import as_json, instant, job, micros, span
from .ruled_claims import Freed, RuledClaim
from .statements import statement
from .writer import Transaction

MERGED = 50  # lanes in one statement; SQLite allows 500

Place = tuple[int, int, str, int]  # rank, run_at, id and rowid

_PLACES = msgspec.json.Decoder(list[Place])


class Claimed(NamedTuple):
    jobs: Sequence[Job] = ()
    again_at: int | None = None  # when something that held jobs up will admit them by itself


def claim(
    transaction: Transaction,
    want: ClaimRequest,
    now: int,
    memory: ClaimMemory,
    freed: Set[Freed] = frozenset(),
) -> Claimed:
    """Jobs for the worker, best first: running now, each with a new token."""
    if want.until is not None and now > micros(want.until):
        return Claimed()
    transaction.execute(statement("promote"), (now,))
    jobs: list[Job] = []
    while (free := want.limit - len(jobs)) > 0:
        queues, signs = line_lanes(transaction, want)
        if signs is not None or want.exclude_tenants:
            ruled = RuledClaim(transaction, want, now, memory, signs or NO_SIGNS, jobs)
            return Claimed(*ruled.run(queues, freed))
        before = len(jobs)
        heads = {queue: min(lanes.values()) for queue, lanes in queues.items()}
        for queue, limit, last_rank in shares(heads, free):
            chosen = _select(transaction, queue, list(queues[queue]), limit, last_rank)
            jobs += take(transaction, chosen, want, now)
        if len(jobs) == before or len(queues) == 1:
            break
    memory.is_holding = False
    jobs.sort(key=claim_order)
    return Claimed(jobs)


NO_SIGNS = Signs(0, 0, 0, 1)


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


def next_due(transaction: Transaction, claimed: Claimed) -> int | None:
    """When to claim again: the earliest job that is not due yet will be, or a limit will admit one."""
    value: int | None = transaction.execute(statement("next_due")).fetchone()[0]
    if value is None or claimed.again_at is None:
        return claimed.again_at if value is None else value
    return min(value, claimed.again_at)


def freed_by(transaction: Transaction, settlements: Sequence[Settlement], memory: ClaimMemory) -> Set[Freed]:
    """The held lanes that these settlements may free a slot for: asked before they are written."""
    if not memory.is_holding or not settlements:
        return frozenset()
    freed = {(one.queue, one.tenant, TENANT) for one in settlements}
    ids = as_json([one.id for one in settlements])
    for queue, tenant, key in transaction.execute(statement("keys_of"), (ids,)).fetchall():
        freed.add((queue, tenant, f"k:{key}"))
    return freed


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
