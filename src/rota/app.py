"""``Rota``: tasks, enqueueing and running, on one store.

The composition root: the only module that knows every service. It builds them and gives each what it
needs; no service is given the app. Holds no global state; opens nothing until it is used.
"""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import datetime
from typing import Any, ParamSpec, TypeVar, Unpack

from . import config, operate
from .config import Settings
from .core.jobs.options import JobOptions, Options, merge, options
from .core.jobs.why import Why
from .core.plurals import plural
from .durations import Duration, seconds, short
from .errors import AlreadyRunning, JobCancelled, JobFailed, NotFound, OptionError, RotaError
from .model import Actor, JobFilter, JobId, Page, PageRequest, Schedule, State, gate_id
from .operate import Operations, Services
from .operate.gates import scope_of
from .operate.requests import GateRequest
from .operate.tenant_access import Tenants
from .operate.tenant_client import TenantClient
from .runtime.audit import ACTOR, program
from .runtime.clock import Clock
from .runtime.events import Hook
from .runtime.portal import Portal
from .runtime.runtime import Runtime
from .runtime.service import StopSignals
from .runtime.stores import StorePerLoop
from .runtime.sync_twins import call_sync, sync_twin
from .schedules.calendars import Calendars
from .schedules.declared import DeclaredSchedules
from .schedules.drafts import ScheduleDrafts
from .schedules.manage import Schedules
from .schedules.registered import RegisteredSchedules
from .schedules.scheduler import Scheduler
from .tasks.declaration import TaskDeclarations
from .tasks.discovery import import_modules
from .tasks.handle import JobHandle, from_job
from .tasks.limits import AppLimits
from .tasks.producer import Producer
from .tasks.published import PublishedTasks
from .tasks.registry import Registry
from .tasks.task import Task
from .tasks.task_set import TaskSet
from .worker.options import worker_options
from .worker.worker import Worker

H = TypeVar("H", bound=Hook)
P = ParamSpec("P")
R = TypeVar("R")


LONGEST_WAIT_S = 100 * 365 * 86400.0
WAIT_POLL_S = 0.5  # how often result() reads the job without a hint


