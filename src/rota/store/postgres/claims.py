"""Turns: what is asked of ``rota.settle`` and ``rota.claim``, and where the next claim starts.

Owns the places at which claims ended. A worker under load starts there, because the front of the
index is full of entries of jobs that are gone until the next vacuum; it starts from the front again
every so often, since a late commit may have put a job behind the place. Where there are tenants or limits
the server says itself where to continue, and learns whose jobs were claimed recently. Must never do I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from ...model import ClaimRequest, Job, Settlement
from .rows import NOW, settled, text, texts_array

FULL_FROM = 16  # jobs; a smaller claim always starts from the front
FRONT_EVERY_S = 0.05
SMALL = 64  # jobs; a larger claim can be shared fairly by itself
REMEMBERED_S = 1.0  # after which what a tenant was given counts half
MOST_REMEMBERED = 32  # tenants
MOST_BEGUN = 64  # jobs that are remembered; then each tenant's count half
FRONT_SHARE = 25  # a claim from the front takes at most one part in this many of the time

_SETTLE = (
    "rota.settle(CAST(%s AS uuid[]), CAST(%s AS bigint[]), CAST(%s AS text[]), CAST(%s AS bigint[]), "
    f"CAST(%s AS json), CAST(%s AS json), {NOW}) AS s"
)
# A statement that reaches the server when no worker waits for its answer claims nothing.
_CLAIM = (
    "rota.claim(%s, CASE WHEN clock_timestamp() > %s THEN 0 ELSE %s END, %s, CAST(%s AS text[]), "
    "CAST(%s AS text[]), CAST(%s AS text[]), CAST(%s AS text[]), CAST(%s AS json), CAST(%s AS integer), "
    "CAST(%s AS json), CAST(%s AS json), {}, {}) AS c"
)
SETTLE = f"SELECT s.refused, s.woken, s.slots, NULL, s.settled_at::text FROM {_SETTLE}"
CLAIM = f"SELECT NULL, NULL, NULL, c.* FROM {_CLAIM.format('NULL', NOW)}"
# The claim takes its instant from what was settled, so it is made afterwards.
TURN = (
    "SELECT s.refused, s.woken, s.slots, c.* "
    f"FROM {_SETTLE}, LATERAL {_CLAIM.format('s.freed', 's.settled_at')}"
)

# Where the row that answers for a shared claim has its places, its state, and whether all limits were ample;
# a job has its id.
PLACES, STATE, ID, AMPLE = 5, 6, 7, -1


def serves(request: ClaimRequest | None, queue: str) -> bool:
    """Whether the claim has looked into this queue."""
    if request is None or queue in request.exclude_queues:
        return False
    return request.queues is None or queue in request.queues


def is_shared(row: Sequence[Any]) -> bool:
    """Whether it is the row that answers for a claim that was shared between tenants."""
    return row[ID] is None and row[STATE] is not None


def could_use(request: ClaimRequest | None, answer: Sequence[Any], jobs: int, queue: str) -> bool:
    """Whether this claim would have used a place that was freed in the queue, or none was wanting there."""
    if request is None or not serves(request, queue):
        return False
    return jobs < request.limit or (is_shared(answer) and answer[AMPLE])


class _Place(msgspec.Struct, frozen=True):
    queue: str
    rank: int
    run_at: datetime
    id: str


class ClaimCursors:
    """Where the last claims of this store object ended, by what they asked for."""

    def __init__(self) -> None:
        self._ended: dict[tuple[Any, ...], dict[str, _Place] | str] = {}
        self._front_at: dict[tuple[Any, ...], float] = {}
        self._states: dict[tuple[Any, ...], str] = {}  # what the server said, where claims are shared
        self._given: Counter[str] = Counter()  # jobs of the last moments, by tenant
        self._begun: Counter[str] = Counter()  # the last jobs, however long ago: rates may be slow
        self._forget_at = 0.0

    def since(self, want: ClaimRequest, time: float) -> str | None:
        """For ``rota.claim``; None: from the front."""
        ended = self._ended.get(_kind(want))
        if not ended or time >= self._front_at[_kind(want)]:
            return None
        return ended if isinstance(ended, str) else text(list(ended.values()))

    def state(self, want: ClaimRequest) -> str | None:
        """For ``rota.claim_fairly``: what the last claim said."""
        return self._states.get(_kind(want))

    def recent(self, want: ClaimRequest) -> str | None:
        """For ``rota.claim_fairly``: whose jobs the worker has, or had just now."""
        holds = want.holds
        if not holds and want.limit <= SMALL:
            holds = tuple(self._given.most_common(MOST_REMEMBERED))
        begun = self._begun.most_common(MOST_REMEMBERED) if want.limit <= SMALL else ()
        if not holds and not begun:
            return None
        in_hand = "true" if want.holds else "false"
        return f'{{"holds":{text(holds)},"in_hand":{in_hand},"begun":{text(begun)}}}'

    def note_shared(
        self,
        want: ClaimRequest,
        jobs: Sequence[Job],
        said: tuple[str | None, str],
        began: float,
        ended: float,
        front: bool,
    ) -> None:
        """Remember how a claim went that was shared between tenants; ``said``: its places and its state."""
        kind = _kind(want)
        places, self._states[kind] = said
        if ended >= self._forget_at:
            self._forget_at = ended + REMEMBERED_S
            self._given = _half(self._given)
        if want.limit <= SMALL:
            self._begun.update(job.tenant for job in jobs)
            if self._begun.total() > MOST_BEGUN:
                self._begun = _half(self._begun)
        if want.holds:
            self._given.clear()  # what it has in hand says more
        elif want.limit <= SMALL:
            self._given.update(job.tenant for job in jobs)
        if places is None or len(jobs) < max(want.limit, FULL_FROM):
            self._ended.pop(kind, None)
            return
        self._ended[kind] = places
        if front:
            self._front_at[kind] = ended + max(FRONT_EVERY_S, FRONT_SHARE * (ended - began))

    def note(self, want: ClaimRequest, jobs: Sequence[Job], began: float, ended: float, front: bool) -> None:
        """Remember how a claim went; ``jobs`` in the order of the claim."""
        kind = _kind(want)
        if len(jobs) < max(want.limit, FULL_FROM):
            self._ended.pop(kind, None)
            return
        places = self._ended.get(kind)
        if front or not isinstance(places, dict):
            places = self._ended[kind] = {}
            self._front_at[kind] = ended + max(FRONT_EVERY_S, FRONT_SHARE * (ended - began))
        for queue, job in {job.queue: job for job in jobs}.items():  # the last of each
            places[queue] = _Place(queue=queue, rank=-job.priority, run_at=job.run_at, id=job.id)


def turn(
    changes: Sequence[Settlement],
    want: ClaimRequest | None,
    now: datetime | None,
    since: str | None = None,
    state: str | None = None,
    recent: str | None = None,
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
        want.free,
        state,
        recent,
    )
    if not changes:
        return CLAIM, (*asked, now)
    return TURN, (*settled(changes, now), *asked)


@lru_cache(maxsize=64)
def array(texts: tuple[str, ...] | None) -> str | None:
    """An array in the server's notation; a worker asks for the same again and again."""
    return None if texts is None else texts_array(texts)


def _half(counted: Counter[str]) -> Counter[str]:
    return Counter({tenant: n // 2 for tenant, n in counted.items() if n > 1})


def _kind(want: ClaimRequest) -> tuple[Any, ...]:
    return want.queues, want.exclude_queues, want.tasks, want.exclude_tenants
