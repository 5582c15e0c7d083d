"""What tasks declare, published in the store: every producer uses a task's own options, code or not.

A worker writes a document for each of its tasks when it starts, if it differs from the stored one: the
worker that started last wins. Read at most every few seconds, and only for a task whose code is not here
or for the jobs of schedules. Owns these documents; never decides what a task's options mean.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from ..config import Settings
from ..core.jobs.options import ABOUT_THE_JOB, ABOUT_THE_TASK, FIELDS, NO_OPTIONS, Options, options
from ..errors import OptionError, StoreError, StoreUnavailable
from ..model import Backoff, Document, TaskDeclaration, TaskParameter
from ..runtime.clock import monotonic
from ..runtime.runtime import Runtime
from ..store.protocol import Store, StoreWithin
from .limits import declare_limits
from .registry import Registry
from .task import Task

log = logging.getLogger("rota.tasks")

KIND = "task"
FRESH_S = 10.0  # how long a reading is good for
DOUBT_S = 1.0  # and for a name that was not among them
RENEW = timedelta(days=1)  # documents that are not renewed are deleted after a month
MOST_TASKS = 2000  # published by one program
MOST_PARAMETERS = 50
LONGEST_TYPE = 80
LONGEST_DESCRIPTION = 300
MOST_WARNED = 1000
MOST_ASKED = 1000
# What a worker reads from its own code when a job runs is not stored with the job.
READ_AT_RUN = frozenset({"timeout", "backoff"})
PUBLISHED = tuple(name for name in FIELDS if name not in ABOUT_THE_JOB | ABOUT_THE_TASK)


class PublishedTasks:
    """The declarations in the store, as this process has read them last."""

    def __init__(self, runtime: Runtime, registry: Registry) -> None:
        self._runtime = runtime
        self._registry = registry
        self._reading: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._warned: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        self._stores = self._runtime.stores
        self._known: Mapping[str, TaskDeclaration] = {}
        self._options: dict[str, Options] = {}
        self._read_at = float("-inf")
        self._asked_at: dict[str, float] = {}  # single tasks, in their callers' transactions
        self._is_read_by_tasks = False
        self._written: dict[str, str] = {}
        self._renew_at: datetime | None = None

    # --- reading ---------------------------------------------------------------------------------

    async def find(self, store: Store, name: str) -> TaskDeclaration | None:
        """What the task declares, if a worker has published it."""
        known = await self.all(store)
        if name not in known and monotonic() - self._read_at > DOUBT_S:
            known = await self.all(store, DOUBT_S)
        return known.get(name)

    async def all(self, store: Store, fresh_s: float = FRESH_S) -> Mapping[str, TaskDeclaration]:
        """Every declaration by name, none older than this many seconds unless the store is unavailable."""
        if self._stores is not self._runtime.stores:  # the app was put on another store
            self._forget()
        if monotonic() - self._read_at > fresh_s:
            async with self._reading.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
                if monotonic() - self._read_at > fresh_s:
                    await self._read(store)
        return self._known

    async def options(self, store: Store, name: str) -> Options:
        """For a producer without the task's code: what it declares for its jobs."""
        if await self.find(store, name) is None:
            self._warn(name)
        return self._options.get(name, NO_OPTIONS)

    async def options_within(self, within: StoreWithin, name: str) -> Options:
        """The same in the caller's transaction: its one document, unless all were read a moment ago."""
        if self._stores is not self._runtime.stores:
            self._forget()
        if monotonic() - max(self._read_at, self._asked_at.get(name, self._read_at)) > FRESH_S:
            found = [one for one in map(_readable, await within.documents(KIND, name)) if one is not None]
            new = {one.name: one for one in found}
            chosen = {one.name: job_options(one) for one in found}
            # as a whole: other threads read them too
            self._known = {key: one for key, one in self._known.items() if key != name} | new
            self._options = {key: one for key, one in self._options.items() if key != name} | chosen
            if len(self._asked_at) >= MOST_ASKED:
                self._asked_at.clear()
            self._asked_at[name] = monotonic()
            if not found:
                self._warn(name)
        return self._options.get(name, NO_OPTIONS)

    def options_at_hand(self, name: str) -> Options:
        """The same without I/O, for a task that runs: as the worker has read them last."""
        self._is_read_by_tasks = True
        return self._options.get(name, NO_OPTIONS)

    async def options_for_schedules(self, store: Store) -> Mapping[str, Options]:
        """The same for all tasks: the code of the process that fires decides only where none is published."""
        await self.all(store)
        here = {task.name: task.chosen for task in self._registry if task.name not in self._options}
        return {**self._options, **here}

    def near(self, name: str) -> str | None:
        """A known task of a similar name."""
        names = [*self._known, *self._registry.names]
        return next(iter(difflib.get_close_matches(name, names, 1)), None)

    async def _read(self, store: Store) -> None:
        try:
            documents = await store.documents(KIND)
        except StoreUnavailable:
            if self._read_at == float("-inf"):
                raise  # options that are unknown are not guessed
            log.debug("the declared tasks could not be read; those read before are used")
            return
        except StoreError as error:  # a producer that may do no more than enqueue
            log.debug("the declared tasks cannot be read: %s", error)
            documents = ()
        self._take(documents)
        self._read_at = monotonic()

    def _take(self, documents: Sequence[Document]) -> None:
        found = [one for one in map(_readable, documents) if one is not None]
        self._known = {one.name: one for one in found}
        self._options = {one.name: job_options(one) for one in found}

    def _warn(self, name: str) -> None:
        if not self._known or name in self._warned or len(self._warned) >= MOST_WARNED:
            return
        self._warned.add(name)
        near = self.near(name)
        hint = f"; did you mean {near!r}?" if near else ""
        log.warning("no worker has declared a task named %r: its jobs wait until one does%s", name, hint)

    # --- writing ---------------------------------------------------------------------------------

    async def publish(self, store: Store) -> None:
        """Write what this process declares and the store does not have, or has differently.

        Each task once: what a worker that started later wrote stays. What others declare is at hand from then
        on, as is what tenants may, and read again only if a task has asked for it.
        """
        await self._runtime.tenants.keep_at_hand(store)
        now, mine = self._runtime.clock.now(), self._declarations()
        if self._written == mine and self._renew_at is not None and now < self._renew_at:
            if self._is_read_by_tasks:
                await self.all(store)
            return
        documents = await store.documents(KIND)
        self._take(documents)
        stored = {one.key: one for one in documents}
        await self._publish_limits(
            store, [name for name, body in mine.items() if self._written.get(name) != body]
        )
        for name, body in mine.items():
            there = stored.get(name)
            is_new = self._written.get(name) != body
            if there is None or (is_new and there.body != body):
                await store.put_document(KIND, name, body, None, now)
            elif there.body == body and now - there.updated_at > RENEW:
                await store.put_document(KIND, name, body, there.version, now)
        self._written, self._renew_at = mine, now + RENEW
        self._read_at = float("-inf") if self._read_at == float("-inf") else monotonic() - FRESH_S

    async def introduce(self, store: Store, name: str) -> None:
        """Publish a task that a new schedule names, if its code is here and no worker has published it."""
        task = self._registry.get(name)
        if task is not None and task.is_shared and await self.find(store, name) is None:
            await store.put_document(KIND, name, self._body(task), 0, self._runtime.clock.now())
            self._read_at = monotonic() - FRESH_S

    async def _publish_limits(self, store: Store, names: Sequence[str]) -> None:
        """Make the limits that these tasks declare, or no longer declare, those of the code."""
        declared = {
            f"task:{name}": task.limit for name in names if (task := self._registry.get(name)) is not None
        }
        if not declared:
            return
        try:
            await declare_limits(store, declared, self._runtime.clock.store_now)
        except StoreUnavailable:
            raise
        except StoreError as error:  # a worker whose role may not write rules still runs jobs
            log.warning("the limits that tasks declare could not be stored: %s", error)

    def _declarations(self) -> dict[str, str]:
        shared = [task for task in self._registry if task.is_shared]
        if len(shared) > MOST_TASKS:
            log.warning("%d tasks are declared; only the first %d are published", len(shared), MOST_TASKS)
        return {task.name: self._body(task) for task in shared[:MOST_TASKS]}

    def _body(self, task: Task[..., Any]) -> str:
        return msgspec.json.encode(declaration(task, self._runtime.settings), order="deterministic").decode()


