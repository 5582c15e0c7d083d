"""What a worker counts, and where the counts are shown."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from rota import Cancel, Context, Rota, Snooze, StoreUnavailable, __version__
from rota.model import ClaimRequest, TurnResult
from rota.runtime.metrics import DURATIONS, OUTCOMES, Histogram, WorkerMetrics
from rota.store.calls import claim
from rota.testing import FakeClock
from rota.worker import maintenance

Until = Callable[..., Awaitable[None]]
STILL: dict[str, Any] = {"heartbeat_thread": False, "upkeep": False, "scheduler": False}


async def counted(app: Rota, **options: Any) -> dict[str, Any]:
    async with app.worker(burst=True, **{**STILL, **options}) as worker:
        await worker.run()
        return worker.metrics.snapshot()


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(0.0, 0), (0.005, 0), (0.0051, 1), (1800.0, len(DURATIONS) - 1), (1800.1, len(DURATIONS))],
)
def test_a_value_falls_into_the_first_bucket_whose_bound_it_does_not_exceed(
    value: float, bucket: int
) -> None:
    histogram = Histogram()
    histogram.add(timedelta(seconds=value))
    metrics = histogram.snapshot()
    assert [n for n, count in enumerate(metrics["counts"]) if count] == [bucket]
    assert (metrics["count"], metrics["sum"]) == (1, value)


def test_many_values_are_all_counted_however_often_they_are_read() -> None:
    histogram = Histogram()
    for n in range(10_000):
        histogram.add(timedelta(milliseconds=n % 20))
        if n % 999 == 0:
            histogram.snapshot()
    metrics = histogram.snapshot()
    assert metrics["count"] == sum(metrics["counts"]) == 10_000
    assert metrics["counts"][:3] == [3000, 2500, 4500]
    assert metrics["sum"] == pytest.approx(95.0)


def test_new_metrics_are_all_zero_and_plain_json() -> None:
    metrics = msgspec.json.decode(msgspec.json.encode(WorkerMetrics().snapshot()))
    assert metrics["runs"] == dict.fromkeys(OUTCOMES, 0)
    assert (metrics["claims"], metrics["outages"], metrics["duration"]["count"], metrics["wait"]["sum"]) == (
        0,
        0,
        0,
        0.0,
    )


async def test_attempts_are_counted_by_outcome(app: Rota) -> None:
    @app.task
    async def work(how: str) -> None:
        match how:
            case "fail":
                raise ValueError("no")
            case "snooze":
                raise Snooze(60)
            case "cancel":
                raise Cancel("enough")

    for how in ("succeed", "succeed", "fail", "snooze", "cancel"):
        await work.enqueue(how)
    await work.options(max_attempts=1).enqueue("fail")
    metrics = await counted(app)
    assert metrics["claims"] == 6
    assert metrics["runs"] == {
        "succeeded": 2, "failed": 1, "retried": 1, "snoozed": 1, "cancelled": 1,
        "released": 0, "rescued": 0, "rejected": 0,
    }  # fmt: skip
    assert (metrics["duration"]["count"], metrics["wait"]["count"]) == (6, 6)


async def test_waiting_is_counted_from_the_due_time_and_running_from_the_start(
    app: Rota, clock: FakeClock
) -> None:
    @app.task
    async def work() -> None:
        clock.advance(3)

    await work.options(delay=10).enqueue()
    clock.advance(12)
    metrics = await counted(app)
    assert (metrics["wait"]["sum"], metrics["duration"]["sum"]) == (2.0, 3.0)


async def test_a_late_outcome_is_counted_as_refused(app: Rota, clock: FakeClock) -> None:
    @app.task
    async def slow(ctx: Context) -> None:
        clock.advance(31)
        await maintenance.rescue(await app.stores.get(), clock, "other", 30, lambda job, state: None)

    await slow.options(max_attempts=1).enqueue()
    metrics = await counted(app)
    assert (metrics["runs"]["rejected"], metrics["runs"]["succeeded"]) == (1, 0)


async def test_rescues_are_counted(app: Rota, clock: FakeClock, until: Until) -> None:
    @app.task
    async def work() -> None: ...

    await work.enqueue()
    store = await app.stores.get()
    await claim(store, ClaimRequest(worker="dead", limit=1, lease_s=30, tasks=("work",)), clock.now())
    clock.advance(31)
    async with app.running(heartbeat_thread=False, scheduler=False, sweep_s=0.01, poll_s=0.01) as worker:
        await until(lambda: worker.metrics.runs["rescued"] == 1 and worker.metrics.runs["succeeded"] == 1)


async def test_an_outage_of_the_store_is_counted_once_however_long_it_lasts(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    store = await app.stores.get()
    turn, left = store.turn, 3

    async def cut_off(*asked: Any) -> TurnResult:
        nonlocal left
        if left:
            left -= 1
            raise StoreUnavailable("the line is cut")
        return await turn(*asked)

    monkeypatch.setattr(store, "turn", cut_off)
    metrics = await counted(app)
    assert (metrics["outages"], left, (await job.refresh()).state) == (1, 0, "succeeded")


async def test_a_workers_document_carries_its_metrics_version_and_state(app: Rota, until: Until) -> None:
    began, go_on = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        began.set()
        await go_on.wait()

    await work.enqueue()
    async with app.running(scheduler=False, lease_s=1) as worker:
        await began.wait()
        store = await app.stores.get()
        body: dict[str, Any] = {}

        async def has_claimed() -> bool:
            for document in await store.documents("worker"):
                body.update(msgspec.json.decode(document.body))
            return bool(body and body["measures"]["claims"])

        await until(has_claimed)
        go_on.set()
    assert (body["id"], body["version"], body["state"]) == (worker.id, __version__, "running")
    assert body["measures"]["claims"] == 1
    assert body["measures"].keys() == WorkerMetrics().snapshot().keys()
