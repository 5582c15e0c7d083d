"""Rescue, prune, and tasks that no worker serves: stepped, with a clock that is moved."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota import Job, Rota, State, operate
from rota.model import Backoff, ClaimRequest
from rota.store.calls import claim
from rota.testing import FakeClock, drain
from rota.worker import maintenance
from rota.worker.maintenance import RecentLosses
from rota.worker.unknown_tasks import unserved
from service_fixtures import Until

STILL = {"heartbeat_thread": False, "upkeep": False}


async def claimed_by_a_dead_worker(app: Rota) -> None:
    store = await app.stores.get()
    want = ClaimRequest(worker="dead", limit=10, lease_s=30, tasks=app.registry.names)
    assert await claim(store, want, app.clock.now())


async def rescue(app: Rota, losses: RecentLosses | None = None) -> list[tuple[str, State]]:
    seen: list[tuple[str, State]] = []

    def rescued(job: Job, state: State) -> None:
        seen.append((job.id, state))

    known = losses or RecentLosses()
    await maintenance.rescue(await app.stores.get(), app.clock, "rescuer", 30, rescued, known)
    return seen


async def outcomes(app: Rota, job: Any) -> list[tuple[str, str | None]]:
    recorded = await operate.attempts(await app.stores.get(), await job.refresh())
    return [(attempt.outcome, attempt.worker) for attempt in recorded]


async def test_a_job_with_an_expired_lease_is_queued_and_its_crash_counted(
    app: Rota, clock: FakeClock
) -> None:
    @app.task
    async def work() -> str:
        return "second time lucky"

    job = await work.enqueue()
    await claimed_by_a_dead_worker(app)
    clock.advance(29)
    assert await rescue(app) == []
    clock.advance(2)
    assert await rescue(app) == [(job.id, State.QUEUED)]
    job = await job.refresh()
    assert (job.state, job.attempt, job.crashes, job.worker) == ("queued", 0, 1, None)
    assert job.error["type"] == "LeaseExpired"
    assert "dead" in job.error["message"]
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.attempt, job.crashes, job.error) == ("succeeded", 1, 1, None)
    assert [outcome for outcome, _ in await outcomes(app, job)] == ["rescued", "succeeded"]
    assert (await outcomes(app, job))[0] == ("rescued", "dead")


async def test_a_third_crash_quarantines_the_job_until_an_operator_releases_it(
    app: Rota, clock: FakeClock
) -> None:
    @app.task(max_attempts=2)
    async def work() -> None: ...

    job = await work.enqueue()
    states = []
    for _ in range(3):
        await claimed_by_a_dead_worker(app)
        clock.advance(31)
        states += [state for _, state in await rescue(app)]
    assert states == [State.QUEUED, State.QUEUED, State.FAILED]
    job = await job.refresh()
    assert (job.state, job.attempt, job.crashes, job.error["type"]) == ("failed", 1, 3, "Quarantined")
    assert job.error["message"].count("worker dead stopped responding") == 3
    assert await outcomes(app, job) == [("rescued", "dead")] * 3
    job = await job.retry()
    assert (job.state, job.crashes) == ("queued", 0)
    assert (await job.refresh()).crashes == 0
    await drain(app)
    assert (await job.refresh()).state is State.SUCCEEDED


async def test_a_worker_quarantines_by_its_settings(clock: FakeClock, until: Until) -> None:
    app = Rota("sqlite://:memory:", clock=clock, quarantine_after=1)

    @app.task
    async def work() -> None: ...

    job = await work.options(max_attempts=9).enqueue()
    await claimed_by_a_dead_worker(app)
    clock.advance(31)
    async with app.running(heartbeat_thread=False):

        async def is_quarantined() -> bool:
            return (await job.refresh()).state is State.FAILED

        await until(is_quarantined)
    assert (await job.refresh()).error["type"] == "Quarantined"
    await app.close()


async def lost_together(app: Rota, clock: FakeClock, worker: str, **names: Any) -> None:
    """A worker claims what is due, of these tasks, and stops responding."""
    want = ClaimRequest(worker=worker, limit=10, lease_s=30, **names)
    assert await claim(await app.stores.get(), want, clock.now())


async def test_a_job_is_not_blamed_for_crashes_that_others_share(app: Rota, clock: FakeClock) -> None:
    """Four jobs run together three times; then one of them ends its worker alone."""

    @app.task
    async def work() -> None: ...

    @app.task
    async def poison() -> None: ...

    clock.fraction = 0.5
    neighbours = [await work.enqueue() for _ in range(3)]
    culprit = await poison.enqueue()
    for n in range(3):
        await lost_together(app, clock, f"w{n}")
        clock.advance(31)
        assert [state for _, state in await rescue(app)] == [State.QUEUED] * 4
        clock.advance(60)  # they start again at different times, the later the more often it happens
    assert {(await job.refresh()).crashes for job in [*neighbours, culprit]} == {3}
    await lost_together(app, clock, "w3", tasks=("poison",))
    clock.advance(31)
    assert await rescue(app) == [(culprit.id, State.FAILED)]
    await drain(app)
    assert {(await job.refresh()).state for job in neighbours} == {State.SUCCEEDED}


async def test_jobs_of_one_worker_are_compared_though_their_leases_expire_in_turn(
    app: Rota, clock: FakeClock
) -> None:
    @app.task
    async def work() -> None: ...

    @app.task
    async def later() -> None: ...

    clock.fraction = 0.0
    await work.enqueue()
    await later.enqueue()
    for n in range(2):
        await lost_together(app, clock, f"w{n}")
        clock.advance(31)
        await rescue(app)
    losses = RecentLosses()
    await lost_together(app, clock, "w2", tasks=("work",))
    clock.advance(10)
    await lost_together(app, clock, "w2", tasks=("later",))
    clock.advance(21)
    first = await rescue(app, losses)
    clock.advance(10)
    assert [state for _, state in first + await rescue(app, losses)] == [State.QUEUED] * 2


async def test_a_job_lost_again_with_others_starts_at_a_time_of_its_own(app: Rota, clock: FakeClock) -> None:
    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    delays = []
    for n in range(2):
        await lost_together(app, clock, f"w{n}")
        clock.advance(31)
        clock.fraction = 0.5
        await rescue(app)
        delays.append((await job.refresh()).run_at - clock.now())
        clock.advance(60)
    assert delays == [timedelta(0), timedelta(seconds=5)]


async def test_a_failure_between_two_crashes_begins_their_count_anew(app: Rota, clock: FakeClock) -> None:
    @app.task(max_attempts=3, backoff=Backoff.none())
    async def work() -> None:
        if len(attempts := await outcomes(app, job)) < 3:
            raise ValueError(str(attempts))

    job = await work.enqueue()
    for _ in range(2):
        await claimed_by_a_dead_worker(app)
        clock.advance(31)
        await rescue(app)
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.attempt, job.crashes) == ("succeeded", 2, 0)


async def test_a_rescue_of_a_job_that_may_not_be_repeated_fails_it(app: Rota, clock: FakeClock) -> None:
    @app.task(max_attempts=1)
    async def work() -> None: ...

    job = await work.enqueue()
    await claimed_by_a_dead_worker(app)
    clock.advance(31)
    assert await rescue(app) == [(job.id, State.FAILED)]
    job = await job.refresh()
    assert (job.state, job.attempt, job.crashes, job.error["type"]) == ("failed", 1, 1, "Quarantined")


async def test_a_job_that_should_be_cancelled_is_not_run_again_by_a_rescue(
    app: Rota, clock: FakeClock
) -> None:
    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    await claimed_by_a_dead_worker(app)
    await job.cancel("not needed")
    assert (await job.refresh()).state == "running"
    clock.advance(31)
    assert await rescue(app) == [(job.id, State.CANCELLED)]
    assert (await job.refresh()).state == "cancelled"


async def test_more_jobs_than_one_batch_are_rescued_in_one_pass(
    app: Rota, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "RESCUE_BATCH", 3)

    @app.task
    async def work() -> None: ...

    await work.enqueue_many({} for _ in range(10))
    await claimed_by_a_dead_worker(app)
    clock.advance(31)
    assert len(await rescue(app)) == 10


@given(
    took_s=st.floats(0, 1e6),
    sweep_s=st.floats(0.1, 60),
    workers=st.integers(1, 1000),
    jitter=st.floats(0, 1),
)
def test_rescue_never_rests_longer_than_two_sweeps(
    took_s: float, sweep_s: float, workers: int, jitter: float
) -> None:
    rest_s = maintenance.rest_s(took_s, sweep_s, workers)
    assert sweep_s <= rest_s
    assert maintenance.spread(rest_s, jitter) <= 2 * sweep_s * 1.0001


async def test_the_outcome_of_a_lost_lease_is_rejected(app: Rota, clock: FakeClock) -> None:
    began, free = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> str:
        began.set()
        await free.wait()
        return "too late"

    job = await work.enqueue()
    async with app.running(concurrency=1, lease_s=30, **STILL) as worker:
        await began.wait()
        clock.advance(31)
        store = await app.stores.get()
        assert await store.reclaim("rescuer", 600, 10, clock.now())
        free.set()
    assert (worker.rejected, worker.finished) == (1, 0)
    job = await job.refresh()
    assert (job.state, job.output) == ("running", None)


# --- prune -------------------------------------------------------------------------------------------


async def test_final_jobs_are_kept_as_long_as_their_state_says(clock: FakeClock) -> None:
    app = Rota(
        "sqlite://:memory:",
        clock=clock,
        retention_succeeded_days=1,
        retention_failed_days=3,
        retention_cancelled_days=2,
    )

    @app.task(max_attempts=1)
    async def work(fine: bool) -> None:
        if not fine:
            raise ValueError("no")

    await work.enqueue(fine=True)
    await work.enqueue(fine=False)
    await drain(app)
    await (await work.enqueue(fine=True)).cancel()
    waiting = await work.options(delay=100 * 86400).enqueue(fine=True)
    store = await app.stores.get()
    left = []
    for _ in range(4):
        assert await maintenance.prune(store, clock, app.settings)
        stats = await app.stats()
        left.append((stats["succeeded"], stats["failed"], stats["cancelled"]))
        clock.advance(86400 + 1)
    assert left == [(1, 1, 1), (0, 1, 1), (0, 1, 0), (0, 0, 0)]
    assert (await waiting.refresh()).state == "queued"
    await app.close()


async def test_more_jobs_than_one_batch_are_pruned_batch_by_batch(
    app: Rota, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PRUNE_BATCH", 3)

    @app.task
    async def work() -> None: ...

    await work.enqueue_many({} for _ in range(10))
    await drain(app)
    clock.advance(8 * 86400)
    left = []
    while not await maintenance.prune(await app.stores.get(), clock, app.settings):
        left.append((await app.stats())["succeeded"])
    assert left == [7, 4, 1]
    assert (await app.stats())["succeeded"] == 0


async def test_documents_of_workers_lost_long_ago_are_pruned(app: Rota, clock: FakeClock) -> None:
    store = await app.stores.get()
    await store.put_document("worker", "old", '{"id": "old", "state": "running"}', None, clock.now())
    clock.advance(25 * 3600)
    await store.put_document("worker", "new", '{"id": "new", "state": "running"}', None, clock.now())
    await maintenance.prune(store, clock, app.settings)
    assert [document.key for document in await store.documents("worker")] == ["new"]


# --- unserved tasks -----------------------------------------------------------------------------------


async def test_a_job_of_an_unserved_task_is_not_claimed_and_a_warning_is_logged(
    app: Rota, caplog: pytest.LogCaptureFixture, until: Any
) -> None:
    @app.task
    async def known() -> None: ...

    strange = await app.enqueue("strange", {"n": 1})
    later = await app.enqueue("later", delay=60)
    with caplog.at_level(logging.WARNING, "rota.worker"):
        async with app.running(heartbeat_thread=False):
            await (await known.enqueue()).result(timeout=10)
            await until(lambda: "no running worker has task 'strange'" in caplog.text)
    strange = await strange.refresh()
    assert (strange.state, strange.attempt, strange.error) == ("queued", 0, None)
    assert "later" not in caplog.text
    store = await app.stores.get()
    assert await unserved(store, app.clock, 30) == {"strange": 1}
    assert (await later.refresh()).state == "queued"


async def test_a_task_of_a_running_worker_is_not_unserved(app: Rota, clock: FakeClock) -> None:
    store = await app.stores.get()
    await app.enqueue("strange")
    await store.put_document("worker", "other", '{"id": "other", "tasks": ["strange"]}', None, clock.now())
    assert await unserved(store, clock, 30) == {}
    clock.advance(120)
    assert await unserved(store, clock, 30) == {"strange": 1}


async def test_jobs_of_an_unserved_task_run_once_a_worker_has_it(app: Rota) -> None:
    job = await app.enqueue("strange", {"n": 1})
    app.task(name="known")(lambda: None)
    assert await drain(app) == 0

    @app.task
    async def strange(n: int) -> int:
        return n + 1

    assert await drain(app) == 1
    assert (await job.refresh()).output == 2
