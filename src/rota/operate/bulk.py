"""One step of an action on many jobs: select, edit, report where the next step begins.

A step is committed batch by batch, and ends early rather than late: whatever happens, it reports how
many jobs were changed. Jobs created while the steps run are left alone, so that the action ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ..core.jobs import lifecycle
from ..core.plurals import plural
from ..errors import OptionError, StoreError, StoreUnavailable
from ..model import Edit, JobCount, JobFilter, JobId, PageRequest
from ..runtime.clock import monotonic
from ..store.protocol import Store
from .actions import ActionContext
from .job_edits import check_id
from .job_selection import job_filter
from .requests import BulkRequest, JobSelector, UpdateJobRequest
from .views import BulkResult, job_view

MOST_COUNTED = 10_000
SAMPLE = 5
BATCH = 100  # jobs that are committed together
STEP_S = 5.0  # after which a step begins no further batch


class BulkInterrupted(StoreUnavailable):
    """The store failed in the middle of a step, after ``done`` jobs of it had been changed."""

    def __init__(self, done: int) -> None:
        super().__init__(f"the store failed after {plural(done, 'job')}: send the request again to continue")
        self.done = done


async def run_step(context: ActionContext, request: BulkRequest) -> BulkResult:
    """Count and sample the matching jobs of a dry run; otherwise edit at most ``limit`` of them."""
    if (request.ids is None) == (request.filter is None):
        raise OptionError("give ids or filter: one of the two")
    edit = await _edit(context, request)
    cursor = BulkCursor.parse(request.cursor)
    where = _remaining(context, request, edit, cursor)
    store = await context.store()
    most = MOST_COUNTED if request.cursor is None else request.limit + 1
    matched = await store.survey(JobCount(where, most))
    page = await store.jobs(where, PageRequest(limit=request.limit, newest_first=False))
    result = BulkResult(
        action=request.action,
        dry_run=request.dry_run,
        matched=matched,
        exact=matched < most,
        done=0,
        refused=0,
    )
    if request.dry_run:
        sample = tuple(job_view(job, context.visibility) for job in page.items[:SAMPLE])
        return msgspec.structs.replace(result, sample=sample)
    async with context.audited(f"jobs.{request.action}", "jobs", where.tenant) as draft:
        draft.before = {"filter": request.filter, "ids": request.ids, "move": request.move}
        draft.message = request.reason if request.action == "cancel" else None
        found = [job.id for job in page.items]
        edited: list[JobId] = []
        try:
            seen = await _in_batches(context, store, edit, found, edited)
        finally:
            draft.after = {"done": len(edited), "refused": 0, "jobs": edited}
        refused = seen - len(edited)
        draft.after["refused"] = refused
        total = cursor.done + len(edited)
        more = seen < len(found) or len(found) == request.limit
        following = BulkCursor(found[seen - 1], where.before_id or "", total).text if more else None
        return msgspec.structs.replace(result, done=len(edited), refused=refused, total=total, next=following)


async def _in_batches(
    context: ActionContext, store: Store, edit: Edit, found: Sequence[JobId], edited: list[JobId]
) -> int:
    """Edit the jobs that were found, oldest first, as far as time allows; returns how many were tried."""
    began, seen = monotonic(), 0
    while seen < len(found) and (not seen or monotonic() - began < STEP_S):
        batch = found[seen : seen + BATCH]
        try:
            edited += await store.edit(tuple(batch), edit, context.services.clock.now())
        except StoreError as error:
            if not edited:
                raise
            raise BulkInterrupted(len(edited)) from error
        seen += len(batch)
    return seen


async def move(context: ActionContext, request: UpdateJobRequest) -> Edit:
    """The edit that changes when, how urgently and in which queue a queued job runs."""
    if request.now and request.run_at is not None:
        raise OptionError("give now or run_at, not both")
    run_at = context.services.clock.now() if request.now else request.run_at
    if run_at is not None and run_at.tzinfo is None:
        raise OptionError("run_at has no time zone: write it as 2030-01-31T08:00:00Z")
    priority = await _capped(context, request.priority)
    return lifecycle.move(run_at=run_at, priority=priority, queue=request.queue)


async def _capped(context: ActionContext, priority: int | None) -> int | None:
    """Not above the ``max_priority`` of the tenant that the actor is limited to. Others may exceed it."""
    own = context.actor.tenant
    if priority is None or own is None:
        return priority
    rule = (await context.services.runtime.tenants.rules(await context.store())).get(own)
    return priority if rule is None or rule.max_priority is None else min(priority, rule.max_priority)


async def _edit(context: ActionContext, request: BulkRequest) -> Edit:
    now = context.services.clock.now()
    match request.action:
        case "retry":
            return lifecycle.retry(now)
        case "cancel":
            return lifecycle.cancel(request.reason, now)
        case "delete":
            return lifecycle.delete()
        case "move":
            return await move(context, request.move or UpdateJobRequest())


class BulkCursor(NamedTuple):
    """Where the next step begins: after which job, before which new ones, and how many are done so far."""

    last: str = ""
    until: str = ""
    done: int = 0

    @classmethod
    def parse(cls, text: str | None) -> BulkCursor:
        if text is None:
            return cls()
        last, _, rest = text.partition("/")
        until, _, done = rest.partition("/")
        if done and not (done.isascii() and done.isdigit() and len(done) < 16):
            raise OptionError("cursor: is not one that a step returned")
        return cls(check_id(last) if last else "", check_id(until) if until else "", int(done or 0))

    @property
    def text(self) -> str:
        return f"{self.last}/{self.until}/{self.done}"


def _remaining(context: ActionContext, request: BulkRequest, edit: Edit, cursor: BulkCursor) -> JobFilter:
    """The jobs left to edit: in a state it may touch, after the cursor, created before the first step."""
    where = job_filter(context, request.filter or JobSelector())
    states = tuple(edit.touches if where.states is None else edit.touches & set(where.states))
    if not states:
        listed = ", ".join(where.states or ())
        raise OptionError(f"none of these states allows {request.action}: {listed}")
    ids = None if request.ids is None else tuple(check_id(id) for id in request.ids)
    after = [bound for bound in (where.after_id, cursor.last) if bound]
    before = [cursor.until or context.services.ids.new(context.services.clock.now())]
    before += [where.before_id] if where.before_id is not None else []
    return msgspec.structs.replace(
        where,
        ids=ids,
        states=tuple(sorted(states)),
        after_id=max(after, default=None),
        before_id=min(before),
    )
