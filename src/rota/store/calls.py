"""What callers build from the methods of a store: half turns, edits by filter, one document.

Owns no state. Must never reach behind the store protocol: everything here works on any store.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from ..model import ClaimRequest, Document, Edit, Job, JobFilter, JobId, PageRequest, Settlement
from .protocol import Store, StoreWithin

EDITED_AT_ONCE = 1000  # jobs in one call


async def claim(store: Store, request: ClaimRequest, now: datetime | None) -> Sequence[Job]:
    """A turn that settles nothing."""
    return (await store.turn((), request, now)).jobs


async def settle(store: Store, settlements: Sequence[Settlement], now: datetime | None) -> frozenset[JobId]:
    """A turn that claims nothing: the ids that were rejected because the lease is gone."""
    return (await store.turn(settlements, None, now)).refused


async def find_document(store: StoreWithin, kind: str, key: str) -> Document | None:
    found = await store.documents(kind, key)
    return found[0] if found else None


async def edit_matching(
    store: Store, where: JobFilter, edit: Edit, limit: int, now: datetime
) -> Sequence[JobId]:
    """Apply the edit to the first ``limit`` jobs that match, the oldest ids first; the ids it changed.

    A job may change between its selection and the edit: the edit's own states, narrowed to those of the
    filter, are what it is held to.
    """
    touches = edit.touches if where.states is None else edit.touches.intersection(where.states)
    edit = msgspec.structs.replace(edit, touches=touches)
    where = msgspec.structs.replace(where, states=tuple(sorted(touches)))
    changed: list[JobId] = []
    cursor: str | None = None
    while limit > 0:
        size = min(limit, EDITED_AT_ONCE)
        request = PageRequest(limit=size, cursor=cursor, newest_first=False, brief=True)
        page = await store.jobs(where, request)
        changed += await store.edit([job.id for job in page.items], edit, now)
        if (cursor := page.next) is None:
            break
        limit -= len(page.items)
    return changed
