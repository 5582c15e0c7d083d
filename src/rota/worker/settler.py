"""Ended runs on their way to the store: gathered in batches, kept until the store took them."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ..core.jobs.lifecycle import fault_json
from ..model import ErrorRecord, JobFilter, JobId, PageRequest, Settlement, State
from ..store.protocol import Store
from .execution import Execution

log = logging.getLogger("rota.worker")

MOST_CHANGES = 1000
MOST_BYTES = 16 * 1024 * 1024


Ended = tuple[Execution, Settlement]


class PendingSettlements:
    """A queue of runs that ended. What ``take`` hands out is either ``settled`` or put ``back``."""

    def __init__(self) -> None:
        self._waiting: deque[Ended] = deque()
        self._doubtful: set[JobId] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, run: Execution, change: Settlement) -> int:
        """How many wait now."""
        self._waiting.append((run, change))
        return len(self._waiting)

    def take(self) -> list[Ended]:
        """The next batch, bounded in number and in bytes."""
        batch: list[Ended] = []
        size = 0
        while self._waiting and len(batch) < MOST_CHANGES:
            _, change = self._waiting[0]
            if change.output_json is not None or change.error_json is not None:
                size += len(change.output_json or "") + len(change.error_json or "")
                if batch and size > MOST_BYTES:
                    break
            batch.append(self._waiting.popleft())
        return batch

    def back(self, batch: Sequence[Ended]) -> None:
        """The store did not answer: the batch may or may not have been stored. Keep it, in order."""
        self._waiting.extendleft(reversed(batch))
        self._doubtful.update(change.id for _, change in batch)

    async def settled(
        self, batch: Sequence[Ended], refused: frozenset[JobId], store: Store
    ) -> frozenset[JobId]:
        """Of the refused ids, those truly gone: not merely stored by a call whose answer was lost."""
        if not self._doubtful:
            return refused
        gone = set(refused)
        doubtful = tuple(gone & self._doubtful)
        if doubtful:
            tokens = {change.id: (change.token, change.state) for _, change in batch}
            found = await store.jobs(JobFilter(ids=doubtful), PageRequest(limit=len(doubtful)))
            for job in found.items:
                token, state = tokens[job.id]
                if job.token == token and (job.state == state or job.state is State.QUEUED):
                    gone.discard(job.id)
        self._doubtful.difference_update(change.id for _, change in batch)
        return frozenset(gone)


def unstorable(change: Settlement, why: str, now: datetime) -> Settlement:
    """What becomes of a job whose own change the store cannot take: failed, with the reason."""
    fault = ErrorRecord(
        type="StoreError",
        message=f"its outcome could not be stored: {why}"[:2000],
        at=now,
        attempt=change.attempt,
    )
    return msgspec.structs.replace(
        change,
        state=State.FAILED,
        run_at=None,
        output_json=None,
        error_json=fault_json(fault),
        progress_json=None,
        remove=False,
        record=None,
        then=(),
        audit=(),
    )
