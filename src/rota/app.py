"""``Rota``: tasks, enqueueing and running, on one store. Holds no global state; opens nothing until used."""

from __future__ import annotations

import asyncio
import gc
import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any, Literal, ParamSpec, TypeVar, Unpack, overload

from . import config, operate
from .core.jobs.options import JobOptions, TaskOptions, merge, options
from .core.jobs.why import Why
from .errors import AlreadyRegistered, AlreadyRunning, JobCancelled, JobFailed, NotFound, RotaError
from .model import Actor, JobFilter, JobId, Page, PageRequest, Schedule, State, gate_id
from .operate import Operations
from .operate.gates import scope_of
from .operate.requests import GateRequest
from .runtime.audit import ACTOR, program
from .runtime.clock import Clock, Ids
from .runtime.events import Hook, Hooks
from .runtime.portal import Portal
from .runtime.service import StopSignals
from .runtime.stores import StorePerLoop
from .schedules.calendars import Calendars
from .schedules.declared import DeclaredSchedules
from .schedules.manage import Schedules
from .schedules.registered import RegisteredSchedules
from .schedules.scheduler import Scheduler
from .tasks.handle import JobHandle, from_job
from .tasks.producer import Producer
from .tasks.task import NO_OPTIONS, Registry, Task, choose_executor, choose_name, task_options
from .worker.options import worker_options
from .worker.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=Hook)
ExecutorName = Literal["async", "thread", "process"]


class DeclaredOptions(TaskOptions, total=False):
    """What ``@app.task(…)`` takes."""

    name: str | None  # default: the function's own name
    executor: ExecutorName | None  # default: async for ``async def``, thread for ``def``


class RecurringOptions(DeclaredOptions, total=False):
    """What ``@app.cron`` and ``@app.every`` take beside the rule."""

    timezone: str
    payload: Mapping[str, Any] | None
    start_at: datetime | str | None
    until: datetime | str | None
    missed: Literal["skip", "latest", "all"]
    missed_cap: int
    missed_window: float | str | None
    overlap: Literal["allow", "skip", "queue", "cancel_previous"]
    jitter: float | str | timedelta
    description: str
    calendar: str | None
    calendar_mode: Literal["skip", "next_working_day"]


SCHEDULE_ONLY = RecurringOptions.__annotations__.keys() - DeclaredOptions.__annotations__.keys()
LOOK_EVERY_S = 0.5  # how often result() looks without a hint


