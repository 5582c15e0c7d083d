"""Turns: what is asked of ``rota.settle`` and ``rota.claim``, and where the next claim starts.

Owns the places at which claims ended. A worker under load starts there, because the front of the
index is full of entries of jobs that are gone until the next vacuum; it starts from the front again
every so often, since a late commit may have put a job behind the place. Must never do I/O.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from ...model import ClaimRequest, Job, Settlement
from .rows import NOW, settled, text, texts_array

FULL_FROM = 16  # jobs; a smaller claim always starts from the front
FRONT_EVERY_S = 0.05
FRONT_SHARE = 25  # a claim from the front takes at most one part in this many of the time

_SETTLE = (
    "rota.settle(CAST(%s AS uuid[]), CAST(%s AS bigint[]), CAST(%s AS text[]), CAST(%s AS bigint[]), "
    f"CAST(%s AS json), CAST(%s AS json), {NOW}) AS s"
)
# A statement that reaches the server when no worker waits for its answer claims nothing.
_CLAIM = (
    "rota.claim(%s, CASE WHEN clock_timestamp() > %s THEN 0 ELSE %s END, %s, CAST(%s AS text[]), "
    "CAST(%s AS text[]), CAST(%s AS text[]), CAST(%s AS text[]), CAST(%s AS json), {}) AS c"
)
SETTLE = f"SELECT s.refused, s.woken, NULL, s.settled_at::text FROM {_SETTLE}"
CLAIM = f"SELECT NULL, NULL, c.* FROM {_CLAIM.format(NOW)}"
# The claim takes its instant from what was settled, so it is made afterwards.
TURN = f"SELECT s.refused, s.woken, c.* FROM {_SETTLE}, LATERAL {_CLAIM.format('s.settled_at')}"


class _Place(msgspec.Struct, frozen=True):
    queue: str
    rank: int
    run_at: datetime
    id: str


class ClaimCursors:
    """Where the last claims of this store object ended, by what they asked for."""

    def __init__(self) -> None:
        self._ended: dict[tuple[Any, ...], dict[str, _Place]] = {}
        self._front_at: dict[tuple[Any, ...], float] = {}

    def since(self, want: ClaimRequest, time: float) -> str | None:
        """For ``rota.claim``; None: from the front."""
        ended = self._ended.get(_kind(want))
        if not ended or time >= self._front_at[_kind(want)]:
            return None
        return text(list(ended.values()))

    def note(self, want: ClaimRequest, jobs: Sequence[Job], began: float, ended: float, front: bool) -> None:
        """Remember how a claim went; ``jobs`` in the order of the claim."""
        kind = _kind(want)
        if len(jobs) < max(want.limit, FULL_FROM):
            self._ended.pop(kind, None)
            return
        if front:
            self._ended[kind] = {}
            self._front_at[kind] = ended + max(FRONT_EVERY_S, FRONT_SHARE * (ended - began))
        places = self._ended.setdefault(kind, {})
        for queue, job in {job.queue: job for job in jobs}.items():  # the last of each
            places[queue] = _Place(queue=queue, rank=-job.priority, run_at=job.run_at, id=job.id)


def turn(
    changes: Sequence[Settlement], want: ClaimRequest | None, now: datetime | None, since: str | None
) -> tuple[str, tuple[Any, ...]]:
    """The one statement of a turn. Its first row answers for the turn itself, each other one is a job."""
    if want is None:
        return SETTLE, settled(changes, now)
    is_late = now is not None and want.until is not None and now > want.until
    asked = (
        want.worker,
        want.until if now is None else None,
        0 if is_late else want.limit,
        want.lease_s,
        array(want.queues),
        array(want.exclude_queues),
        array(want.tasks),
        array(want.exclude_tenants or None),
        since,
    )
    if not changes:
        return CLAIM, (*asked, now)
    return TURN, (*settled(changes, now), *asked)


@lru_cache(maxsize=64)
def array(texts: tuple[str, ...] | None) -> str | None:
    """An array in the server's notation; a worker asks for the same again and again."""
    return None if texts is None else texts_array(texts)


def _kind(want: ClaimRequest) -> tuple[Any, ...]:
    return want.queues, want.exclude_queues, want.tasks, want.exclude_tenants
