"""Actions on jobs: list, explain, enqueue, retry, cancel, move and delete, one by one or in bulk.

Access checks, auditing and views are decided here; selection, bulk steps and idempotency keys have modules
of their own. A single-job action reads its job once.
"""

from __future__ import annotations

import msgspec

from ..core.access import require_scope
from ..core.jobs import lifecycle
from ..core.jobs.options import options
from ..core.jobs.why import Why, explain
from ..errors import Forbidden, OptionError
from ..model import Edit, Job, JobCount, JobFilter, NewJob, Page, PageRequest, State
from . import bulk, idempotency, job_edits
from .actions import ActionGroup, requires
from .failures import failures
from .job_selection import job_filter, visible_job
from .known_names import undeclared
from .requests import (
    BulkRequest,
    CancelRequest,
    CountRequest,
    EnqueueRequest,
    FailuresRequest,
    JobSelector,
    JobsRequest,
    UpdateJobRequest,
)
from .views import (
    AttemptView,
    BulkResult,
    Count,
    EnqueuedView,
    FailureGroups,
    JobView,
    Visibility,
    attempt_view,
    enqueued_view,
    job_view,
)
from .why_facts import why_facts

ENQUEUE_OPTIONS = (
    "queue", "priority", "run_at", "delay", "key", "key_for", "key_per", "on_conflict", "max_attempts",
    "timeout", "auto_remove", "parent", "expires", "keep", "concurrency_key", "units", "price",
)  # fmt: skip


