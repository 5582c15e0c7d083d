"""From a call to a stored job: ``JobBuilder`` checks and builds it, the store inserts it, a handle returns.

Three hops to the store: ``Task.enqueue``, ``Producer.enqueue``, ``Store.insert``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from ..core.jobs.options import Options, merge
from ..core.plurals import plural
from ..errors import ConfigError, DuplicateJob, StoreUnavailable
from ..model import FINAL, InsertResult, JobFilter, JobId, NewJob, PageRequest
from ..runtime.clock import monotonic
from ..runtime.runtime import Runtime
from ..runtime.sync_twins import call_sync, run_here
from ..store.protocol import Store
from .bursts import BurstCheck
from .current import RunningJob
from .handle import Handles, JobAccess, JobHandle, from_job, from_new
from .job_builder import JobBuilder
from .published import PublishedTasks
from .registry import Registry


class Producer:
    """Stores the jobs of one app. Owns idempotent insertion: a lost answer never doubles a job.

    Never runs a job, and never writes one that was not checked whole.
    """

    def __init__(
        self, runtime: Runtime, registry: Registry, published: PublishedTasks, access: JobAccess
    ) -> None:
        self.runtime = runtime
        self._registry = registry
        self.published = published
        self._access = access
        self._builder = JobBuilder(runtime, registry)
        self._bursts = BurstCheck(runtime)

    def has(self, name: str) -> bool:
        """Whether the task's code is here."""
        return name in self._registry.tasks

    # --- one job ---------------------------------------------------------------------------------

    async def enqueue(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        if chosen.connection is not None:
            return await self._enqueue_with(name, arguments, chosen)
        began = monotonic()
        store = await self._store(began)
        if name not in self._registry.tasks:
            chosen = await self._declared(store, name, chosen, began)
        now = self.runtime.clock.now()
        new = self._builder.one(name, arguments, chosen, now)
        if new.units is not None:
            await self._bursts.check(store, [new])
        if not self.runtime.tenants.has_nothing:
            (new,) = await self._admitted(store, [new], began)
        try:
            if chosen.id is None:
                inserted = (await store.insert([new], now))[0]
            else:  # it may have been stored before
                inserted = (await store.insert([new], now, retrying=True))[0]
        except StoreUnavailable as error:
            inserted = (await self._insert_again(store, [new], now, error, began))[0]
        if inserted.outcome == "created":
            return from_new(new, inserted, now, self._access)
        return await self._handle(store, new, inserted, now, chosen.id is not None)

    def enqueue_sync(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        if chosen.connection is not None:
            chosen = run_here("enqueue", self._declared_within(name, chosen))
            now = self.runtime.clock.now()
            new = self._builder.one(name, arguments, chosen, now)
            (new,) = self._admitted_within_sync(chosen, [new], "enqueue")
            (inserted,) = self._insert_with_sync(chosen, [new], "enqueue")
            return self._handle_within(new, inserted, now)
        return call_sync(self.runtime.portal, "enqueue", self.enqueue, name, arguments, chosen)

    async def prepared(self, name: str, arguments: Any, chosen: Options) -> NewJob:
        """The job that this would store, everything checked and nothing written."""
        store = await self.runtime.stores.get()  # reads the store's clock
        if name in self._registry.tasks:
            both = merge(self._registry.options(name), chosen)
        else:
            both = merge(await self.published.options(store, name), chosen)
        new = self._builder.one(name, arguments, both, self.runtime.clock.now())
        await self._bursts.check(store, [new])
        return new

    async def enqueue_as(self, new: NewJob, id: JobId | None) -> JobHandle:
        """Store a prepared job. Under an id promised earlier it is stored once, however often it is asked."""
        began = monotonic()
        store, now = await self._store(began), self.runtime.clock.now()
        (new,) = await self._admitted(store, [new], began)
        if id is None:
            return await self._handle(store, new, (await self._insert(store, [new], now, began))[0], now)
        new = replace(new, id=id)
        try:
            (inserted,) = await store.insert([new], now, retrying=True)
        except StoreUnavailable as error:
            (inserted,) = await self._insert_again(store, [new], now, error, began)
        return await self._handle(store, new, inserted, now, True)

    def build(self, name: str, arguments: Any, chosen: Options, now: datetime, running: RunningJob) -> NewJob:
        """The job that the running one wants, everything checked and nothing written."""
        base = self._registry.options(name) if self.has(name) else self.published.options_at_hand(name)
        new = self._builder.one(name, arguments, merge(base, chosen), now, running)
        self._bursts.check_at_hand([new])
        return self.runtime.tenants.at_hand([new])[0]

    # --- many ------------------------------------------------------------------------------------

    async def enqueue_many(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        began = monotonic()
        store = await self._store(began) if chosen.connection is None else None
        if store is None:
            chosen = await self._declared_within(name, chosen)
        elif name not in self._registry.tasks:
            chosen = await self._declared(store, name, chosen, began)
        now = self.runtime.clock.now()
        jobs: Sequence[NewJob] = self._builder.many(name, arguments, chosen, now)
        if store is not None:
            await self._bursts.check(store, jobs if chosen.units is not None else ())
            jobs = await self._admitted(store, jobs, began)
            inserted = await self._insert(store, jobs, now, began)
        else:
            jobs = await self._admitted_within(chosen, jobs)
            inserted = await self._insert_with(chosen, jobs)
        _raise_if_duplicates(jobs, inserted)
        return Handles(jobs, inserted, now, self._access)

    def enqueue_many_sync(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        portal, began = self.runtime.portal, monotonic()
        store = call_sync(portal, "enqueue_many", self._store, began) if chosen.connection is None else None
        if store is None:
            chosen = run_here("enqueue_many", self._declared_within(name, chosen))
        elif name not in self._registry.tasks:
            chosen = portal.call(self._declared, store, name, chosen, began)
        now = self.runtime.clock.now()
        # The caller's iterable may be bound to its thread, as a database cursor is: read it here.
        jobs: Sequence[NewJob] = self._builder.many(name, arguments, chosen, now)
        if store is not None:
            if chosen.units is not None:
                portal.call(self._bursts.check, store, jobs)
            jobs = portal.call(self._admitted, store, jobs, began)
            inserted = portal.call(self._insert, store, jobs, now, began)
        else:
            jobs = self._admitted_within_sync(chosen, jobs, "enqueue_many")
            inserted = self._insert_with_sync(chosen, jobs, "enqueue_many")
        _raise_if_duplicates(jobs, inserted)
        return Handles(jobs, inserted, now, self._access)

    # --- tasks whose code is elsewhere -----------------------------------------------------------

    async def _declared(self, store: Store, name: str, chosen: Options, began: float) -> Options:
        """The options with those that the task's own program has published."""

        def ask() -> Awaitable[Options]:
            return self.published.options(store, name)

        try:
            base = await ask()
        except StoreUnavailable as error:
            base = await self.runtime.stores.patience.outlast(ask, error, began, self._patience_s)
        return merge(base, chosen)

    async def _declared_within(self, name: str, chosen: Options) -> Options:
        """The same in the caller's transaction, where no connection of our own may be waited for."""
        if name in self._registry.tasks:
            return chosen
        within = self.runtime.stores.root().within(chosen.connection)
        return merge(await self.published.options_within(within, name), chosen)

    # --- what tenants may ------------------------------------------------------------------------

    async def _admitted(self, store: Store, jobs: Sequence[NewJob], began: float) -> Sequence[NewJob]:
        """The jobs as their tenants' rules let them be stored; QuotaExceeded before anything is."""
        tenants = self.runtime.tenants
        if tenants.has_nothing or not jobs:
            return jobs

        def ask() -> Awaitable[Sequence[NewJob]]:
            return tenants.admitted(store, jobs)

        try:
            return await ask()
        except StoreUnavailable as error:
            return await self.runtime.stores.patience.outlast(ask, error, began, self._patience_s)

    async def _admitted_within(self, chosen: Options, jobs: Sequence[NewJob]) -> Sequence[NewJob]:
        """The same in the caller's transaction, with the bursts of rates."""
        within, tenants = self.runtime.stores.root().within(chosen.connection), self.runtime.tenants
        if chosen.units is not None:
            await self._bursts.check(within, jobs)
        if tenants.has_nothing or not jobs:
            return jobs
        return await tenants.admitted_within(within, jobs)

    def _admitted_within_sync(self, chosen: Options, jobs: Sequence[NewJob], verb: str) -> Sequence[NewJob]:
        if self.runtime.stores.root().within(chosen.connection).is_async:
            return jobs  # refused by the insert, before anything is sent
        return run_here(verb, self._admitted_within(chosen, jobs))

    # --- waiting through an outage ---------------------------------------------------------------

    async def _store(self, began: float) -> Store:
        stores = self.runtime.stores
        try:
            return await stores.get()
        except StoreUnavailable as error:
            return await stores.patience.outlast(stores.get, error, began, self._patience_s)

    async def _insert(
        self, store: Store, jobs: Sequence[NewJob], now: datetime, began: float
    ) -> Sequence[InsertResult]:
        try:
            return await store.insert(jobs, now)
        except StoreUnavailable as error:
            return await self._insert_again(store, jobs, now, error, began)

    async def _insert_again(
        self, store: Store, jobs: Sequence[NewJob], now: datetime, error: StoreUnavailable, began: float
    ) -> Sequence[InsertResult]:
        """After an error the answer may be lost: ask in a way that cannot double the jobs."""

        def ask() -> Awaitable[Sequence[InsertResult]]:
            return store.insert(jobs, now, retrying=True)

        return await self.runtime.stores.patience.outlast(ask, error, began, self._patience_s)

    @property
    def _patience_s(self) -> float:
        return self.runtime.settings.enqueue_patience_s

    # --- on the caller's own connection ----------------------------------------------------------

    async def _enqueue_with(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        chosen = await self._declared_within(name, chosen)
        now = self.runtime.clock.now()
        new = self._builder.one(name, arguments, chosen, now)
        (new,) = await self._admitted_within(chosen, [new])
        (inserted,) = await self._insert_with(chosen, [new])
        return self._handle_within(new, inserted, now)

    async def _insert_with(self, chosen: Options, jobs: Sequence[NewJob]) -> Sequence[InsertResult]:
        answer = self._answer_of(chosen, jobs)
        return await answer if inspect.isawaitable(answer) else answer

    def _insert_with_sync(self, chosen: Options, jobs: Sequence[NewJob], verb: str) -> Sequence[InsertResult]:
        answer = self._answer_of(chosen, jobs)
        if not inspect.isawaitable(answer):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
        raise ConfigError(f"{verb}_sync was given an async connection: await {verb}(…) instead")

    def _answer_of(
        self, chosen: Options, jobs: Sequence[NewJob]
    ) -> Sequence[InsertResult] | Awaitable[Sequence[InsertResult]]:
        store, retrying = self.runtime.stores.root(), chosen.id is not None
        return store.insert_with(chosen.connection, jobs, self._known_now(), retrying=retrying)

    def _known_now(self) -> datetime | None:
        """The store's time if it is known; otherwise the server fills it in."""
        return None if self.runtime.clock.is_stale else self.runtime.clock.now()

    # --- handles ---------------------------------------------------------------------------------

    async def _handle(
        self, store: Store, new: NewJob, inserted: InsertResult, now: datetime, chosen_id: bool = False
    ) -> JobHandle:
        """A handle on the new job, or on the one that has its chosen id or holds its idempotency key."""
        if inserted.outcome == "created" or (inserted.id == new.id and not chosen_id):
            return from_new(new, inserted, now, self._access)
        _raise_if_duplicate(new, inserted)
        found = await store.jobs(JobFilter(ids=(inserted.id,)), PageRequest(limit=1))
        if not found.items:
            return from_new(new, inserted, now, self._access)
        return from_job(found.items[0], self._access)

    def _handle_within(self, new: NewJob, inserted: InsertResult, now: datetime) -> JobHandle:
        """A handle without reading the store: it cannot see into the caller's transaction."""
        _raise_if_duplicate(new, inserted)
        return from_new(new, inserted, now, self._access)


def _raise_if_duplicate(new: NewJob, inserted: InsertResult) -> None:
    if inserted.outcome != "refused":
        return
    remedy = "use on_conflict='return' to get that job instead"
    if inserted.state in FINAL:
        remedy += ", or delete it, for it keeps its key"
    elif new.on_conflict == "replace":
        remedy = "wait for it to end, or use on_conflict='return'"
    raise DuplicateJob(
        f"key {new.key!r} is held by job {inserted.id} of tenant {new.tenant!r}, which is "
        f"{inserted.state}: {remedy}",
        inserted.id,
    )


def _raise_if_duplicates(jobs: Sequence[NewJob], inserted: Sequence[InsertResult]) -> None:
    if all(one.outcome != "refused" for one in inserted):
        return
    refused = [(new, one) for new, one in zip(jobs, inserted, strict=True) if one.outcome == "refused"]
    try:
        _raise_if_duplicate(*refused[0])
    except DuplicateJob as first:
        raise DuplicateJob(
            f"{len(refused)} of {plural(len(jobs), 'job')} were refused, the others are stored; "
            f"the first: {first}",
            first.job_id,
        ) from None
