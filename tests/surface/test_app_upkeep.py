"""Rescue and prune on each store, as the workers of an app do them."""

from __future__ import annotations

from typing import Any

from rota import Rota
from rota.model import ClaimRequest
from rota.store.calls import claim
from rota.testing import FakeClock, drain
from rota.worker import maintenance


async def claim_all(app: Rota, lease_s: float = 30.0) -> None:
    """As a worker would that dies right after."""
    want = ClaimRequest(worker="dead", limit=100, lease_s=lease_s, tasks=app.registry.names)
    assert await claim(await app.stores.get(), want, app.clock.now())


async def test_jobs_of_a_silent_worker_are_rescued_as_their_attempts_allow(
    still_app: Rota, clock: FakeClock
) -> None:
    @still_app.task
    async def work(n: int) -> int:
        return n

    again = await work.enqueue(1)
    last = await work.options(max_attempts=1).enqueue(2)
    unwanted = await work.enqueue(3)
    await claim_all(still_app)
    await unwanted.cancel("not needed")
    clock.advance(31)
    store = await still_app.stores.get()
    assert await maintenance.rescue(store, clock, "rescuer", 30, lambda job, state: None) == 3
    states = {job.payload["n"]: (job.state, job.attempt) for job in (await still_app.jobs()).items}
    assert states == {1: ("queued", 0), 2: ("failed", 1), 3: ("cancelled", 1)}
    assert (await last.refresh()).error["type"] == "Quarantined"
    await drain(still_app)
    again = await again.refresh()
    assert (again.state, again.attempt, again.crashes, again.output) == ("succeeded", 1, 1, 1)


async def test_a_running_worker_rescues_by_itself(app: Rota, until: Any) -> None:
    @app.task
    async def work() -> str:
        return "rescued"

    job = await work.enqueue()
    await claim_all(app, lease_s=0.2)
    async with app.running(sweep_s=0.05, lease_s=5):
        assert await job.result(timeout=20) == "rescued"
    job = await job.refresh()
    assert (job.attempt, job.crashes) == (1, 1)


async def test_final_jobs_are_forgotten_when_their_time_is_over(
    make_app: Any, app_url: str, clock: FakeClock
) -> None:
    app = make_app(app_url, clock=clock, retention_succeeded_days=1, retention_failed_days=3)

    @app.task(max_attempts=1)
    async def work(fine: bool) -> None:
        if not fine:
            raise ValueError("no")

    await work.enqueue(True)
    await work.enqueue(False)
    await drain(app)
    store = await app.stores.get()
    seen = []
    for days in (0.5, 1, 2):
        clock.advance(days * 86400)
        await maintenance.prune(store, clock, app.settings)
        seen.append(sorted(job.state for job in (await app.jobs()).items))
    assert seen == [["failed", "succeeded"], ["failed"], []]


async def test_migrate_can_be_called_again_before_the_store_is_used(make_app: Any, app_url: str) -> None:
    app = make_app(app_url)
    await app.migrate()
    assert list(await app.migrate()) == []
    assert (await app.enqueue("work", {})).state == "queued"
