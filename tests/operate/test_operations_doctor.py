"""Doctor's findings about work that waits for a person, on each store."""

from __future__ import annotations

import pytest

from rota import Rota
from rota.model import Schedule
from rota.operate import Operations
from rota.testing import drain

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
