"""Run jobs as they are enqueued: ``inline``. Owns the swap of an app's producer, and its return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from ..app import Rota
from ..core.jobs.options import Options
from ..durations import Duration
from ..errors import NotFound
from ..model import JobId
from ..runtime.portal import Portal
from ..tasks.handle import JobHandle, from_job
from ..tasks.producer import Producer
from .due_jobs import run_due_jobs


class inline:
    """Inside the block, jobs run as they are enqueued, so that their handles are already final.

    For code under test that enqueues and then needs the outcome, with ``with`` or ``async with``. A job
    that fails has made its first attempt and will be retried later. A job with a delay stays queued. A job
    enqueued with ``connection=`` exists once the caller commits: it runs when its handle is next asked, when
    another job is enqueued, or at the end of the block. A job that a job enqueues runs after it, not
    inside it::

        async with inline(app):
            job = await send_receipt.enqueue(order_id=42)
            assert job.state == "succeeded"
    """

    def __init__(self, app: Rota) -> None:
        self._app = app
        self._usual: Producer | None = None

    def __enter__(self) -> None:
        self._usual = self._app.producer
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
        if self._usual is not None:
            _produce_with(self._app, self._usual)


def _produce_with(app: Rota, producer: Producer) -> None:
    app.producer = producer
    for task in app.registry:
        task.producer = producer


class _InlineAccess:
    """What handles ask inside the block: first run what has been committed since."""

    def __init__(self, app: Rota) -> None:
        self._app = app

    @property
    def portal(self) -> Portal:
        return self._app.portal

    async def run(self) -> None:
        if not self._app.is_running:
            await run_due_jobs(self._app)

    async def wait(self, job_id: JobId, timeout: Duration | None = None) -> Any:
        await self.run()
        return await self._app.wait(job_id, timeout)

    async def job(self, job_id: JobId) -> JobHandle:
        await self.run()
        return self._mine(await self._app.job(job_id))

    async def cancel(self, job_id: JobId, reason: str = "cancelled") -> JobHandle:
        return self._mine(await self._app.cancel(job_id, reason))

    async def retry(self, job_id: JobId) -> JobHandle:
        await self._app.retry(job_id)
        return await self.job(job_id)

    def _mine(self, handle: JobHandle) -> JobHandle:
        return from_job(handle, self)


class _InlineProducer(Producer):
    def __init__(self, app: Rota) -> None:
        self._now = _InlineAccess(app)
        super().__init__(app.runtime, app.registry, app.published, self._now)

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
        await self._now.run()
        return [await self._refreshed(handle) for handle in handles]

    async def _refreshed(self, handle: JobHandle) -> JobHandle:
        try:
            return await handle.refresh()
        except NotFound:  # auto_remove
            return handle
