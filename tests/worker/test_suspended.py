"""A worker that slept: it gives up what it held before it does anything else."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rota import Context, Rota, State
from rota.model import TurnResult
from rota.runtime import clock as clock_module
from rota.store.sqlite import machine_clock
from rota.worker import slots as slots_module
from rota.worker import turns as turns_module
from service_fixtures import Until

HOUR_S = 3600.0


class Elapsed:
    """A monotonic clock that a test can move on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return clock_module.monotonic() + self.ahead


@pytest.fixture
def elapsed(monkeypatch: pytest.MonkeyPatch) -> Elapsed:
    elapsed = Elapsed()
    for module in (slots_module, turns_module):
        monkeypatch.setattr(module, "monotonic", elapsed)
    return elapsed


async def test_after_a_suspension_its_jobs_are_given_up_with_the_next_turn(
    app: Rota, elapsed: Elapsed, until: Until
) -> None:
    """Also without the heartbeat thread; what the jobs end with is not stored."""
    contexts: list[Context] = []

    @app.task
    async def hold(ctx: Context) -> None:
        contexts.append(ctx)
        await asyncio.sleep(HOUR_S)

    job = await hold.enqueue()
    options = {"heartbeat_thread": False, "upkeep": False, "poll_s": 0.05}
    async with app.running(**options) as worker:
        await until(lambda: contexts)
        elapsed.ahead = HOUR_S
        await until(lambda: worker.rejected == 1)
        assert contexts[0].cancelled
        found = await job.refresh()
        assert (found.state, found.lease_token) == (State.RUNNING, 1)  # to be rescued, here or elsewhere


async def test_jobs_of_a_late_answer_are_released_and_cost_nothing(
    app: Rota, elapsed: Elapsed, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its leases may have expired, so nothing is started; if they have not, others need not wait for that."""
    ran: list[int] = []

    @app.task
    async def work(ctx: Context) -> None:
        ran.append(ctx.job.lease_token)

    job = await work.enqueue()
    store = await app.stores.get()
    turn = store.turn

    async def slow_turn(*args: Any) -> TurnResult:
        result = await turn(*args)
        if result.jobs and not elapsed.ahead:
            elapsed.ahead = HOUR_S
        return result

    monkeypatch.setattr(store, "turn", slow_turn)
    async with app.running(heartbeat_thread=False, upkeep=False, poll_s=0.05) as worker:
        await until(lambda: ran)
        assert worker.rejected == 0
    found = await job.refresh()
    assert (ran, found.state, found.attempt, found.crashes) == ([2], State.SUCCEEDED, 1, 0)


async def test_when_the_stores_time_ran_ahead_every_lease_is_renewed_at_once(
    monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    """As for a virtual machine whose clocks stood still: here nothing seems to have happened."""
    ahead_us = 0

    def machine_micros() -> int:
        return read() + ahead_us

    read = machine_clock.machine_micros
    monkeypatch.setattr(machine_clock, "machine_micros", machine_micros)
    app = Rota("sqlite://:memory:")
    free = asyncio.Event()

    @app.task
    async def hold() -> None:
        await free.wait()

    job = await hold.enqueue()

    async def lease_until_the_new_time() -> bool:
        found = await job.refresh()
        return found.lease_until is not None and found.lease_until > first + timedelta(seconds=HOUR_S / 2)

    async with app.running(lease_s=HOUR_S, poll_s=0.05, upkeep=False):
        await until(lambda: is_running(job))
        lease_until = (await job.refresh()).lease_until
        assert lease_until is not None
        first = lease_until
        ahead_us = int(HOUR_S * 900_000)  # nine tenths of the lease
        await until(lease_until_the_new_time)
        free.set()
        await job.result(timeout=30)
    await app.close()


async def is_running(job: object) -> bool:
    found = await job.refresh()  # type: ignore[attr-defined]
    return found.state is State.RUNNING
