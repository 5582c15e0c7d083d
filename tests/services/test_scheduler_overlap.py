"""Overlap: what a fire does when the previous run of its schedule has not ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest
from ticks import Ticks, fires_of, jobs_of, stored

from rota import Rota
from rota.model import State
from rota.testing import drain

HOUR = 3600.0
STILL: dict[str, Any] = {"heartbeat_thread": False, "upkeep": False, "poll_s": 0.005, "shutdown_timeout": 0}


@pytest.fixture
async def ticks(app: Rota) -> Ticks:
    return await Ticks.of(app)


async def nothing() -> None: ...


async def test_overlap_while_the_previous_run_is_still_queued(app: Rota, ticks: Ticks) -> None:
    for policy in ("allow", "skip", "queue", "cancel_previous"):
        await app.schedules.create(name=policy, task="t", every="1h", overlap=policy)
    for _ in range(3):
        await ticks.after(HOUR)
    assert len(await jobs_of(app, "allow", State.QUEUED)) == 3
    assert [at for at, _ in await fires_of(app, "skip")] == ["01-01 13:00"]
    assert [at for at, _ in await fires_of(app, "queue")] == ["01-01 13:00"]
    assert len((await stored(app, "queue")).held) == 2
    states = [job.state for job in await jobs_of(app, "cancel_previous")]
    assert states == [State.CANCELLED, State.CANCELLED, State.QUEUED]


async def test_a_run_of_one_tenant_never_holds_back_a_schedule_of_another(app: Rota, ticks: Ticks) -> None:
    for tenant, name in (("acme", "eu/nightly"), ("acme/eu", "nightly")):
        await app.schedules.create(name=name, tenant=tenant, task="t", every="1h", overlap="skip")
    await ticks.after(HOUR)
    first = await jobs_of(app)
    (theirs,) = [job for job in first if job.tenant == "acme/eu"]
    await app.cancel(theirs.id)
    await ticks.after(HOUR)
    assert [job.tenant for job in await jobs_of(app) if job not in first and job.id != theirs.id] == [
        "acme/eu"
    ]


async def test_a_skipped_fire_is_logged_and_the_next_one_runs_when_the_work_is_done(
    app: Rota, ticks: Ticks, caplog: pytest.LogCaptureFixture
) -> None:
    app.task(name="t")(nothing)
    await app.schedules.create(name="skip", task="t", every="1h", overlap="skip")
    await ticks.after(HOUR)
    await ticks.after(HOUR)
    assert "1 fires skipped, the previous run has not finished (overlap=skip)" in caplog.text
    await drain(app)
    await ticks.after(HOUR)
    assert [at for at, _ in await fires_of(app, "skip")] == ["01-01 13:00", "01-01 15:00"]


async def test_held_fires_are_released_one_by_one_as_the_work_ends(app: Rota, ticks: Ticks) -> None:
    app.task(name="t")(nothing)
    await app.schedules.create(name="queue", task="t", every="1h", overlap="queue")
    for _ in range(4):
        await ticks.after(HOUR)
    for done in range(1, 5):
        assert len(await jobs_of(app, "queue")) == done
        await ticks.after(2)
        assert len(await jobs_of(app, "queue")) == done, "released while the previous run was still queued"
        await drain(app)
        await ticks.after(2)
    assert [at for at, _ in await fires_of(app, "queue")] == [
        "01-01 13:00", "01-01 14:00", "01-01 15:00", "01-01 16:00"]  # fmt: skip
    assert (await stored(app, "queue")).held == ()


async def test_a_running_job_is_asked_to_stop_by_the_next_run(app: Rota, ticks: Ticks) -> None:
    began = asyncio.Event()

    @app.task
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    await app.schedules.create(name="slow", task="slow", every="1h", overlap="cancel_previous")
    await ticks.after(HOUR)
    async with app.running(**STILL):
        await began.wait()
        await ticks.after(HOUR)
        first, second = await jobs_of(app, "slow")
        assert first.cancel_requested
        assert not second.cancel_requested


async def test_a_late_scheduler_does_not_cancel_the_run_that_another_began(app: Rota, ticks: Ticks) -> None:
    await app.schedules.create(name="s", task="t", every="1h", overlap="cancel_previous")
    await ticks.after(HOUR)
    ticks.clock.advance(HOUR)
    others = [await Ticks.of(app) for _ in range(4)]
    await asyncio.gather(*[other.scheduler.tick() for other in others])
    assert [job.state for job in await jobs_of(app, "s")] == [State.CANCELLED, State.QUEUED]


async def test_the_overlap_of_one_tenant_is_not_that_of_another(app: Rota, ticks: Ticks) -> None:
    for tenant in ("acme", "globex"):
        await app.schedules.create(name="s", tenant=tenant, task="t", every="1h", overlap="skip")
    await ticks.after(HOUR)
    assert Counter(job.tenant for job in await jobs_of(app)) == {"acme": 1, "globex": 1}
