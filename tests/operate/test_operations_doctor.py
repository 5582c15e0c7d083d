"""Doctor's findings about work that waits for a person, on each store."""

from __future__ import annotations

from typing import Any

import pytest

from rota import Rota
from rota.model import (
    ClaimRequest,
    JobFilter,
    Limit,
    LimitRule,
    PageRequest,
    Schedule,
    Settlement,
    State,
    TenantRule,
)
from rota.operate import Operations
from rota.store.calls import claim, settle
from rota.testing import FakeClock, drain

pytestmark = pytest.mark.filterwarnings("ignore:no worker, schedule or recent job")


async def findings(operations: Operations, check: str) -> list[str]:
    report = await operations.system.doctor()
    return [finding.text for finding in report.findings if finding.check == check]


@pytest.mark.parametrize(
    ("paused", "what"),
    [({}, "everything"), ({"queue": "mail"}, "queue mail"), ({"task": "send"}, "task send"),
     ({"tenant": "acme"}, "tenant acme")],
)  # fmt: skip
async def test_doctor_names_pauses_that_hold_due_jobs_back(
    operations: Operations, app: Rota, paused: dict[str, str], what: str
) -> None:
    await app.pause(**paused, reason="provider down")  # type: ignore[arg-type]
    assert await findings(operations, "pauses") == []
    for to in "ab":
        await app.enqueue("send", {"to": to}, tenant="acme")
    (text,) = await findings(operations, "pauses")
    assert text.startswith(f"{what} is paused by ") and text.endswith(": provider down, and 2 due jobs wait")


async def test_doctor_counts_failed_jobs_by_task(operations: Operations, app: Rota) -> None:
    @app.task(max_attempts=1)
    async def breaks() -> None:
        raise RuntimeError("no")

    assert await findings(operations, "failures") == []
    jobs = await breaks.enqueue_many([{}, {}])
    await drain(app)
    assert await findings(operations, "failures") == ["2 failed jobs wait for a decision: breaks (2)"]
    for job in jobs:
        await job.retry()
    assert await findings(operations, "failures") == []


async def test_doctor_names_schedules_whose_every_run_fails(operations: Operations, app: Rota) -> None:
    healthy = False

    @app.every("1h", max_attempts=1)
    async def flaky() -> None:
        if not healthy:
            raise RuntimeError("no")

    @app.every("1h")
    async def sound() -> None: ...

    await drain(app, advance="1h")
    assert await findings(operations, "schedules") == ["2 checked"]  # one failed run proves nothing
    await drain(app, advance="2h")
    (text,) = await findings(operations, "schedules")
    assert text == "schedule default/flaky: its last 3 runs failed, every one"
    healthy = True
    await drain(app, advance="1h")
    assert await findings(operations, "schedules") == ["2 checked"]


async def test_doctor_names_a_row_written_by_hand_that_never_made_sense(
    operations: Operations, app: Rota
) -> None:
    now = app.clock.now()
    row = Schedule(id="x", name="typo", task="send", cron="0 25 * * *", created_at=now, updated_at=now)
    await (await app.stores.get()).put_schedules([row], now)
    async with app.worker() as worker:
        assert worker.scheduler is not None
        await worker.scheduler.tick()
    (text,) = await findings(operations, "schedules")
    assert text.startswith("schedule default/typo is disabled: ")


async def held_by(app: Rota, **options: Any) -> str:
    """The id of a job that worker w1 has begun."""
    job = await app.enqueue("send", {"to": "x"}, **options)
    wanted = ClaimRequest(worker="w1", limit=1, lease_s=60)
    (claimed,) = await claim(await app.stores.get(), wanted, app.clock.now())
    assert claimed.id == job.id
    return job.id


async def test_doctor_names_a_limit_that_stays_full_while_jobs_wait(
    operations: Operations, app: Rota
) -> None:
    holder = await held_by(app, concurrency_key="account:42")
    store, clock = await app.stores.get(), app.clock
    await store.put_rules([LimitRule(name="key:account:*", chosen=Limit(running=1))], clock.now())
    assert isinstance(clock, FakeClock)
    clock.advance(700)
    assert await findings(operations, "limits") == []  # none waits
    await app.enqueue("send", {"to": "x"}, concurrency_key="account:42")
    (text,) = await findings(operations, "limits")
    assert text.startswith("limit key:account:42 is full (1 of 1), jobs wait for it, and none has begun")
    assert f"job {holder} on worker w1 has held it longest" in text


async def test_doctor_names_a_job_that_takes_more_units_than_its_limit_can_give(
    operations: Operations, app: Rota
) -> None:
    job = await app.enqueue("send", {"to": "x"}, concurrency_key="openai", units=500)
    await app.enqueue("send", {"to": "x"}, units=900)  # under no rate
    rule = LimitRule(name="key:openai", chosen=Limit(rate="600/m", burst=100))
    await (await app.stores.get()).put_rules([rule], app.clock.now())
    assert await findings(operations, "limits") == [
        f"job {job.id} can never begin: it takes 500 units, and the burst of limit key:openai is 100"
    ]


async def test_doctor_names_a_tenant_that_has_spent_its_budget_while_its_jobs_wait(
    operations: Operations, app: Rota
) -> None:
    store, now = await app.stores.get(), app.clock.now()
    job_id = await held_by(app, tenant="acme")
    await store.put_rules([TenantRule(name="acme", budget=5.0, period="day")], now)
    (job,) = (await store.jobs(JobFilter(ids=(job_id,)), PageRequest())).items
    done = Settlement(
        job.id,
        job.lease_token,
        "w1",
        job.queue,
        job.task,
        job.tenant,
        None,
        State.SUCCEEDED,
        1,
        cost_cents=7.0,
    )
    assert not await settle(store, [done], now)
    assert await findings(operations, "budgets") == []
    await app.enqueue("send", {"to": "x"}, tenant="acme")
    (text,) = await findings(operations, "budgets")
    assert text.startswith(
        "tenant acme has spent 0.07 of 0.05 per day, and 1 job waits until 2030-01-02 00:00"
    )


async def test_doctor_names_a_budget_that_has_too_little_left_for_the_next_job(
    app: Rota, operations: Operations
) -> None:
    store, now = await app.stores.get(), app.clock.now()
    await store.put_rules([TenantRule(name="acme", budget=5.0, period="day")], now)
    await app.enqueue("send", {"to": "x"}, tenant="acme", price=5)
    assert await findings(operations, "budgets") == []
    await app.enqueue("send", {"to": "x"}, tenant="acme", price=6, priority=1)
    (text,) = await findings(operations, "budgets")
    assert text.startswith(
        "tenant acme has spent 0.00 of 0.05 per day, too little is left for the next job, whose price is "
        "0.06, and 2 jobs wait until 2030-01-02 00:00"
    )
