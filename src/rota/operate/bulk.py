"""One step of an action on many jobs: select, edit, report where the next step begins.

Jobs created while the steps run are left alone, so that the action ends.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.jobs import lifecycle
from ..errors import OptionError
from ..model import Edit, JobCount, JobFilter, JobId, PageRequest
from .actions import ActionContext
from .job_edits import check_id
from .job_selection import job_filter
from .requests import BulkRequest, JobSelector, UpdateJobRequest
from .views import BulkResult, JobView, job_view

MOST_COUNTED = 10_000
SAMPLE = 5


async def run_step(context: ActionContext, request: BulkRequest) -> BulkResult:
    """Count and sample the matching jobs of a dry run; otherwise edit at most ``limit`` of them."""
    if (request.ids is None) == (request.filter is None):
        raise OptionError("give ids or filter: one of the two")
    edit = _edit(context, request)
    where = _remaining(context, request, edit)
    store = await context.store()
    matched = await store.survey(JobCount(where, MOST_COUNTED))
    page = await store.jobs(where, PageRequest(limit=request.limit, newest_first=False))
    if request.dry_run:
        sample = tuple(job_view(job, context.visibility) for job in page.items[:SAMPLE])
        return _result(request, matched, sample=sample)
    async with context.audited(f"jobs.{request.action}", "jobs", where.tenant) as draft:
        found = tuple(job.id for job in page.items)
        edited: Sequence[JobId] = ()
        if found:
            edited = await store.edit(found, edit, context.services.clock.now())
        refused = len(found) - len(edited)
        following = f"{found[-1]}/{where.before_id}" if len(found) == request.limit else None
        draft.before = {"filter": request.filter, "ids": request.ids, "move": request.move}
        draft.after = {"done": len(edited), "refused": refused, "jobs": edited}
        draft.message = request.reason if request.action == "cancel" else None
        return _result(request, matched, done=len(edited), refused=refused, next=following)


def move(context: ActionContext, request: UpdateJobRequest) -> Edit:
    """The edit that changes when, how urgently and in which queue a queued job runs."""
    if request.now and request.run_at is not None:
        raise OptionError("give now or run_at, not both")
    run_at = context.services.clock.now() if request.now else request.run_at
    if run_at is not None and run_at.tzinfo is None:
        raise OptionError("run_at has no time zone: write it as 2030-01-31T08:00:00Z")
    return lifecycle.move(run_at=run_at, priority=request.priority, queue=request.queue)


def _edit(context: ActionContext, request: BulkRequest) -> Edit:
    now = context.services.clock.now()
    match request.action:
        case "retry":
            return lifecycle.retry(now)
        case "cancel":
            return lifecycle.cancel(request.reason, now)
        case "delete":
            return lifecycle.delete()
        case "move":
            return move(context, request.move or UpdateJobRequest())


def _remaining(context: ActionContext, request: BulkRequest, edit: Edit) -> JobFilter:
    """The jobs left to edit: in a state it may touch, after the cursor, created before the first step."""
    where = job_filter(context, request.filter or JobSelector())
    states = tuple(edit.touches if where.states is None else edit.touches & set(where.states))
    if not states:
        listed = ", ".join(where.states or ())
        raise OptionError(f"none of these states allows {request.action}: {listed}")
    ids = None if request.ids is None else tuple(check_id(id) for id in request.ids)
    last, _, until = (request.cursor or "").partition("/")
    after = [bound for bound in (where.after_id, last and check_id(last)) if bound]
    before = [check_id(until) if until else context.services.ids.new(context.services.clock.now())]
    before += [where.before_id] if where.before_id is not None else []
    return msgspec.structs.replace(
        where,
        ids=ids,
        states=tuple(sorted(states)),
        after_id=max(after, default=None),
        before_id=min(before),
    )


def _result(
    request: BulkRequest,
    matched: int,
    *,
    done: int = 0,
    refused: int = 0,
    sample: tuple[JobView, ...] = (),
    next: str | None = None,
) -> BulkResult:
    return BulkResult(
        action=request.action,
        dry_run=request.dry_run,
        matched=matched,
        exact=matched < MOST_COUNTED,
        done=done,
        refused=refused,
        sample=sample,
        next=next,
    )
