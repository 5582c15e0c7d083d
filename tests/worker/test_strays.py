"""Jobs of a claim whose answer was lost: the worker finds and releases them, and they cost no attempt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rota import Rota, State, StoreUnavailable
from rota.model import AuditFilter, ClaimRequest, PageRequest, TurnResult
from rota.runtime import clock as clock_module
from rota.store.calls import claim
from rota.testing import FakeClock
from rota.worker import strays as strays_module
from rota.worker.maintenance import rescue
from rota.worker.strays import MARGIN_S, Strays
from service_fixtures import Until

STILL = {"heartbeat_thread": False, "upkeep": False, "poll_s": 0.05}


class Elapsed:
    """A monotonic clock that a test can move on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return clock_module.monotonic() + self.ahead


@pytest.fixture
def elapsed(monkeypatch: pytest.MonkeyPatch) -> Elapsed:
    elapsed = Elapsed()
    monkeypatch.setattr(strays_module, "monotonic", elapsed)
    return elapsed


async def test_a_job_of_a_lost_claim_runs_at_once_and_costs_no_attempt(
    app: Rota, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """Its lease never runs out, for the clock does not move; and it may be run only once."""
    store = await app.stores.get()
    turn, lost = store.turn, []

    async def lose_the_first_claim(settlements: Any, request: Any, now: Any) -> TurnResult:
        result = await turn(settlements, request, now)
        if result.jobs and not lost:
            lost.extend(result.jobs)
            raise StoreUnavailable("the answer was lost")
        return result

    monkeypatch.setattr(store, "turn", lose_the_first_claim)

    @app.task(max_attempts=1)
    async def work() -> None: ...

    job = await work.enqueue()
    async with app.running(**STILL):
        await until(lambda: succeeded(job))
    job = await job.refresh()
    assert len(lost) == 1
    assert (job.attempt, job.crashes, job.lease_token) == (1, 0, 2)


async def succeeded(job: Any) -> bool:
    return (await job.refresh()).state is State.SUCCEEDED


async def test_a_claim_that_is_carried_out_late_is_found_as_well(
    app: Rota, monkeypatch: pytest.MonkeyPatch, elapsed: Elapsed, until: Until
) -> None:
    store = await app.stores.get()
    turn, late = store.turn, []

    async def hold_back_the_first_claim(settlements: Any, request: Any, now: Any) -> TurnResult:
        if request is not None and not late:
            late.append((settlements, request, now))
            raise StoreUnavailable("no answer yet")
        if len(late) == 1:
            return TurnResult()  # nothing is claimed before the late one comes
        return await turn(settlements, request, now)

    monkeypatch.setattr(store, "turn", hold_back_the_first_claim)
    looks = counted(store, monkeypatch)

    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    async with app.running(**STILL):
        await until(lambda: len(looks) == 1)  # at once: it has not come yet
        assert (await turn(*late[0])).jobs
        late.append(None)
        elapsed.ahead = 30 + MARGIN_S + 1  # when it could no longer come, the worker looks once more
        await until(lambda: succeeded(job))
        assert len(looks) == 2
    job = await job.refresh()
    assert (job.attempt, job.crashes, job.lease_token) == (1, 0, 2)


def counted(store: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The questions about the jobs of a worker."""
    jobs, asked = store.jobs, []

    async def count(where: Any, page: Any) -> Any:
        if where.worker is not None:
            asked.append(where)
        return await jobs(where, page)

    monkeypatch.setattr(store, "jobs", count)
    return asked


async def test_jobs_that_the_worker_knows_are_never_released(
    app: Rota, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """Running, or ended with an outcome that is not stored yet."""
    store = await app.stores.get()
    turn, failed, free = store.turn, [], asyncio.Event()

    async def fail_the_first_settlement(settlements: Any, request: Any, now: Any) -> TurnResult:
        if settlements and request is not None and not failed:
            failed.extend(settlements)
            raise StoreUnavailable("nothing was stored, and the worker does not know")
        return await turn(settlements, request, now)

    monkeypatch.setattr(store, "turn", fail_the_first_settlement)
    looks = counted(store, monkeypatch)

    @app.task
    async def work(n: int) -> None:
        if n:
            await free.wait()

    jobs = [await work.enqueue(n) for n in range(4)]
    async with app.running(concurrency=8, **STILL):
        await until(lambda: looks)
        assert [settlement.id for settlement in failed] == [jobs[0].id]
        free.set()
        for job in jobs:
            await until(lambda job=job: succeeded(job))
    assert [(await job.refresh()).lease_token for job in jobs] == [1, 1, 1, 1]


async def test_while_a_turn_is_under_way_nothing_is_released(app: Rota) -> None:
    """It may be bringing the very jobs that the worker does not know yet."""

    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    store = await app.stores.get()
    async with app.worker(**STILL) as worker:
        environment = worker.turns._environment
        strays = Strays(environment)
        strays.suspect(0.0)
        want = ClaimRequest(worker=environment.worker, limit=1, lease_s=30)
        assert await claim(store, want, app.clock.store_now)
        await strays.release(lambda: None)
        assert strays.is_due and (await job.refresh()).state is State.RUNNING
        await strays.release(set)
        assert not strays.is_due and (await job.refresh()).state is State.QUEUED


async def test_a_job_that_this_worker_is_rescuing_is_no_stray(app: Rota, clock: FakeClock) -> None:
    """It may be run only once: were it released, it would be repeated."""

    @app.task(max_attempts=1)
    async def work() -> None: ...

    job = await work.enqueue()
    store = await app.stores.get()
    assert await claim(store, ClaimRequest(worker="dead", limit=1, lease_s=30), clock.store_now)
    clock.advance(31)
    async with app.worker(**STILL) as worker:
        environment = worker.turns._environment
        strays = Strays(environment)

        class LooksInBetween:
            """The store, which is asked for strays between the reclaim and its decision."""

            async def reclaim(self, *asked: Any) -> Any:
                jobs = await store.reclaim(*asked)
                strays.suspect(0.0)
                await strays.release(set)
                return jobs

            turn = store.turn

        seen: list[State] = []
        await rescue(LooksInBetween(), clock, environment.worker, 30, lambda job, state: seen.append(state))
    assert seen == [State.FAILED]
    job = await job.refresh()
    assert (job.error["type"], job.crashes) == ("Quarantined", 1)
    assert "worker dead" in job.error["message"]
    (line,) = (await store.audit(AuditFilter(action="job.quarantined"), PageRequest())).items
    assert line.actor == f"worker:{environment.worker}"