def declaration(task: Task[..., Any], settings: Settings) -> TaskDeclaration:
    """What the task's code says, with the defaults of the program that runs it."""
    given = {name: _plain(getattr(task.chosen, name)) for name in PUBLISHED}
    defaults = {"queue": "default", "priority": 0, "max_attempts": settings.max_attempts}
    signature = task.signature
    return TaskDeclaration(
        name=task.name,
        options=defaults | {name: value for name, value in given.items() if value is not None},
        executor=task.executor,
        parameters=tuple(
            TaskParameter(name=one.name, type=_type_name(one.type), required=one.required)
            for one in signature.parameters[:MOST_PARAMETERS]
        ),
        open_ended=signature.open_ended or len(signature.parameters) > MOST_PARAMETERS,
        description=" ".join((task.__doc__ or "").strip().partition("\n\n")[0].split())[:LONGEST_DESCRIPTION],
        limit=task.limit,
    )


def job_options(declared: TaskDeclaration) -> Options:
    """The options of its jobs. One that this version of rota does not know is left out."""
    found: dict[str, Any] = {}
    for name, value in declared.options.items():
        if name in PUBLISHED and name not in READ_AT_RUN:
            try:
                found[name] = getattr(options({name: value}, for_task=declared.name), name)
            except OptionError:
                log.debug("task %r: the published option %s=%r is not understood", declared.name, name, value)
    return Options(**found)


def _plain(value: Any) -> Any:
    """The value as JSON; None for what is code, such as a backoff function."""
    if callable(value) and not isinstance(value, Backoff):
        return None
    try:
        return msgspec.to_builtins(value)
    except TypeError:
        return None


def _type_name(kind: Any) -> str:
    text = kind.__name__ if isinstance(kind, type) else str(kind).replace("typing.", "")
    return text[:LONGEST_TYPE]


def _readable(document: Document) -> TaskDeclaration | None:
    try:
        return msgspec.json.decode(document.body, type=TaskDeclaration)
    except msgspec.MsgspecError:
        return None
