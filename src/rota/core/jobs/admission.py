"""Which jobs a claim may take: how a claim is shared between queues. Pure.

Owns the policy. The SQLite store calls it; the PL/pgSQL of the PostgreSQL store is a copy made for
speed, and ``tests/stores/test_postgres_admission.py`` holds it to this one. Limits on what may run at
once, and fair shares between tenants, belong here too: a store never decides them by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

LAST_RANK = 2**63 - 1  # no rank is larger

Head = tuple[int, Any, str]  # rank (minus the priority), due time and id of a queue's first job


class Share(NamedTuple):
    """What one queue may give in this round of a claim."""

    queue: str
    limit: int  # jobs
    last_rank: int  # jobs of a larger rank wait for the next round


def shares(heads: Mapping[str, Head], limit: int) -> Iterator[Share]:
    """What each queue may contribute to a claim of at most ``limit`` jobs.

    Queues whose best priority is the best of all share evenly, the one whose first job is due longest
    first. A queue that leads alone may give until its priority falls to that of the next. A claim asks
    again, with the heads as they are then, until it is full or the queues are empty.
    """
    best = min((rank for rank, _, _ in heads.values()), default=0)
    leading = sorted((head, queue) for queue, head in heads.items() if head[0] == best)
    others = (rank for rank, _, _ in heads.values() if rank != best)
    last = min(others, default=LAST_RANK + 1) - 1 if len(leading) == 1 else best
    for place, (_, queue) in enumerate(leading):
        share = -(-limit // (len(leading) - place))
        if share:
            yield Share(queue, share, last)
        limit -= share
