"""Which jobs an actor may see and search for: one by its id, or many by a selector.

No other module decides that. An actor never finds another tenant's job, nor searches by a secret field.
"""

from __future__ import annotations

from datetime import datetime

from ..core.ids import uuid7
from ..core.payload.masking import is_secret
from ..errors import Forbidden, NotFound, OptionError
from ..model import Job, JobFilter, JobId
from .actions import ActionContext
from .job_edits import check_id, get
from .requests import JobSelector


async def visible_job(context: ActionContext, id: str) -> Job:
    """The job; NotFound also if it belongs to another tenant than the actor."""
    job = await get(await context.store(), id)
    if not context.sees(job.tenant):
        raise NotFound(f"there is no job {job.id}: it was never stored, or it has been removed since")
    return job


def job_filter(context: ActionContext, selector: JobSelector) -> JobFilter:
    """The filter that a store reads by."""
    return JobFilter(
        states=selector.state or None,
        task=selector.task,
        queue=selector.queue,
        tenant=context.tenant(selector.tenant),
        tag=selector.tag,
        key=selector.key,
        concurrency_key=selector.concurrency_key,
        schedule=selector.schedule,
        parent=check_id(selector.parent) if selector.parent is not None else None,
        worker=selector.worker,
        error=_error(context, selector.error),
        payload=_payload(context, selector.payload),
        not_tasks=selector.not_task,
        not_queues=selector.not_queue,
        after_id=_first_id(selector.since, "since"),
        before_id=_first_id(selector.until, "until"),
    )


def _error(context: ActionContext, search: str | None) -> str | None:
    """A search in errors reveals what they contain, so it requires the permission to see payloads."""
    if search is not None and not context.actor.payloads:
        raise Forbidden("searching in errors requires the permission to see payloads, which errors may quote")
    return search


def _payload(context: ActionContext, searches: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Payload searches as (path, text). Requires the permission to see payloads, and no secret field."""
    if searches and not context.actor.payloads:
        raise Forbidden("searching in payloads requires the permission to see them")
    found = []
    for search in searches:
        path, equals, text = search.partition("=")
        keys = tuple(path.split("."))
        if not equals or not all(keys) or "\0" in search:
            raise OptionError(f"payload={search!r}: write it as order.id=42")
        if "\\" in path:  # a store that decodes escapes would find a secret field by another spelling
            raise OptionError(f"payload={search!r}: the name of a field is written without backslashes")
        if any(is_secret(key, context.services.settings.secret_fields) for key in keys):
            raise Forbidden(f"payload={search!r}: the field is secret and cannot be searched")
        found.append((keys, text))
    return tuple(found)


def _first_id(at: datetime | None, name: str) -> JobId | None:
    """The smallest id that a job created at this time can have."""
    if at is None:
        return None
    if at.tzinfo is None:
        raise OptionError(f"{name} has no time zone: write it as 2030-01-31T08:00:00Z")
    return uuid7(max(int(at.timestamp() * 1000), 0), 0)
