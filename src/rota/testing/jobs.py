"""Run and look at the jobs of an app inside a test: ``drain``, ``inline``, ``assert_enqueued``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from ..app import Rota
from ..core.options import Options
from ..handle import JobHandle
from ..model import Job, JobFilter, PageAsk, State
from ..producer import Producer
from ..task import Task
from .clock import FakeClock

LOOK_AT = 1000


async def drain(app: Rota, *, advance: bool = False, concurrency: int = 10) -> int:
    """Run every due job to its end, here and now; how many attempts were made.

    ``advance=True`` (with a FakeClock) also moves time to each later due job, retries included,
    until none is left.
    """
    attempts = 0
    while True:
        attempts += await _burst(app, concurrency)
        if not advance or not await _move_to_next(app):
            return attempts


async def _burst(app: Rota, concurrency: int) -> int:
    async with app.worker(burst=True, keeper=False, upkeep=False, concurrency=concurrency) as worker:
        await worker.run()
        return worker.finished


async def _move_to_next(app: Rota) -> bool:
    if not isinstance(app.clock, FakeClock):
        raise TypeError("drain(advance=True) needs an app with a FakeClock: Rota(url, clock=FakeClock())")
    store = await app.stores.get()
    page = await store.jobs(JobFilter(states=(State.QUEUED,)), PageAsk(limit=LOOK_AT))
    known = [job.run_at for job in page.items if job.task in app.registry.tasks]
    if not known:
        return False
    app.clock.advance(max((min(known) - app.clock.now()).total_seconds(), 0.0))
    return True


@asynccontextmanager
async def inline(app: Rota) -> AsyncIterator[None]:
    """Inside the block every ``enqueue`` also runs what is due, so that its handle is already final."""
    usual, app.producer = app.producer, _Inline(app)
    try:
        yield
    finally:
        app.producer = usual


class _Inline(Producer):
    async def enqueue(self, name: str, arguments: Any, chosen: Options) -> JobHandle:
        handle = await super().enqueue(name, arguments, chosen)
        if chosen.connection is not None or self._app.is_running:
            return handle
        await drain(self._app)
        found = await (await self._app.stores.get()).jobs(JobFilter(ids=(handle.id,)), PageAsk(limit=1))
        return await handle.refresh() if found.items else handle


def assert_enqueued(task: Task[..., Any], /, **payload: Any) -> Job:
    """A job of the task whose payload has at least these values is stored, in any state: that job."""
    jobs = task.app.portal.call(_of_task, task)
    for job in jobs:
        given = job.payload
        if all(name in given and given[name] == _plain(value) for name, value in payload.items()):
            return job
    seen = "\n".join(f"  {job.payload_json}  ({job.state})" for job in jobs[:20]) or "  none at all"
    raise AssertionError(
        f"no job of task {task.name!r} has {payload!r} in its payload; jobs of that task:\n{seen}"
    )


def assert_not_enqueued(task: Task[..., Any], /, **payload: Any) -> None:
    """No job of the task has these values in its payload."""
    try:
        job = assert_enqueued(task, **payload)
    except AssertionError:
        return
    raise AssertionError(f"task {task.name!r} has job {job.id} ({job.state}) with payload {job.payload_json}")


async def _of_task(task: Task[..., Any]) -> list[Job]:
    store = await task.app.stores.get()
    return list((await store.jobs(JobFilter(task=task.name), PageAsk(limit=LOOK_AT))).items)


def _plain(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))
