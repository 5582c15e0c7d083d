"""Making jobs the worker's own: the one write of a claim."""

from __future__ import annotations

from collections.abc import Sequence

from ...model import ClaimRequest, Job
from .rows import alike_jobs, as_json, job, span
from .statements import statement
from .writer import Transaction


def take(transaction: Transaction, rowids: Sequence[int], want: ClaimRequest, now: int) -> Sequence[Job]:
    if not rowids:
        return ()
    text = as_json(rowids)
    transaction.execute(statement("claim"), (want.worker, now + span(want.lease_s), now, text))
    try:
        return alike_jobs(transaction.execute(statement("claimed"), (text,)).fetchone()[0])
    except Exception:  # one was edited by hand and is no JSON any more
        return [job(row) for row in transaction.execute(statement("claimed_rows"), (text,)).fetchall()]
