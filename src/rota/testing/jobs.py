"""Run and inspect an app's jobs in a test: ``drain``, ``inline``, ``assert_enqueued``.

Nothing is mocked: jobs go through the app's own store and a real worker, so a test sees retries, keys,
timeouts and payload checks as in production. SQLite in memory makes it fast, and with a FakeClock
time moves only on request::

    async def test_a_receipt_is_sent():
        app = make_app("sqlite://:memory:", clock=FakeClock())
        await place_order(app, 42)
        assert_enqueued(send_receipt, order_id=42)
        await drain(app)
        assert outbox == ["receipt 42"]
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ..app import Rota
from ..core.jobs.options import Options
from ..errors import NotFound
from ..model import Job, JobFilter, PageRequest, State
from ..tasks.handle import JobHandle
from ..tasks.producer import Producer
from ..tasks.task import Task
from .clock import FakeClock

NEWEST = 1000


async def drain(app: Rota, *, advance: bool = False, concurrency: int = 10) -> int:
    """Run every due job of the app's tasks, and the jobs they enqueue. Returns the number of attempts.

    Returns when nothing is due: a job that failed and will be retried later, or that was enqueued with a
    delay, stays queued. ``advance=True`` (with a FakeClock) also moves time to each later
    due job, retries included, until none is left; with a task that snoozes for ever it never returns.
    An error in a task is not raised here: inspect the job, or await its ``result()``.
    """
    attempts = 0
    while True:
        attempts += await _burst(app, concurrency)
        if not advance or not await _move_to_next(app):
            return attempts


async def _burst(app: Rota, concurrency: int) -> int:
    async with app.worker(
        burst=True, heartbeat_thread=False, upkeep=False, scheduler=False, concurrency=concurrency
    ) as worker:
        await worker.run()
        return worker.finished


async def _move_to_next(app: Rota) -> bool:
    if not isinstance(app.clock, FakeClock):
        raise TypeError("drain(advance=True) needs an app with a FakeClock: Rota(url, clock=FakeClock())")
    store = await app.stores.get()
    page = await store.jobs(JobFilter(states=(State.QUEUED,)), PageRequest(limit=NEWEST))
    known = [job.run_at for job in page.items if job.task in app.registry.tasks]
    if not known:
        return False
    app.clock.advance(max((min(known) - app.clock.now()).total_seconds(), 0.0))
    return True


@asynccontextmanager
async def inline(app: Rota) -> AsyncIterator[None]:
    """Inside the block, jobs run as they are enqueued, so that their handles are already final.

    For code under test that enqueues and then needs the outcome. A job that fails has made its first
    attempt and will be retried later. A job with a delay stays queued; one enqueued with ``connection=``
    becomes visible with the caller's commit. A job that a job enqueues runs after it, not inside it::

        async with inline(app):
            job = await send_receipt.enqueue(order_id=42)
            assert job.state == "succeeded"
    """
    usual = app.producer
    _produce_with(app, _Inline(app))
    try:
        yield
    finally:
        _produce_with(app, usual)


def _produce_with(app: Rota, producer: Producer) -> None:
    app.producer = producer
    for task in app.registry:
        task.producer = producer


class _Inline(Producer):
    def __init__(self, app: Rota) -> None:
        super().__init__(app.runtime, app.registry, app)
        self._app = app

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
        return self._app.portal.call(self._run, handles, chosen)

    async def _run(self, handles: Sequence[JobHandle], chosen: Options) -> Sequence[JobHandle]:
        if chosen.connection is not None or self._app.is_running:
            return handles
        await drain(self._app)
        return [await self._refreshed(handle) for handle in handles]

    async def _refreshed(self, handle: JobHandle) -> JobHandle:
        try:
            return await handle.refresh()
        except NotFound:  # auto_remove
            return handle


def assert_enqueued(task: Task[..., Any], /, **payload: Any) -> Job:
    """Assert that the task has a job, in any state, with these payload values. Returns the newest one.

    Values are compared in stored form, so pass a dataclass or a date as the task takes it. Only the
    newest thousand jobs of the task are searched.
    """
    jobs = task.producer.runtime.portal.call(_of_task, task)
    for job in jobs:
        given = job.payload
        if all(name in given and given[name] == _plain(value) for name, value in payload.items()):
            return job
    seen = "\n".join(f"  {job.payload_json}  ({job.state})" for job in jobs[:20]) or "  none"
    raise AssertionError(
        f"no job of task {task.name!r} has {payload!r} in its payload; jobs of that task:\n{seen}"
    )


def assert_not_enqueued(task: Task[..., Any], /, **payload: Any) -> None:
    """Assert that no job of the task, in any state, has these payload values, or that it has none."""
    try:
        job = assert_enqueued(task, **payload)
    except AssertionError:
        return
    raise AssertionError(f"task {task.name!r} has job {job.id} ({job.state}) with payload {job.payload_json}")


async def _of_task(task: Task[..., Any]) -> list[Job]:
    store = await task.producer.runtime.stores.get()
    return list((await store.jobs(JobFilter(task=task.name), PageRequest(limit=NEWEST))).items)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