class Rota:
    """A job queue on one store. ``url`` may also come from ROTA_URL, DATABASE_URL or rota.toml."""

    def __init__(
        self,
        url: str | None = None,
        *,
        name: str | None = None,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        self.name = name  # owner of the schedules its code declares; None: the program's own module
        self.settings = config.load({"url": url, **settings})
        self.clock = clock or Clock()
        self.registry = Registry()
        self.hooks = Hooks()
        self.ids = Ids()
        self.stores = StorePerLoop(self.settings.url, self.clock)
        self.portal = Portal(self.stores.close)
        self.producer = Producer(self)
        self.schedules = Schedules(self)
        self.calendars = Calendars(self)
        self._declarations = DeclaredSchedules(self)
        self._recurring = RegisteredSchedules(self)
        self._worker: Worker | None = None

    def __repr__(self) -> str:
        return f"<Rota {self.stores.root().url} with {len(self.registry.tasks)} tasks>"

    # --- declaring -------------------------------------------------------------------------------

    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, **given: Unpack[DeclaredOptions]) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(self, *functions: Callable[..., Any], **given: Any) -> Any:
        """Make a function a task. Options: queue, priority, max_attempts, backoff, timeout, tags, …"""

        name: str | None = given.pop("name", None)
        executor: ExecutorName | None = given.pop("executor", None)

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            chosen_name = choose_name(function, name)
            if chosen_name in self.registry.tasks:
                raise AlreadyRegistered(
                    f"a task named {chosen_name!r} is already registered; choose another: @app.task(name=…)"
                )
            task = Task(
                self,
                function,
                chosen_name,
                task_options(chosen_name, given),
                choose_executor(function, executor, chosen_name),
            )
            self.registry.tasks[chosen_name] = task
            return task

        return declare(*functions) if functions else declare

    def on(self, event: str) -> Callable[[H], H]:
        """Call the decorated function, sync or async, whenever the event happens in this process."""

        def declare(hook: H) -> H:
            self.hooks.add(event, hook)
            return hook

        return declare

    def cron(self, text: str, /, **given: Unpack[RecurringOptions]) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a task and the schedule that runs it, by cron text: ``@app.cron("0 8 * * 1-5")``."""
        return self._recurrent({"cron": text}, dict(given))

    def every(
        self, interval: float | str | timedelta, /, **given: Unpack[RecurringOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a task and the schedule that runs it, by interval: ``@app.every("15m")``."""
        return self._recurrent({"every": interval}, dict(given))

    def _recurrent(
        self, rule: dict[str, Any], given: dict[str, Any]
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        of_schedule = {name: given.pop(name) for name in SCHEDULE_ONLY & given.keys()}

        def declare(function: Callable[P, R]) -> Task[P, R]:
            task: Task[P, R] = self.task(**given)(function)
            both = {name: getattr(task.chosen, name) for name in ("queue", "priority", "max_attempts")}
            said = {"task": task.name, **rule, **of_schedule, **both}
            try:
                self._declarations.add(task.chosen.tenant or "default", task.name, said)
            except RotaError:
                del self.registry.tasks[task.name]
                raise
            return task

        return declare

    async def register(
        self,
        tenant: str,
        id: str,
        fn: Callable[[], Any],
        *,
        every: float | str | timedelta,
        start_at: datetime | None = None,
    ) -> Schedule:
        """Run ``fn`` for the tenant every so often, while this process runs; see ``recurring.py``."""
        return await self._recurring.register(tenant, id, fn, every=every, start_at=start_at)

    async def unregister(self, tenant: str, id: str) -> None:
        """End what ``register`` began, here and in the store."""
        await self._recurring.unregister(tenant, id)

    def wake_scheduler(self) -> None:
        """A schedule was made or changed here: it may be due before the next tick."""
        if self._worker is not None and self._worker.scheduler is not None:
            self._worker.scheduler.wake.set()

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

    def _options(self, task: str, given: Mapping[str, Any]) -> Any:
        known = self.registry.get(task)
        return merge(known.chosen if known is not None else NO_OPTIONS, options(given))

    # --- looking and steering --------------------------------------------------------------------

    async def job(self, job_id: JobId) -> JobHandle:
        """The job as it is now; NotFound if there is none."""
        return from_job(await operate.get(await self.stores.get(), job_id), self)

    async def jobs(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        tenant: str | None = None,
        tag: str | None = None,
        parent: JobId | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> Page[JobHandle]:
        """A page of jobs, newest first."""
        where = JobFilter(
            states=(operate.check_state(state),) if state is not None else None,
            task=task,
            queue=queue,
            tenant=tenant,
            tag=tag,
            parent=parent,
        )
        page = await (await self.stores.get()).jobs(where, PageRequest(limit=limit, cursor=cursor))
        return Page(items=[from_job(job, self) for job in page.items], next=page.next)

    async def cancel(self, job_id: JobId, reason: str = "cancelled") -> JobHandle:
        """Cancel a queued job at once; ask a running one to stop."""
        return from_job(await self.operations().jobs.cancelled(job_id, reason), self)

    async def retry(self, job_id: JobId) -> JobHandle:
        """Run a job that has ended once more."""
        return from_job(await self.operations().jobs.retried(job_id), self)

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
        """Begin no more jobs of a queue, a task or a tenant; or let a schedule fire no more.

        Nothing named: everything. Workers see it within a poll interval; what runs goes on. With
        ``schedule``, ``tenant`` says whose it is.
        """
        scope, name = scope_of(queue, task, tenant, schedule)
        of_schedule = tenant if scope == "schedule" else None
        await self.operations().gates.pause(
            GateRequest(scope=scope, name=name, tenant=of_schedule, reason=reason, until=until)
        )

    async def resume(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        tenant: str | None = None,
        schedule: str | None = None,
    ) -> bool:
        """Lift what ``pause`` of the same names put up; False if nothing stood there."""
        scope, name = scope_of(queue, task, tenant, schedule)
        try:
            await self.operations().gates.resume(
                gate_id(scope, name, tenant if scope == "schedule" else None)
            )
        except NotFound:
            return False
        return True

    async def why(self, job_id: JobId) -> Why:
        """Why a job is not running: the reasons in the order they must be cleared."""
        return await self.operations().jobs.why(job_id)

    def operations(self, actor: Actor | None = None) -> Operations:
        """Everything an operator can do, in the name of the actor; None: of this program."""
        return Operations(self, actor or ACTOR.get() or program())

    async def stats(self) -> dict[str, Any]:
        """Counts by state, ``oldest_due_s``, and ``queues`` with the depth of each."""
        return await operate.stats(await self.stores.get(), self.clock)

    async def wait(self, job_id: JobId, timeout: float | None = None) -> Any:
        """Wait for the job to end and return its output; see ``JobHandle.result``."""
        store = await self.stores.get()
        waker = store.waker()
        try:
            async with asyncio.timeout(timeout):
                while not (job := await operate.get(store, job_id)).is_final:
                    await waker.wait_finished(job_id, LOOK_EVERY_S)
        except TimeoutError:
            raise TimeoutError(f"job {job_id} has not ended within {timeout} s") from None
        finally:
            await waker.close()
        if job.state is State.SUCCEEDED:
            return job.output
        cause = job.error or {}
        if job.state is State.CANCELLED:
            raise JobCancelled(f"job {job_id} ({job.task}) was cancelled: {cause.get('message')}")
        raise JobFailed(
            f"job {job_id} ({job.task}) failed after {job.attempt} attempt{'s' * (job.attempt != 1)}: "
            f"{cause.get('type')}: {cause.get('message')}",
            cause,
        )

    # --- life ------------------------------------------------------------------------------------

    async def migrate(self) -> Sequence[str]:
        """Bring the store's schema up to date; the names of the migrations applied."""
        store = self.stores.root().for_another_loop()
        try:
            return await store.schema.migrate()
        finally:
            await store.close()

    async def close(self) -> None:
        """Close what this app opened. It opens again when it is used again."""
        await asyncio.to_thread(self.portal.close)
        await self.stores.close()

    @property
    def is_running(self) -> bool:
        """A worker of this app runs in this process."""
        return self._worker is not None

    @property
    def is_processing(self) -> bool:
        """A job runs in this process now."""
        return self._worker is not None and bool(self._worker.slots.running)

    @property
    def is_idle(self) -> bool:
        """A worker runs and has found nothing to do."""
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

    def run(self, **given: Any) -> Worker:
        """Work until TERM or INT, then drain: blocking. See ``running`` for the options."""
        gc.collect()
        gc.freeze()  # what was imported stays: looking through it again and again would make jobs wait
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self.serve(**given))

    async def serve(self, **given: Any) -> Worker:
        """Work until drained by a signal, ``burst`` or ``max_jobs``; the worker, for its figures."""
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
        chosen = worker_options(self.settings, given)
        store = await self.stores.get()
        identity = f"{chosen.name or socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"
        scheduler = None
        if chosen.scheduler:
            scheduler = Scheduler(
                store,
                self.registry,
                self.clock,
                self.settings,
                self.hooks,
                self._declarations.sync,
                chosen.tick_s,
            )
        worker = Worker(
            store, self.registry, self.clock, self.hooks, self.settings, chosen, identity, scheduler
        )
        self._worker = worker
        await self.hooks.start()
        try:
            yield worker
        finally:
            self._worker = None
            self._recurring.clear()
            await self.hooks.stop(5.0)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop where it is installed; never required."""
    try:
        import uvloop
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory
