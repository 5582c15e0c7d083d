"""Per-tenant recurring work: ``app.register`` and ``app.unregister`` while workers run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ticks import Ticks, ended, jobs_of

from rota import Rota
from rota.errors import AlreadyRegistered, InvalidSchedule, NotFound, RotaError
from rota.model import State
from rota.testing import FakeClock
from rota.worker.worker import Worker

STILL: dict[str, Any] = {"heartbeat_thread": False, "upkeep": False, "poll_s": 0.005}


@pytest.fixture
async def two(tmp_path: Path, clock: FakeClock) -> AsyncIterator[tuple[Rota, Rota]]:
    """Two programs on one store."""
    apps = [Rota(f"sqlite:///{tmp_path / 'rota.db'}", clock=clock) for _ in range(2)]
    yield apps[0], apps[1]
    for app in apps:
        await app.close()


async def nothing() -> None: ...


async def tick(app: Rota, worker: Worker, seconds: float) -> None:
    assert worker.scheduler is not None
    await Ticks(app, worker.scheduler).after(seconds)


async def test_registering_before_the_app_runs_is_a_clear_error(app: Rota) -> None:
    with pytest.raises(RotaError, match=r"register\('acme', 'rollup'\) before the app runs: start it first"):
        await app.register("acme", "rollup", nothing, every=60)
    assert (await app.schedules.list()).items == []


async def test_registering_stores_the_schedule_and_never_the_function(app: Rota) -> None:
    """R2, R4."""
    async with app.worker():
        start_at = app.clock.now() + timedelta(minutes=1)
        stored = await app.register("acme", "rollup", nothing, start_at=start_at, every="5m")
        assert (stored.tenant, stored.name, stored.source) == ("acme", "rollup", "registry")
        assert (stored.every, stored.start_at, stored.next_run_at) == (300, start_at, start_at)
        assert "nothing" not in str(stored)


async def test_a_registered_function_runs_for_its_tenant_again_and_again(app: Rota) -> None:
    ran: list[datetime] = []

    async def rollup() -> None:
        ran.append(app.clock.now())

    async with app.running(**STILL) as worker:
        await app.register("acme", "rollup", rollup, every="5m")
        for times in range(1, 4):
            await tick(app, worker, 300)
            await ended(app, times)
    jobs = await jobs_of(app)
    assert len(ran) == 3
    assert [(job.tenant, job.state) for job in jobs] == [("acme", State.SUCCEEDED)] * 3


async def test_the_same_id_twice_in_one_process_is_refused(app: Rota) -> None:
    """R2: an id already registered in this process for this tenant is an error."""
    async with app.worker():
        before = await app.register("acme", "rollup", nothing, every=60)
        with pytest.raises(AlreadyRegistered, match="tenant 'acme' already has 'rollup' registered"):
            await app.register("acme", "rollup", nothing, every=90)
        assert await app.schedules.get("rollup", tenant="acme") == before
        await app.register("globex", "rollup", nothing, every=60)


async def test_two_tenants_never_share_a_task(app: Rota) -> None:
    async with app.worker():
        one = await app.register("acme", "eu/nightly", nothing, every=60)
        two = await app.register("acme/eu", "nightly", nothing, every=60)
    assert (one.task, two.task) == ("acme/eu/nightly", "acme%2Feu/nightly")


async def test_registering_again_after_a_restart_attaches_and_updates_the_timing(
    app: Rota, clock: FakeClock
) -> None:
    """R2: if the store has the schedule, the function is attached and the timing updated."""
    async with app.worker():
        first = await app.register("acme", "rollup", nothing, every=60)
    clock.advance(3600)
    async with app.worker():
        again = await app.register("acme", "rollup", nothing, every="2m")
    assert (again.id, again.every) == (first.id, 120)
    assert again.next_run_at == clock.now() + timedelta(minutes=2)


async def test_registering_again_with_the_same_timing_changes_nothing(app: Rota, clock: FakeClock) -> None:
    async with app.worker():
        first = await app.register("acme", "rollup", nothing, every=60)
    clock.advance(30)
    async with app.worker():
        assert await app.register("acme", "rollup", nothing, every=60) == first


async def test_a_name_that_another_schedule_has_is_not_taken_over(app: Rota) -> None:
    before = await app.schedules.create(name="rollup", tenant="acme", task="t", cron="0 3 * * *")
    async with app.worker():
        with pytest.raises(AlreadyRegistered, match="that was created another way: choose another id"):
            await app.register("acme", "rollup", nothing, every=60)
        assert await app.schedules.get("rollup", tenant="acme") == before
        assert "acme/rollup" not in app.registry.tasks


@pytest.mark.parametrize("every", [0, -5, "soon", None])
async def test_a_bad_interval_registers_nothing(app: Rota, every: Any) -> None:
    async with app.worker():
        with pytest.raises(InvalidSchedule):
            await app.register("acme", "rollup", nothing, every=every)
        assert (await app.schedules.list()).items == []
        await app.register("acme", "rollup", nothing, every=60)


async def test_unregistering_removes_it_here_and_in_the_store(app: Rota, clock: FakeClock) -> None:
    """R3."""
    async with app.worker() as worker:
        await app.register("acme", "rollup", nothing, every=60)
        await app.unregister("acme", "rollup")
        assert (await app.schedules.list()).items == []
        await tick(app, worker, 3600)
        assert await jobs_of(app) == []
        await app.register("acme", "rollup", nothing, every=60)


async def test_unregistering_what_is_unknown_is_an_error(app: Rota) -> None:
    """R3."""
    async with app.worker():
        with pytest.raises(NotFound, match="tenant 'acme' has no 'rollup' registered in this process"):
            await app.unregister("acme", "rollup")


async def test_a_process_without_the_function_fires_and_leaves_the_job_to_one_that_has_it(
    two: tuple[Rota, Rota],
) -> None:
    """R4, R8: tenants are discovered from the store."""
    owner, stranger = two
    ran = asyncio.Event()

    async def rollup() -> None:
        ran.set()

    stranger.task(name="other")(nothing)
    async with owner.worker():
        await owner.register("acme", "rollup", rollup, every=60)
    async with stranger.running(**STILL) as worker:
        await tick(stranger, worker, 60)
        other = await stranger.enqueue("other")
        await other.result(timeout=10)
        (job,) = await jobs_of(stranger)
        assert (job.state, job.task) == (State.QUEUED, "acme/rollup")
    async with owner.running(**STILL):
        await owner.register("acme", "rollup", rollup, every=60)
        await asyncio.wait_for(ran.wait(), 10)


async def test_an_exception_is_recorded_and_the_schedule_advances(app: Rota) -> None:
    """R6: after an error the next time advances past now; a failing job never loops tightly."""
    tries: list[int] = []

    def rollup() -> None:
        tries.append(1)
        raise ValueError("no figures today")

    async with app.running(**STILL) as worker:
        await app.register("acme", "rollup", rollup, every=60)
        await tick(app, worker, 60)
        await ended(app, 1)
        await tick(app, worker, 3600 + 30)
        await ended(app, 2)
    assert len(tries) == 2
    (first, second) = (await app.schedules.runs("rollup", tenant="acme")).items
    assert (first.success, first.message) == (False, "no figures today")
    assert (second.success, second.state) == (False, State.FAILED)
    after = await app.schedules.get("rollup", tenant="acme")
    assert after.next_run_at is not None
    assert timedelta() < after.next_run_at - app.clock.now() <= timedelta(minutes=1)


async def test_two_runs_of_one_registration_never_overlap(app: Rota) -> None:
    async with app.worker() as worker:
        await app.register("acme", "rollup", nothing, every=60)
        for _ in range(5):
            await tick(app, worker, 60)
    assert len(await jobs_of(app)) == 1


async def test_a_new_registration_wakes_the_scheduler(until: Callable[..., Any]) -> None:
    """R2, R7: fires without waiting for the tick, which is an hour away."""
    app = Rota("sqlite://:memory:")
    ran = asyncio.Event()

    async def rollup() -> None:
        ran.set()

    async with app.running(tick_s=3600, poll_s=0.01):
        await until(lambda: app.is_idle)
        soon = app.clock.now() + timedelta(seconds=0.3)
        await app.register("acme", "rollup", rollup, start_at=soon, every=3600)
        await asyncio.wait_for(ran.wait(), 10)
    await app.close()


# --- life ------------------------------------------------------------------------------------------


async def test_a_new_schedule_wakes_the_scheduler(until: Callable[..., Any]) -> None:
    app = Rota("sqlite://:memory:")
    ran = asyncio.Event()

    @app.task
    async def work() -> None:
        ran.set()

    async with app.running(tick_s=3600, poll_s=0.01):
        await until(lambda: app.is_idle)
        await app.schedules.create(name="soon", task="work", at=app.clock.now() + timedelta(seconds=0.3))
        await asyncio.wait_for(ran.wait(), 10)
    await app.close()


@pytest.mark.parametrize("how", ["setting", "option"])
async def test_a_scheduler_that_is_switched_off_fires_nothing(how: str) -> None:
    app = Rota("sqlite://:memory:", **({"scheduler_enabled": False} if how == "setting" else {}))
    app.task(name="work")(nothing)
    options = {} if how == "setting" else {"scheduler": False}
    async with app.running(poll_s=0.01, tick_s=0.01, **options) as worker:
        await app.schedules.create(name="soon", task="work", at=app.clock.now() + timedelta(seconds=0.05))
        assert worker.scheduler is None
        await (await app.enqueue("work", delay=0.2)).result(timeout=10)
        assert await jobs_of(app) == []
    await app.close()


async def test_the_scheduler_stops_first_when_a_worker_drains(until: Callable[..., Any]) -> None:
    app = Rota("sqlite://:memory:")
    began, free = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow() -> None:
        began.set()
        await free.wait()

    await app.enqueue("slow")
    async with app.running(poll_s=0.01, tick_s=0.01) as worker:
        await began.wait()
        worker.drain()
        await app.schedules.create(name="soon", task="slow", at=app.clock.now() + timedelta(seconds=0.05))
        due = app.clock.now() + timedelta(seconds=0.3)
        await until(lambda: app.clock.now() > due)
        assert app.is_processing
        assert await jobs_of(app) == []
        free.set()
    await app.close()
