"""``app.for_tenant(name)``: a client whose every call is limited to one tenant.

Owns the limit: nothing here reads, changes or creates anything of another tenant. Another tenant's job is not
found. Row-level security on PostgreSQL can be a second wall behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, Unpack

import msgspec

from ..core.jobs.options import JobOptions, Options, merge, options
from ..core.jobs.why import Why
from ..core.tenants import tenant_name
from ..durations import Duration
from ..errors import Forbidden, NotFound, OptionError
from ..model import Actor, Held, JobFilter, JobId, Page, PageRequest, gate_id
from ..runtime.audit import ACTOR, program
from ..runtime.portal import Portal
from ..runtime.runtime import Runtime
from ..runtime.sync_twins import call_sync, sync_twin
from ..schedules.manage import Schedules
from ..tasks.handle import JobAccess, JobHandle, from_job, reached_by
from ..tasks.limits import AppLimits
from ..tasks.producer import Producer
from ..tasks.registry import Registry
from ..tasks.task import BoundTask, Task
from ..tasks.type_variables import P, R_co
from .job_edits import check_id, check_state
from .job_selection import visible_job
from .operations import Operations
from .requests import GateRequest
from .tenant_schedules import TenantSchedules
from .views import TenantView


class TenantHost(JobAccess, Protocol):
    """What a client needs of its app."""

    runtime: Runtime
    registry: Registry
    producer: Producer
    schedules: Schedules
    limits: AppLimits

    def operations(self, actor: Actor | None = None) -> Operations: ...


class TenantClient:
    """Enqueue, read and steer the jobs and schedules of one tenant, and nothing else."""

    def __init__(self, host: TenantHost, name: str) -> None:
        self.name = tenant_name(name)
        self._host = host
        self.schedules = TenantSchedules(host.schedules, self.name, self)

    def __repr__(self) -> str:
        return f"<TenantClient {self.name!r}>"

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self._host.portal

    def _operations(self) -> Operations:
        """In the name of the one who acts now, limited to the tenant."""
        actor = ACTOR.get() or program()
        if actor.tenant not in (None, self.name):
            raise Forbidden(f"{actor.name} belongs to tenant {actor.tenant!r}, not to {self.name!r}")
        return self._host.operations(msgspec.structs.replace(actor, tenant=self.name))

    # --- enqueueing ------------------------------------------------------------------------------

    def bind(self, task: Task[P, R_co]) -> TenantTask[P, R_co]:
        """The task with this tenant: ``acme.bind(send).enqueue(to="x")``."""
        return TenantTask(self, task, merge(task.chosen, self._options({})))

    async def enqueue(
        self, task: str, payload: Mapping[str, Any] | None = None, **given: Unpack[JobOptions]
    ) -> JobHandle:
        """Store a job of this tenant for a task by name."""
        return await self._store(task, {} if payload is None else payload, self._chosen(task, given))

    def enqueue_sync(
        self, task: str, payload: Mapping[str, Any] | None = None, **given: Unpack[JobOptions]
    ) -> JobHandle:
        """``enqueue`` for code that is not async."""
        return self._store_sync(task, {} if payload is None else payload, self._chosen(task, given))

    async def enqueue_many(
        self, task: str, payloads: Iterable[Mapping[str, Any]], **given: Unpack[JobOptions]
    ) -> Sequence[JobHandle]:
        """Store a job of this tenant per payload, in bulk: all of them, or none."""
        return await self._store_many(task, payloads, self._chosen(task, given))

    def enqueue_many_sync(
        self, task: str, payloads: Iterable[Mapping[str, Any]], **given: Unpack[JobOptions]
    ) -> Sequence[JobHandle]:
        """``enqueue_many`` for code that is not async."""
        return self._store_many_sync(task, payloads, self._chosen(task, given))

    def _chosen(self, task: str, given: Mapping[str, Any]) -> Options:
        return merge(self._host.registry.options(task), self._options(given))

    def _options(self, given: Mapping[str, Any]) -> Options:
        """The options for a job of this tenant; one that names another tenant is refused."""
        if given.get("tenant") not in (None, self.name):
            raise OptionError(
                f"tenant={given['tenant']!r}: this client is for tenant {self.name!r}; leave tenant out, "
                f"or use app.for_tenant({given['tenant']!r})"
            )
        return options({**given, "tenant": self.name})

    async def _store(self, task: str, arguments: Any, chosen: Options) -> JobHandle:
        """Store a job with checked options."""
        await self._check_parent(chosen)
        return self._own(await self._host.producer.enqueue(task, arguments, chosen), chosen)

    async def _store_many(
        self, task: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        """Store jobs with checked options."""
        await self._check_parent(chosen)
        return reached_by(self, await self._host.producer.enqueue_many(task, arguments, chosen))

    def _store_many_sync(
        self, task: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        if chosen.parent is not None:
            call_sync(self.portal, "enqueue_many", self._check_parent, chosen)
        return reached_by(self, self._host.producer.enqueue_many_sync(task, arguments, chosen))

    def _store_sync(self, task: str, arguments: Any, chosen: Options) -> JobHandle:
        if chosen.parent is not None:
            call_sync(self.portal, "enqueue", self._check_parent, chosen)
        return self._own(self._host.producer.enqueue_sync(task, arguments, chosen), chosen)

    def _own(self, found: JobHandle, chosen: Options) -> JobHandle:
        """The handle, which reaches no further than this client; a chosen id could name another's job."""
        if found.tenant != self.name:
            raise OptionError(f"id={chosen.id!r}: is in use; choose another: rota.new_id() makes one")
        return from_job(found, self)

    async def _check_parent(self, chosen: Options) -> None:
        if chosen.parent is None:
            return
        try:
            await self.job(chosen.parent)
        except NotFound:
            raise OptionError(
                f"parent={chosen.parent!r}: tenant {self.name!r} has no such job, or no longer"
            ) from None

    # --- reading and steering --------------------------------------------------------------------

    async def job(self, job_id: JobId) -> JobHandle:
        """The job as it is now; NotFound if this tenant has no such job."""
        return from_job(await visible_job(self._operations(), job_id), self)

    job_sync = sync_twin(job)

    async def jobs(
        self,
        *,
        state: str | Iterable[str] | None = None,
        task: str | None = None,
        queue: str | None = None,
        key: str | None = None,
        tag: str | None = None,
        parent: JobId | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[JobHandle]:
        """A page of this tenant's jobs, newest first."""
        states = None if state is None else (state,) if isinstance(state, str) else tuple(state)
        where = JobFilter(
            tenant=self.name,
            states=None if states is None else tuple(check_state(one) for one in states),
            task=task,
            queue=queue,
            key=key,
            tag=tag,
            parent=None if parent is None else check_id(parent),
        )
        store = await self._host.runtime.stores.get()
        page = await store.jobs(where, PageRequest(limit=limit, cursor=cursor))
        return Page(items=[from_job(job, self) for job in page.items], next=page.next)

    jobs_sync = sync_twin(jobs)

    async def cancel(self, job_id: JobId, reason: str = "cancelled") -> JobHandle:
        """Cancel a queued job at once; ask a running one to stop."""
        return from_job(await self._operations().jobs.cancelled(job_id, reason), self)

    cancel_sync = sync_twin(cancel)

    async def retry(self, job_id: JobId) -> JobHandle:
        """Run a finished job again."""
        return from_job(await self._operations().jobs.retried(job_id), self)

    retry_sync = sync_twin(retry)

    async def why(self, job_id: JobId) -> Why:
        """Why a job is not running, as far as it is the tenant's affair."""
        return await self._operations().jobs.why(job_id)

    why_sync = sync_twin(why)

    async def wait(self, job_id: JobId, timeout: Duration | None = None) -> Any:
        """Wait for the job to finish and return its output."""
        await self.job(job_id)
        return await self._host.wait(job_id, timeout)

    wait_sync = sync_twin(wait)

    async def pause(self, *, reason: str = "", until: datetime | None = None) -> None:
        """Stop starting jobs of this tenant; running jobs continue."""
        request = GateRequest(scope="tenant", name=self.name, reason=reason, until=until)
        await self._operations().gates.pause(request)

    pause_sync = sync_twin(pause)

    async def resume(self) -> bool:
        """Resume what ``pause`` paused; False if it was not. Forbidden if another paused the tenant."""
        try:
            await self._operations().gates.resume(gate_id("tenant", self.name))
        except NotFound:
            return False
        return True

    resume_sync = sync_twin(resume)

    async def limit(self) -> Held | None:
        """What is in use of the tenant's limit; None: it has none."""
        try:
            return await self._host.limits.get(f"tenant:{self.name}")
        except NotFound:
            return None

    limit_sync = sync_twin(limit)

    async def usage(self) -> TenantView:
        """What the tenant has in the store, and what it may: quotas and budget."""
        return await self._operations().tenants.show(self.name)

    usage_sync = sync_twin(usage)


class TenantTask(BoundTask[P, R_co]):
    """A task whose jobs are of one tenant."""

    __slots__ = ("_client",)

    def __init__(self, client: TenantClient, task: Task[P, R_co], chosen: Options) -> None:
        super().__init__(task, chosen)
        self._client = client

    def options(self, **given: Unpack[JobOptions]) -> TenantTask[P, R_co]:
        """The same with other options; never another tenant."""
        return TenantTask(self._client, self.task, merge(self.chosen, self._client._options(given)))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Store a job of the tenant that calls the task with these arguments."""
        return await self._client._store(self.task.name, self.task.named(args, kwargs), self.chosen)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """``enqueue`` for code that is not async."""
        return self._client._store_sync(self.task.name, self.task.named(args, kwargs), self.chosen)

    async def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle[R_co]]:
        """Store a job of the tenant per mapping of arguments, in bulk: all of them, or none."""
        return await self._client._store_many(self.task.name, payloads, self.chosen)

    def enqueue_many_sync(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle[R_co]]:
        """``enqueue_many`` for code that is not async."""
        return self._client._store_many_sync(self.task.name, payloads, self.chosen)