class Rota(TaskDeclarations):
    """A job queue on one store. ``url`` may also come from ROTA_URL, DATABASE_URL or rota.toml.

    Owns the tasks of one program and the services that work on its store. Never holds a job: the store
    does. Never opens a connection before something is enqueued, read or run.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        name: str | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        self.name = name  # owner of the schedules its code declares; None: the program's own package
        self.runtime = Runtime(config.load({"url": url, **settings}), clock)
        self.ids, self.hooks = self.runtime.ids, self.runtime.hooks
        self.registry = Registry()
        self.published = PublishedTasks(self.runtime, self.registry)
        self.producer = Producer(self.runtime, self.registry, self.published, self)
        self.schedules = Schedules(self.runtime, self.registry, self.published, self, self.wake_scheduler)
        self.calendars = Calendars(self.runtime)
        self.tenants = Tenants(self.runtime, self.operations)
        self.limits = AppLimits(self.runtime, self.registry)
        drafts = ScheduleDrafts(self.runtime, self.registry)
        self._declared = DeclaredSchedules(self.runtime, self.registry, self.published, drafts, name)
        self._registered = RegisteredSchedules(
            self.runtime, self.registry, drafts, self.producer, self.wake_scheduler
        )
        self._worker: Worker | None = None
        self._worker_loop: asyncio.AbstractEventLoop | None = None

    def __repr__(self) -> str:
        return f"<Rota {self.stores.root().url} with {len(self.registry.tasks)} tasks>"

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.runtime.settings

    @property
    def clock(self) -> Clock:
        """The clock in use."""
        return self.runtime.clock

    @property
    def stores(self) -> StorePerLoop:
        """The open stores, one for each event loop."""
        return self.runtime.stores

    @property
    def portal(self) -> Portal:
        """The event loop for callers that are not async."""
        return self.runtime.portal

    # --- declaring -------------------------------------------------------------------------------

    def include(self, *sets: TaskSet) -> None:
        """Register the tasks and schedules of these sets: all of each set, or none of it."""
        for tasks in sets:
            added: list[Task[..., Any]] = []
            try:
                for task in tasks:
                    self._declare(task, tasks.schedule(task))
                    added.append(task)
            except RotaError:
                self._undeclare(added)
                raise

    def import_tasks(self) -> Sequence[str]:
        """Import the modules that the setting ``imports`` names, with their tasks. Workers do so."""
        return import_modules(self.settings.imports)

    def _declare(self, task: Task[..., Any], schedule: Mapping[str, Any] | None) -> None:
        self.registry.add(task)
        if schedule is not None:
            try:
                self._declared.add(task.chosen.tenant or "default", task.name, schedule)
            except RotaError:
                self.registry.remove(task)
                raise
        task.producer = self.producer

    def _undeclare(self, tasks: Iterable[Task[..., Any]]) -> None:
        for task in tasks:
            self.registry.remove(task)
            self._declared.remove(task.chosen.tenant or "default", task.name)

    def on(self, event: str) -> Callable[[H], H]:
        """Call the decorated function, sync or async, on every such event in this process."""

        def declare(hook: H) -> H:
            self.hooks.add(event, hook)
            return hook

        return declare

    async def register(
        self,
        tenant: str,
        id: str,
        fn: Callable[[], Any],
        *,
        every: Duration,
        start_at: datetime | None = None,
        queue: str | None = None,
        priority: int | None = None,
        timeout: Duration | None = None,
    ) -> Schedule:
        """Run ``fn`` for the tenant at this interval, while this process runs."""
        if not self.is_running:
            raise RotaError(
                f"register({tenant!r}, {id!r}) before the app runs: start it first, with app.running()"
            )
        return await self._registered.register(
            tenant,
            id,
            fn,
            every=every,
            start_at=start_at,
            queue=queue,
            priority=priority,
            timeout=timeout,
        )

    register_sync = sync_twin(register)

    async def unregister(self, tenant: str, id: str) -> None:
        """Remove what ``register`` added, here and in the store."""
        await self._registered.unregister(tenant, id)

    unregister_sync = sync_twin(unregister)

    def wake_scheduler(self) -> None:
        """Let the scheduler look now: a schedule changed here may be due before its next tick."""
        worker, loop = self._worker, self._worker_loop
        if worker is not None and worker.scheduler is not None and loop is not None:
            with suppress(RuntimeError):  # the worker has just ended
                loop.call_soon_threadsafe(worker.scheduler.wake.set)

    # --- enqueueing by name ----------------------------------------------------------------------

    async def enqueue(
        self, task: str, payload: Mapping[str, Any] | None = None, **given: Unpack[JobOptions]
    ) -> JobHandle:
        """Store a job for a task by name; this program need not have the task's code."""
        return await self.producer.enqueue(
            task, {} if payload is None else payload, self._options(task, given)
        )

    def enqueue_sync(
        self, task: str, payload: Mapping[str, Any] | None = None, **given: Unpack[JobOptions]
    ) -> JobHandle:
        """``enqueue`` for code that is not async."""
        return self.producer.enqueue_sync(
            task, {} if payload is None else payload, self._options(task, given)
        )

    async def enqueue_many(
        self, task: str, payloads: Iterable[Mapping[str, Any]], **given: Unpack[JobOptions]
    ) -> Sequence[JobHandle]:
        """Store a job per payload, in bulk: all of them, or none."""
        return await self.producer.enqueue_many(task, payloads, self._options(task, given))

    def enqueue_many_sync(
        self, task: str, payloads: Iterable[Mapping[str, Any]], **given: Unpack[JobOptions]
    ) -> Sequence[JobHandle]:
        """``enqueue_many`` for code that is not async."""
        return self.producer.enqueue_many_sync(task, payloads, self._options(task, given))

    def _options(self, task: str, given: Mapping[str, Any]) -> Options:
        return merge(self.registry.options(task), options(given))

    # --- reading and steering --------------------------------------------------------------------

    async def job(self, job_id: JobId) -> JobHandle:
        """The job as it is now; NotFound if there is none."""
        return from_job(await operate.get(await self.stores.get(), job_id), self)

    job_sync = sync_twin(job)

    async def jobs(
        self,
        *,
        state: str | Iterable[str] | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        key: str | None = None,
        concurrency_key: str | None = None,
        tag: str | None = None,
        parent: JobId | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[JobHandle]:
        """A page of jobs, newest first. ``state`` may be several: ``state=("queued", "running")``."""
        states = None if state is None else (state,) if isinstance(state, str) else tuple(state)
        where = JobFilter(
            states=None if states is None else tuple(operate.check_state(one) for one in states),
            task=task,
            queue=queue,
            tenant=tenant,
            key=key,
            concurrency_key=concurrency_key,
            tag=tag,
            parent=None if parent is None else operate.check_id(parent),
        )
        page = await (await self.stores.get()).jobs(where, PageRequest(limit=limit, cursor=cursor))
        return Page(items=[from_job(job, self) for job in page.items], next=page.next)

    jobs_sync = sync_twin(jobs)

    async def cancel(self, job_id: JobId, reason: str = "cancelled") -> JobHandle:
        """Cancel a queued job at once; ask a running one to stop."""
        return from_job(await self.operations().jobs.cancelled(job_id, reason), self)

    cancel_sync = sync_twin(cancel)

    async def retry(self, job_id: JobId) -> JobHandle:
        """Run a finished job again."""
        return from_job(await self.operations().jobs.retried(job_id), self)

    retry_sync = sync_twin(retry)

    async def pause(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        schedule: str | None = None,
        reason: str = "",
        until: datetime | None = None,
    ) -> None:
        """Stop starting jobs of a queue, a task or a tenant; or stop one schedule.

        Nothing named: everything. Workers see it within a poll interval; running jobs continue. With
        ``schedule``, ``tenant`` is the tenant it belongs to.
        """
        scope, name = scope_of(queue, task, tenant, schedule)
        of_schedule = tenant if scope == "schedule" else None
        request = GateRequest(scope=scope, name=name, tenant=of_schedule, reason=reason, until=until)
        gate = await self.operations().gates.pause(request)
        declared = {task.name if scope == "task" else task.chosen.queue for task in self.registry}
        if gate.warning is not None and name not in declared:
            warnings.warn(gate.warning, stacklevel=2)

    pause_sync = sync_twin(pause)

    async def resume(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        schedule: str | None = None,
    ) -> bool:
        """Resume what ``pause`` of the same names paused; False if it was not paused."""
        scope, name = scope_of(queue, task, tenant, schedule)
        try:
            await self.operations().gates.resume(
                gate_id(scope, name, tenant if scope == "schedule" else None)
            )
        except NotFound:
            return False
        return True

    resume_sync = sync_twin(resume)

    async def why(self, job_id: JobId) -> Why:
        """Why a job is not running: the reasons in the order they must be cleared."""
        return await self.operations().jobs.why(job_id)

    why_sync = sync_twin(why)

    def for_tenant(self, name: str) -> TenantClient:
        """A client whose every call is limited to this tenant: another tenant's job is not found."""
        return TenantClient(self, name)

    def operations(self, actor: Actor | None = None) -> Operations:
        """Everything an operator can do, in the name of the actor; None: of this program."""
        services = Services(
            self.runtime,
            self.producer,
            self.published,
            self.schedules,
            self.calendars,
            self.limits,
            self.wake_scheduler,
        )
        return Operations(services, actor or ACTOR.get() or program())

    async def stats(self) -> dict[str, Any]:
        """Counts by state, ``oldest_due_s``, and ``queues`` with the depth of each."""
        return await operate.stats(await self.stores.get(), self.clock)

    stats_sync = sync_twin(stats)

    async def wait(self, job_id: JobId, timeout: Duration | None = None) -> Any:
        """Wait for the job to finish and return its output; see ``JobHandle.result``."""
        limit = None if timeout is None else seconds("timeout", timeout, 0.0, LONGEST_WAIT_S, OptionError)
        store = await self.stores.get()
        waker = store.waker()
        try:
            async with asyncio.timeout(limit):
                while not (job := await operate.get(store, job_id)).is_final:
                    await waker.wait_finished(job_id, WAIT_POLL_S)
        except TimeoutError:
            raise TimeoutError(f"job {job_id} did not finish within {short(limit or 0)}") from None
        finally:
            await waker.close()
        if job.state is State.SUCCEEDED:
            return self.registry.output(job)
        cause = job.error or {}
        if job.state is State.CANCELLED:
            raise JobCancelled(f"job {job_id} ({job.task}) was cancelled: {cause.get('message')}")
        raise JobFailed(
            f"job {job_id} ({job.task}) failed after {plural(job.attempt, 'attempt')}: "
            f"{cause.get('type')}: {cause.get('message')}",
            cause,
        )

    wait_sync = sync_twin(wait)

    # --- life ------------------------------------------------------------------------------------

    async def migrate(self) -> Sequence[str]:
        """Bring the store's schema up to date; the names of the migrations applied."""
        store = self.stores.root().for_another_loop()
        try:
            return await store.schema.migrate()
        finally:
            await store.close()

    migrate_sync = sync_twin(migrate)

    async def close(self) -> None:
        """Close what this app opened. It opens again when it is used again."""
        if not self.portal.is_here():  # it would wait for this very call
            await asyncio.to_thread(self.portal.close)
        await self.stores.close()

    def close_sync(self) -> None:
        """``close`` for code that is not async: calls under way in other threads end or raise AppClosed."""
        self.portal.close()
        if self.stores.has_leftovers:
            self.portal.call(self.stores.close)
            self.portal.close()

    def call_sync(self, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run any other coroutine function of rota in sync code, such as ``app.operations().jobs.bulk``."""
        name = getattr(function, "__name__", "call")
        return call_sync(self.portal, name, function, *args, **kwargs)

    @property
    def is_running(self) -> bool:
        """Whether a worker of this app runs in this process."""
        return self._worker is not None

    @property
    def is_processing(self) -> bool:
        """Whether a job runs in this process now."""
        return self._worker is not None and bool(self._worker.slots.running)

    @property
    def is_idle(self) -> bool:
        """Whether a worker runs and has found nothing to do."""
        return self._worker is not None and self._worker.is_idle

    @asynccontextmanager
    async def running(self, **given: Any) -> AsyncIterator[Worker]:
        """Work in the background while the block runs; drain at its end.

        Options: ``queues exclude_queues concurrency shutdown_timeout burst max_jobs name``.
        """
        async with self.worker(**given) as worker:
            task = asyncio.create_task(worker.run(), name="rota-worker")
            try:
                yield worker
            finally:
                worker.drain()
                await task

    @contextmanager
    def running_sync(self, **given: Any) -> Iterator[Worker]:
        """``running`` for code that is not async: the worker has an event loop in a thread of its own."""
        host = Portal(self.stores.patience.end, self.stores.close)
        running = self.running(**given)
        try:
            worker = host.call(running.__aenter__)
            try:
                yield worker
            finally:
                host.call(running.__aexit__, None, None, None)
        finally:
            host.close()

    def run(self, **given: Any) -> Worker:
        """Work until TERM or INT, then drain: blocking. See ``running`` for the options."""
        gc.collect()
        gc.freeze()  # imported objects stay: traversing them in every collection would delay jobs
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self.serve(**given))

    async def serve(self, **given: Any) -> Worker:
        """Work until drained by a signal, ``burst`` or ``max_jobs``; the worker, for its metrics."""
        try:
            async with self.worker(**given) as worker:
                with StopSignals(worker.drain, worker.force):
                    await worker.run()
            return worker
        finally:
            await self.close()

    @asynccontextmanager
    async def worker(self, **given: Any) -> AsyncIterator[Worker]:
        """A worker that is ready to ``run()``: the parts that ``run`` and ``running`` share."""
        if self._worker is not None:
            raise AlreadyRunning("this app already runs a worker in this process; start it once")
        self.import_tasks()
        chosen = worker_options(self.settings, given)
        store = await self.stores.own()
        identity = f"{chosen.name or socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        scheduler = None
        if chosen.scheduler:
            scheduler = Scheduler(self.runtime, store, self.published, self._declared.sync, chosen.tick_s)
        worker = Worker(
            store,
            self.registry,
            self.clock,
            self.hooks,
            self.settings,
            chosen,
            identity,
            self.runtime.records,
            self.published,
            scheduler,
        )
        self._worker, self._worker_loop = worker, asyncio.get_running_loop()
        await self.hooks.start()
        try:
            yield worker
        finally:
            self._worker = None
            self._registered.clear()
            await self.hooks.stop(5.0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed; never required."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
