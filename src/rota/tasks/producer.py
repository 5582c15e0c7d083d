"""From a call to a stored job: options, payload, insert. Everything is checked before anything is written."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..core.jobs.options import Options, due, merge, name_text
from ..core.payload import codec
from ..errors import ConfigError, DuplicateJob, OptionError, PayloadError, StoreUnavailable
from ..model import InsertResult, JobFilter, JobId, NewJob, PageRequest
from ..store.protocol import Store
from ..worker.context import CURRENT
from .handle import Handles, JobHandle, from_job, from_new
from .task import Task

if TYPE_CHECKING:
    from ..app import Rota


class Producer:
    """Enqueues for one app."""

    def __init__(self, app: Rota) -> None:
        self._app = app

    # --- one job ---------------------------------------------------------------------------------

    async def enqueue(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        if chosen.connection is not None:
            now = self._app.clock.now()
            (new,) = self._prepare(name, (arguments,), chosen, now)
            answer = self._insert_with(chosen.connection, [new])
            inserted = await answer if inspect.isawaitable(answer) else answer
            return self._handle_within(new, inserted[0], now)
        store = await self._app.stores.get()
        now = self._app.clock.now()
        (new,) = self._prepare(name, (arguments,), chosen, now)
        return await self._handle(new, (await _insert(store, [new], now))[0], now)

    async def prepared(self, name: str, arguments: Any, chosen: Options) -> NewJob:
        """The job that this would store, everything checked and nothing written."""
        known = self._app.registry.get(name)
        await self._app.stores.get()  # reads the store's clock
        both = chosen if known is None else merge(known.chosen, chosen)
        return self._prepare(name, (arguments,), both, self._app.clock.now())[0]

    async def enqueue_as(self, new: NewJob, id: JobId | None) -> JobHandle:
        """Store a prepared job; under an id that was promised before, one however often it is asked for."""
        store, now = await self._app.stores.get(), self._app.clock.now()
        if id is None:
            return await self._handle(new, (await _insert(store, [new], now))[0], now)
        new = replace(new, id=id)
        (inserted,) = await store.insert([new], now, retrying=True)
        if inserted.outcome == "existing":
            found = await store.jobs(JobFilter(ids=(inserted.id,)), PageRequest(limit=1))
            if found.items:
                return from_job(found.items[0], self._app)
        return await self._handle(new, inserted, now)

    def enqueue_sync(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        if chosen.connection is not None:
            now = self._app.clock.now()
            (new,) = self._prepare(name, (arguments,), chosen, now)
            inserted = self._insert_with_sync(chosen.connection, [new], "enqueue")
            return self._handle_within(new, inserted[0], now)
        parent = CURRENT.get()  # the portal's loop runs in a context of its own
        if parent is not None and chosen.parent is None:
            chosen = merge(chosen, Options(parent=parent.job.id))
        return self._app.portal.call(self.enqueue, name, arguments, chosen)

    # --- many ------------------------------------------------------------------------------------

    async def enqueue_many(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        if chosen.key is not None:
            raise OptionError("key names one job; a bulk call makes many: enqueue keyed jobs one by one")
        store = await self._app.stores.get() if chosen.connection is None else None
        now = self._app.clock.now()
        jobs = self._prepare(name, arguments, chosen, now)
        if store is not None:
            inserted = await _insert(store, jobs, now)
        else:
            answer = self._insert_with(chosen.connection, jobs)
            inserted = await answer if inspect.isawaitable(answer) else answer
        return Handles(jobs, inserted, now, self._app)

    def enqueue_many_sync(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        if chosen.key is not None:
            raise OptionError("key names one job; a bulk call makes many: enqueue keyed jobs one by one")
        store = self._app.portal.call(self._app.stores.get) if chosen.connection is None else None
        now = self._app.clock.now()
        # The caller's iterable may be bound to its thread, as a database cursor is: go through it here.
        jobs = self._prepare(name, arguments, chosen, now)
        if store is not None:
            inserted = self._app.portal.call(_insert, store, jobs, now)
        else:
            inserted = self._insert_with_sync(chosen.connection, jobs, "enqueue_many")
        return Handles(jobs, inserted, now, self._app)

    # --- steps -----------------------------------------------------------------------------------

    def _prepare(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options, now: datetime
    ) -> list[NewJob]:
        """A job for each of the arguments. What they have in common is decided once."""
        job = self._shape(name, chosen, now)
        encode = self._encoder(name)
        texts = [encode(_object(each, name)) for each in arguments]
        ids = self._app.ids.run(now, len(texts))
        return [replace(job, id=id, payload_json=text) for id, text in zip(ids, texts, strict=True)]

    def _encoder(self, name: str) -> Callable[[Mapping[str, Any]], str]:
        task: Task[..., Any] | None = self._app.registry.get(name)
        limit = self._app.settings.max_payload_bytes
        if task is not None:
            return partial(task.signature.encode, limit=limit)
        name_text("task", name)
        return partial(codec.encode, limit=limit)

    def _shape(self, name: str, chosen: Options, now: datetime) -> NewJob:
        """The job but for its id and payload."""
        app = self._app
        task: Task[..., Any] | None = app.registry.get(name)
        running = CURRENT.get()
        parent = chosen.parent or (running.job.id if running is not None else None)
        return NewJob(
            id="",
            task=name,
            queue=chosen.queue or "default",
            tenant=chosen.tenant or (running.job.tenant if running is not None else "default"),
            priority=chosen.priority or 0,
            run_at=due(chosen, now),
            max_attempts=chosen.max_attempts or app.settings.max_attempts,
            timeout=chosen.timeout if task is None or chosen.timeout != task.chosen.timeout else None,
            backoff=chosen.backoff if task is None or chosen.backoff != task.chosen.backoff else None,
            key=chosen.key,
            on_conflict=chosen.on_conflict or "return",  # type: ignore[arg-type]
            auto_remove=bool(chosen.auto_remove),
            tags=chosen.tags or (),
            parent=parent,
            origin="job" if parent is not None else "api",
        )

    async def _handle(self, new: NewJob, inserted: InsertResult, now: datetime) -> JobHandle:
        if inserted.outcome == "created" or inserted.id == new.id:
            return from_new(new, inserted, now, self._app)
        self._raise_if_refused(new, inserted)
        store = await self._app.stores.get()
        found = await store.jobs(JobFilter(ids=(inserted.id,)), PageRequest(limit=1))
        return from_job(found.items[0], self._app) if found.items else from_new(new, inserted, now, self._app)

    def _raise_if_refused(self, new: NewJob, inserted: InsertResult) -> None:
        if inserted.outcome == "refused":
            remedy = (
                "wait for it to end, or use on_conflict='return'"
                if new.on_conflict == "replace"
                else "use on_conflict='return' to get that job instead"
            )
            raise DuplicateJob(
                f"key {new.key!r} is held by job {inserted.id} of tenant {new.tenant!r}, which is "
                f"{inserted.state}: {remedy}",
                inserted.id,
            )

    def _known_now(self) -> datetime | None:
        """The store's time if we know it; else the server fills it in."""
        return None if self._app.clock.is_stale else self._app.clock.now()

    def _insert_with(
        self, connection: Any, jobs: Sequence[NewJob]
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        return self._app.stores.root().insert_with(connection, jobs, self._known_now())

    def _insert_with_sync(self, connection: Any, jobs: Sequence[NewJob], verb: str) -> Sequence[InsertResult]:
        answer = self._insert_with(connection, jobs)
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise ConfigError(f"{verb}_sync was given an async connection: await {verb}(…) instead")

    def _handle_within(self, new: NewJob, inserted: InsertResult, now: datetime) -> JobHandle:
        """A handle without a look at the store: it cannot see into the caller's transaction."""
        self._raise_if_refused(new, inserted)
        return from_new(new, inserted, now, self._app)


async def _insert(store: Store, jobs: Sequence[NewJob], now: datetime) -> Sequence[InsertResult]:
    """Insert; when the answer was lost, ask again in a way that cannot double the jobs."""
    try:
        return await store.insert(jobs, now)
    except StoreUnavailable:
        return await store.insert(jobs, now, retrying=True)


def _object(arguments: Any, name: str) -> Mapping[str, Any]:
    if type(arguments) is dict or isinstance(arguments, Mapping):  # the usual kind costs no search
        return arguments
    raise PayloadError(
        f"task {name!r}: the payload is a {type(arguments).__name__}; pass arguments by name, as {{…}}"
    )
