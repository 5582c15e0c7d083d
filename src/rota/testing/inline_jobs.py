"""Run jobs as they are enqueued: ``inline``. Owns the swap of an app's producer, and its return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from ..app import Rota
from ..core.jobs.options import Options
from ..errors import NotFound
from ..store.protocol import Store
from ..tasks.handle import JobHandle
from ..tasks.producer import Producer
from .due_jobs import run_due_jobs


class inline:
    """Inside the block, jobs run as they are enqueued, so that their handles are already final.

    For code under test that enqueues and then needs the outcome, with ``with`` or ``async with``. A job
    that fails has made its first attempt and will be retried later. A job with a delay stays queued. A job
    enqueued with ``connection=`` exists once the caller commits: it runs before the app next reads or writes
    its store, as ``app.job`` and ``enqueue`` do, or at the end of the block. A job that a job enqueues runs
    after it, not inside it::

        async with inline(app):
            job = await send_receipt.enqueue(order_id=42)
            assert job.state == "succeeded"
    """

    def __init__(self, app: Rota) -> None:
        self._app = app
        self._usual: Producer | None = None
        self._stores: _InlineStores | None = None

    def __enter__(self) -> None:
        self._usual = self._app.producer
        self._stores = _InlineStores(self._app)
        _produce_with(self._app, _InlineProducer(self._app))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._leave()
        if kind is None:
            self._app.portal.call(run_due_jobs, self._app)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._leave()
        if kind is None:
            await run_due_jobs(self._app)

    def _leave(self) -> None:
        if self._usual is not None and self._stores is not None:
            self._stores.leave()
            _produce_with(self._app, self._usual)


def _produce_with(app: Rota, producer: Producer) -> None:
    app.producer = producer
    for task in app.registry:
        task.producer = producer


class _InlineStores:
    """The app's stores inside the block: whatever is read, what is due has run before."""

    def __init__(self, app: Rota) -> None:
        self._app = app
        self._usual = app.stores.get
        self._is_running = False
        app.stores.get = self.get  # type: ignore[method-assign]

    def leave(self) -> None:
        self._app.stores.get = self._usual  # type: ignore[method-assign]

    async def get(self) -> Store:
        if not (self._is_running or self._app.is_running):
            self._is_running = True
            try:
                await run_due_jobs(self._app)
            finally:
                self._is_running = False
        return await self._usual()


class _InlineProducer(Producer):
    def __init__(self, app: Rota) -> None:
        super().__init__(app.runtime, app.registry, app.published, app)

    async def enqueue(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        handle = await super().enqueue(name, arguments, chosen)
        return (await self._run([handle], chosen))[0]

    async def enqueue_many(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        return await self._run(await super().enqueue_many(name, arguments, chosen), chosen)

    def enqueue_many_sync(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]:
        handles = super().enqueue_many_sync(name, arguments, chosen)
        return self.runtime.portal.call(self._run, handles, chosen)

    async def _run(self, handles: Sequence[JobHandle], chosen: Options) -> Sequence[JobHandle]:
        if chosen.connection is not None:  # the caller's transaction is open: a worker cannot see the job
            return handles
        return [await self._refreshed(handle) for handle in handles]

    async def _refreshed(self, handle: JobHandle) -> JobHandle:
        try:
            return await handle.refresh()
        except NotFound:  # auto_remove
            return handle