class JobActions(ActionGroup):
    """Actions on jobs. ``retried`` and ``cancelled`` return the job itself, for the app."""

    subject = "job"

    # --- reads -----------------------------------------------------------------------------------

    @requires("read")
    async def list(self, request: JobsRequest) -> Page[JobView]:
        """List jobs, newest first by default."""
        store = await self.operations.store()
        page = await store.jobs(
            job_filter(self.operations, request),
            PageRequest(limit=request.limit, cursor=request.cursor, newest_first=request.order == "newest"),
        )
        return Page(items=[job_view(job, self.operations.visibility) for job in page.items], next=page.next)

    @requires("read")
    async def count(self, request: CountRequest) -> Count:
        """Count matching jobs, up to ``most``."""
        store = await self.operations.store()
        found = await store.survey(JobCount(job_filter(self.operations, request), request.most))
        return Count(count=found, exact=found < request.most)

    @requires("read")
    async def failures(self, request: FailuresRequest) -> FailureGroups:
        """Group the newest failed jobs by error."""
        selector = JobSelector(
            state=(State.FAILED,), task=request.task, queue=request.queue, tenant=request.tenant,
            since=request.since, until=request.until,
        )  # fmt: skip
        where = job_filter(self.operations, selector)
        return await failures(await self.operations.store(), where, request.limit, self.operations.visibility)

    @requires("read")
    async def show(self, id: str) -> JobView:
        """Show one job."""
        return job_view(await visible_job(self.operations, id), self.operations.visibility)

    @requires("read")
    async def attempts(self, id: str) -> Page[AttemptView]:
        """List all attempts of a job, oldest first."""
        job = await visible_job(self.operations, id)
        found = await job_edits.attempts(await self.operations.store(), job)
        return Page(items=[attempt_view(one, self.operations.visibility) for one in found])

    @requires("read")
    async def why(self, id: str) -> Why:
        """Explain why a job is not running: the reasons in the order they must be cleared."""
        job = await visible_job(self.operations, id)
        return explain(await why_facts(self.operations, job))

    # --- one job ---------------------------------------------------------------------------------

    @requires("enqueue")
    async def enqueue(self, request: EnqueueRequest) -> EnqueuedView:
        """Create a job for a task, by the task's name."""
        tenant = self.operations.tenant(request.tenant) or "default"
        async with self.operations.audited("job.enqueue", None, tenant) as draft:
            given = {name: getattr(request, name) for name in ENQUEUE_OPTIONS}
            chosen = options(
                {
                    **{name: value for name, value in given.items() if value is not None},
                    "tenant": self.operations.tenant(request.tenant),
                    "tags": request.tags or None,
                }
            )
            store, clock = await self.operations.store(), self.services.clock
            new = await self.services.producer.prepared(
                request.task, request.payload, chosen
            )  # before a key is used
            self._check_producer(request, new)
            await self._check_parent(request.parent, new.tenant)
            warning = await undeclared(self.services, self.operations.actor, new.task)
            record = await idempotency.reserve(
                store, clock, tenant, self.services.ids.new(clock.now()), request
            )
            handle = await self.services.producer.enqueue_as(new, None if record is None else record.job)
            await idempotency.confirm(store, clock, record)
            draft.object, draft.tenant = f"job:{handle.id}", handle.tenant
            draft.after = {"task": handle.task, "queue": handle.queue, "state": handle.state}
            return enqueued_view(handle, self._visibility_for_producing(), warning)

    def _visibility_for_producing(self) -> Visibility:
        """A producer reads nothing, also if its key names a job that another has enqueued."""
        found = self.operations.visibility
        is_producer = self.operations.actor.role == "producer"
        return msgspec.structs.replace(found, payloads=False) if is_producer else found

    async def _check_parent(self, parent: str | None, tenant: str) -> None:
        """A job of the same tenant; whether another tenant has it is not said."""
        if parent is None:
            return
        found = await (await self.operations.store()).jobs(
            JobFilter(ids=(job_edits.check_id(parent),), tenant=tenant), PageRequest(limit=1, brief=True)
        )
        if not found.items:
            raise OptionError(f"parent={parent!r}: tenant {tenant!r} has no such job, or no longer")

    def _check_producer(self, request: EnqueueRequest, new: NewJob) -> None:
        """A producer keeps to its tasks and queues, and adds: it changes no job, not by its key either."""
        actor = self.operations.actor
        require_scope(actor, new.task, new.queue)
        if actor.role == "producer" and request.on_conflict == "replace":
            raise Forbidden(f"{actor.name} may only enqueue: on_conflict 'replace' would change another job")

    @requires("operate")
    async def retry(self, id: str) -> JobView:
        """Run a finished job again."""
        return job_view(await self.retried(id), self.operations.visibility)

    @requires("operate")
    async def cancel(self, id: str, request: CancelRequest) -> JobView:
        """Cancel a queued job at once, or request a running one to stop."""
        return job_view(await self.cancelled(id, request.reason), self.operations.visibility)

    @requires("operate")
    async def move(self, id: str, request: UpdateJobRequest) -> JobView:
        """Change the due time, priority or queue of a queued job."""
        edit = await bulk.move(self.operations, request)
        return job_view(await self._edit(id, edit), self.operations.visibility)

    @requires("operate")
    async def delete(self, id: str) -> None:
        """Delete a job that is not running, with its history."""
        await self._edit(id, lifecycle.delete())

    async def retried(self, id: str) -> Job:
        return await self._edit(id, lifecycle.retry(self.services.clock.now()))

    async def cancelled(self, id: str, reason: str) -> Job:
        return await self._edit(id, lifecycle.cancel(reason, self.services.clock.now()), reason)

    async def _edit(self, id: str, edit: Edit, message: str | None = None) -> Job:
        """Edit one job and audit it. One read serves the access check, the edit and both snapshots."""
        object, own = f"job:{job_edits.possible_id(id)}", self.operations.actor.tenant
        async with self.operations.audited(f"job.{edit.verb}", object, own) as draft:
            job = await visible_job(self.operations, id)
            draft.tenant, draft.before, draft.message = job.tenant, _snapshot(job), message
            after = await job_edits.edit(await self.operations.store(), self.services.clock, job, edit)
            draft.after = None if edit.verb == "delete" else _snapshot(after)
            return after

    # --- many jobs -------------------------------------------------------------------------------

    @requires("operate", "jobs.bulk")
    async def bulk(self, request: BulkRequest) -> BulkResult:
        """Run one step of an action on many jobs, by ids or by filter.

        A step handles at most ``limit`` jobs and returns ``next``: send it as ``cursor`` to continue.
        """
        return await bulk.run_step(self.operations, request)


def _snapshot(job: Job) -> dict[str, object]:
    """The fields of a job that the audit log keeps; never its payload."""
    return {
        "task": job.task,
        "queue": job.queue,
        "state": job.state,
        "priority": job.priority,
        "run_at": job.run_at,
        "attempt": job.attempt,
    }
