"""Jobs of a task that no running worker has: they wait, and fail with a reason after a while."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from rota import ConfigError, Event, Rota
from rota.core.jobs.absence import MOST_GAP_S
from rota.model import AuditFilter, PageRequest
from rota.runtime.events import Hooks
from rota.testing import FakeClock
from rota.worker.environment import WorkerEnvironment
from rota.worker.options import WorkerOptions
from rota.worker.unknown_tasks import KIND, UnknownTasks
from rota.worker.worker import Worker

HOUR = 3600.0


class Check:
    """The check of a worker that has the task ``send_receipt``, stepped by hand."""

    def __init__(self, app: Rota, clock: FakeClock, environment: WorkerEnvironment) -> None:
        self._clock = clock
        self.unknown = UnknownTasks(environment)

    async def for_hours(self, hours: float, every_s: float = 600.0) -> None:
        for _ in range(round(hours * HOUR / every_s)):
            await self.unknown.check()
            self._clock.advance(every_s)
        await self.unknown.check()


async def checking(app: Rota, clock: FakeClock, **options: Any) -> Check:
    if "send_receipt" not in app.registry.names:
        app.task(name="send_receipt")(lambda: None)
    store = await app.stores.get()
    worker = Worker(
        store,
        app.registry,
        clock,
        app.hooks,
        app.settings,
        WorkerOptions(**options),
        "w1",
        app.runtime.records,
        app.published,
    )
    return Check(app, clock, worker._environment)


@pytest.fixture
async def check(app: Rota, clock: FakeClock) -> AsyncIterator[Check]:
    yield await checking(app, clock)


async def test_a_job_of_an_unknown_task_fails_after_hours_with_a_structured_reason(
    app: Rota, clock: FakeClock, check: Check, caplog: pytest.LogCaptureFixture
) -> None:
    since = clock.now()
    job = await app.enqueue("send_recipt", {"n": 1})
    await check.for_hours(5.5)
    assert (await job.refresh()).state == "queued"
    await check.for_hours(1)
    job = await job.refresh()
    assert (job.state, job.attempt, job.error["type"]) == ("failed", 0, "UnknownTask")
    assert job.error["message"] == (
        f"no running worker has had task 'send_recipt' since {since:%Y-%m-%d %H:%M} UTC (6 h): did you mean "
        "'send_receipt'? start a worker that has it, then retry the job"
    )
    assert job.error["details"]["near"] == ["send_receipt"]
    store = await app.stores.get()
    assert not await store.attempts(job.id)
    (entry,) = (await store.audit(AuditFilter(action="job.unknown_task"), PageRequest())).items
    assert (entry.object, entry.actor) == (f"job:{job.id}", "worker:w1")
    (record,) = [one for one in caplog.records if "failed 1 jobs of task" in one.getMessage()]
    assert record.levelno == logging.ERROR
    assert not await store.documents(KIND)  # its time is over


async def test_time_without_any_worker_does_not_count(app: Rota, clock: FakeClock, check: Check) -> None:
    job = await app.enqueue("strange")
    await check.for_hours(1)
    clock.advance(48 * HOUR)  # every worker was down: no one checked
    await check.for_hours(4)
    assert (await job.refresh()).state == "queued"
    await check.for_hours(1.5)
    assert (await job.refresh()).state == "failed"


async def test_a_task_that_another_worker_has_is_known_and_its_time_starts_again(
    app: Rota, clock: FakeClock, check: Check
) -> None:
    job = await app.enqueue("strange")
    await check.for_hours(5)
    store = await app.stores.get()
    await store.put_document("worker", "other", '{"tasks": ["strange"]}', None, clock.now())
    await check.unknown.check()
    assert not await store.documents(KIND)
    await check.for_hours(5)
    assert (await job.refresh()).state == "queued"


async def test_the_time_of_a_task_starts_again_also_while_more_jobs_wait_than_are_read(
    app: Rota, clock: FakeClock, check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.worker.unknown_tasks.SAMPLE", 3)
    jobs = [await app.enqueue("strange", {"n": n}) for n in range(4)]
    await check.for_hours(5.5)
    store = await app.stores.get()
    await store.put_document("worker", "other", '{"tasks": ["strange"]}', None, clock.now())
    await check.unknown.check()
    clock.advance(0.5 * HOUR)  # the worker that has it is being replaced
    await check.for_hours(1)
    assert [(await job.refresh()).state for job in jobs] == ["queued"] * 4


@pytest.mark.parametrize("options", [{"queues": ("mail",)}, {"exclude_queues": ("slow",)}])
async def test_a_queue_that_no_worker_serves_says_nothing_about_its_tasks(
    app: Rota, clock: FakeClock, options: dict[str, Any]
) -> None:
    check = await checking(app, clock, **options)
    job = await app.enqueue("strange", queue="slow")
    await check.for_hours(12)
    assert (await job.refresh()).state == "queued"


async def test_a_paused_job_is_left_alone(app: Rota, clock: FakeClock, check: Check) -> None:
    job = await app.enqueue("strange", queue="slow")
    await check.for_hours(5)
    await app.pause(queue="slow", reason="on purpose")
    await check.for_hours(5)
    assert (await job.refresh()).state == "queued"


async def test_a_job_that_is_due_later_does_not_count(app: Rota, clock: FakeClock, check: Check) -> None:
    job = await app.enqueue("strange", delay=timedelta(days=2))
    await check.for_hours(12)
    assert (await job.refresh()).state == "queued"
    assert not await (await app.stores.get()).documents(KIND)


async def test_the_hook_of_failed_jobs_is_called(app: Rota, clock: FakeClock) -> None:
    events: list[Event] = []
    app.on("job.failed")(events.append)
    check = await checking(app, clock)
    job = await app.enqueue("strange")
    hooks: Hooks = app.hooks
    await hooks.start()
    await check.for_hours(7)
    await hooks.stop(5)
    ((at_end, error),) = [(event.job, event.error) for event in events]
    assert at_end is not None and (at_end.id, at_end.state, error["type"]) == (
        job.id,
        "failed",
        "UnknownTask",
    )


@pytest.mark.parametrize(
    ("given", "seconds"), [("off", None), ("90m", 5400), (120, 120), (timedelta(days=2), 172800)]
)
def test_the_time_is_a_setting(given: Any, seconds: float | None) -> None:
    assert Rota("sqlite://:memory:", unknown_task_after=given).settings.unknown_task_after_s == seconds


@pytest.mark.parametrize("given", ["soon", "5s", 0, True, "-1h"])
def test_a_wrong_time_is_reported(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"unknown_task_after=.*such as 6h: .*, or off"):
        Rota("sqlite://:memory:", unknown_task_after=given)


async def test_off_leaves_jobs_waiting_for_ever(clock: FakeClock) -> None:
    app = Rota("sqlite://:memory:", clock=clock, unknown_task_after="off")
    check = await checking(app, clock)
    job = await app.enqueue("strange")
    await check.for_hours(24, every_s=MOST_GAP_S)
    assert (await job.refresh()).state == "queued"
    await app.close()
