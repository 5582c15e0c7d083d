"""Events: their names, and the hooks that are called for them.

A hook may be sync or async. Hooks run one after another, beside the work: a slow hook delays later
events, never a job, and for a limited time; an error in a hook is logged and harms nothing.
"""

from __future__ import annotations

import asyncio
import difflib
import inspect
import logging
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from typing import Any, TypeVar

from ..errors import ConfigError
from ..model import Job, Value

log = logging.getLogger("rota.events")

LONGEST_S = 60.0  # for one hook and one event; the next ones do not wait any longer

NAMES = (
    "worker.started",
    "worker.stopped",
    "worker.idle",
    "worker.error",
    "job.started",
    "job.succeeded",
    "job.retried",
    "job.snoozed",
    "job.released",
    "job.failed",
    "job.cancelled",
    "job.rescued",
    "job.rejected",
    "schedule.fired",
    "tenant.budget_alert",
    "tenant.budget_reached",
)


class Event(Value, frozen=True, kw_only=True):
    """``job`` is the job as it was when the event happened; ``error`` is set where there is one.

    ``exception`` is the object that the task raised: ``job.failed`` and ``job.retried`` have it. It may quote
    what the payload hides, so it never leaves the process by itself.
    """

    name: str
    at: datetime
    worker: str | None = None
    job: Job | None = None
    schedule: str | None = None  # the name of the schedule that fired
    error: Any = None
    exception: BaseException | None = None
    tenant: str | None = None  # whose budget it is about
    message: str | None = None
    spent_cents: float | None = None
    budget_cents: float | None = None


def about(job: Job, worker: str | None = None) -> dict[str, Any]:
    """For ``extra=`` of a log record about a job: fields of the record, and of a JSON log line.

    Together under ``rota`` for rota's own log formats, and each by itself for those of others.
    """
    fields = {
        "job_id": job.id,
        "task": job.task,
        "queue": job.queue,
        "tenant": job.tenant,
        "attempt": job.attempt,
        "worker": worker or job.worker,
    }
    return {"rota": fields, **fields}


Hook = Callable[[Event], Any]
H = TypeVar("H", bound=Hook)


class Hooks:
    """The hooks of one app, and the queue that feeds them while a worker runs. Never delays a job."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Hook]] = {}
        self._queue: asyncio.Queue[Event | None] | None = None
        self._task: asyncio.Task[None] | None = None
        self._stuck: Counter[int] = Counter()  # sync hooks that took too long, by id: events they missed

    def add(self, name: str, hook: Hook) -> None:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, 1)
            raise ConfigError(
                f"there is no event {name!r}"
                + (f"; did you mean {near[0]!r}?" if near else f"; events: {', '.join(NAMES)}")
            )
        self._hooks.setdefault(name, []).append(hook)

    def __bool__(self) -> bool:
        """Whether there is any hook."""
        return bool(self._hooks)

    def wants(self, name: str) -> bool:
        return name in self._hooks

    def emit(self, event: Event) -> None:
        """Queue the event for its hooks; costs nothing without one. Call from the worker's loop."""
        if event.name in self._hooks and self._queue is not None:
            self._queue.put_nowait(event)

    async def start(self) -> None:
        self._queue = asyncio.Queue()
        self._task = asyncio.create_task(self._deliver(self._queue), name="rota-hooks")

    async def stop(self, timeout: float) -> None:
        """Deliver what is waiting, for at most ``timeout`` seconds."""
        if self._queue is None or self._task is None:
            return
        self._queue.put_nowait(None)
        _, late = await asyncio.wait({self._task}, timeout=timeout)
        for task in late:
            log.warning("hooks did not finish within %.0f s; %d events dropped", timeout, self._queue.qsize())
            task.cancel()
        self._queue = self._task = None

    async def _deliver(self, queue: asyncio.Queue[Event | None]) -> None:
        while (event := await queue.get()) is not None:
            for hook in self._hooks.get(event.name, ()):
                if id(hook) in self._stuck:  # one thread at most waits in it
                    self._stuck[id(hook)] += 1
                else:
                    await self._call(hook, event)

    async def _call(self, hook: Hook, event: Event) -> None:
        try:
            async with asyncio.timeout(LONGEST_S) as limit:
                result = (
                    hook(event) if inspect.iscoroutinefunction(hook) else await self._in_thread(hook, event)
                )
                if inspect.isawaitable(result):
                    await result
        except Exception:
            if limit.expired():
                log.error("hook %r did not finish %s within %.0f s", _name(hook), event.name, LONGEST_S)
            else:
                log.exception("hook %r failed on %s", _name(hook), event.name)

    async def _in_thread(self, hook: Hook, event: Event) -> Any:
        """Call a sync hook in a thread that never delays the exit of the process."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Any] = loop.create_future()
        run = copy_context().run

        def call() -> None:
            error, result = None, None
            try:
                result = run(hook, event)
            except BaseException as raised:
                error = raised
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(end, result, error)

        def end(result: Any, error: BaseException | None) -> None:
            if id(hook) in self._stuck:
                missed = self._stuck.pop(id(hook))
                log.warning("hook %r finished late; it missed %d events", _name(hook), missed)
            elif error is None:
                ended.set_result(result)
            else:  # sys.exit() in a hook does not end the worker
                ended.set_exception(error if isinstance(error, Exception) else RuntimeError(repr(error)))

        threading.Thread(target=call, name="rota-hook", daemon=True).start()
        try:
            return await ended
        except asyncio.CancelledError:
            if ended.cancelled():
                self._stuck[id(hook)] = 0
            raise


def _name(hook: Hook) -> Any:
    return getattr(hook, "__name__", hook)
