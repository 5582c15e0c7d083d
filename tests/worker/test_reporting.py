"""Events, the hooks that listen to them, and the states of the app that follow from them."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rota import AlreadyRegistered, AlreadyRunning, Cancel, ConfigError, Event, Rota, Snooze
from rota.model import ClaimRequest
from rota.runtime import events as events_module
from rota.runtime.events import NAMES
from rota.store.calls import claim
from rota.testing import FakeClock, drain

STILL = {"heartbeat_thread": False, "upkeep": False}


@pytest.fixture
def events(app: Rota) -> list[Event]:
    """Every event of the app, in order."""
    events: list[Event] = []
    for name in NAMES:
        app.on(name)(events.append)
    return events


def named(events: list[Event], name: str) -> list[Event]:
    return [event for event in events if event.name == name]


async def test_a_job_that_succeeds_emits_its_events_in_order(app: Rota, events: list[Event]) -> None:
    @app.task
    async def work(n: int) -> int:
        return n * 2

    job = await work.enqueue(21)
    await drain(app)
    names = [event.name for event in events]
    assert names == ["worker.started", "job.started", "job.succeeded", "worker.idle", "worker.stopped"]
    started, succeeded = events[1], events[2]
    assert started.job is not None and succeeded.job is not None
    assert (started.job.id, started.job.state, started.job.attempt) == (job.id, "running", 1)
    assert (succeeded.job.id, succeeded.job.state, succeeded.job.output) == (job.id, "succeeded", 42)
    assert succeeded.error is None
    assert {event.worker for event in events} == {events[0].worker}
    assert events[0].at == app.clock.now()


@pytest.mark.parametrize(
    ("error", "attempts", "name", "state", "kind"),
    [
        (ValueError("no"), 3, "job.retried", "queued", "ValueError"),
        (ValueError("no"), 1, "job.failed", "failed", "ValueError"),
        (Snooze(5), 1, "job.snoozed", "queued", None),
        (Cancel("enough"), 3, "job.cancelled", "cancelled", "Cancelled"),
    ],
)
async def test_each_outcome_has_its_event(
    app: Rota,
    events: list[Event],
    error: Exception,
    attempts: int,
    name: str,
    state: str,
    kind: str | None,
) -> None:
    @app.task(max_attempts=attempts)
    async def work() -> None:
        raise error

    job = await work.enqueue()
    await drain(app)
    (event,) = named(events, name)
    assert event.job is not None
    assert (event.job.id, event.job.state) == (job.id, state)
    assert (event.error["type"] if event.error else None) == kind
    assert len([event for event in events if event.name.startswith("job.")]) == 2


async def test_an_unfinished_job_emits_released(app: Rota, events: list[Event]) -> None:
    began = asyncio.Event()

    @app.task
    async def slow() -> None:
        began.set()
        await asyncio.Event().wait()

    job = await slow.enqueue()
    async with app.running(shutdown_timeout=0, **STILL):
        await began.wait()
    (event,) = named(events, "job.released")
    assert event.job is not None
    assert (event.job.id, event.job.state, event.job.attempt) == (job.id, "queued", 0)


async def test_a_rescued_job_emits_its_event_and_runs(
    app: Rota, clock: FakeClock, events: list[Event]
) -> None:
    @app.task
    async def work() -> str:
        return "done"

    job = await work.enqueue()
    store = await app.stores.get()
    await claim(store, ClaimRequest(worker="dead", limit=1, lease_s=30), clock.now())
    clock.advance(31)
    async with app.running(heartbeat_thread=False):
        assert await job.result(timeout=10) == "done"
    (event,) = named(events, "job.rescued")
    assert event.job is not None
    assert (event.job.id, event.job.worker) == (job.id, "dead")


async def test_a_rescue_that_fails_the_job_emits_the_error(
    app: Rota, clock: FakeClock, events: list[Event], until: Any
) -> None:
    @app.task(max_attempts=1)
    async def work() -> None: ...

    job = await work.enqueue()
    store = await app.stores.get()
    await claim(store, ClaimRequest(worker="dead", limit=1, lease_s=30), clock.now())
    clock.advance(31)
    async with app.running(heartbeat_thread=False):
        await until(lambda: named(events, "job.failed"))
    (event,) = named(events, "job.failed")
    assert event.job is not None
    assert (event.job.id, event.job.state, event.error["type"]) == (job.id, "failed", "Quarantined")


async def test_a_rejected_outcome_emits_its_event(app: Rota, clock: FakeClock, events: list[Event]) -> None:
    began, free = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        began.set()
        await free.wait()

    job = await work.enqueue()
    async with app.running(**STILL):
        await began.wait()
        clock.advance(31)
        await (await app.stores.get()).reclaim("rescuer", 600, 10, clock.now())
        free.set()
    (event,) = named(events, "job.rejected")
    assert event.job is not None and event.job.id == job.id
    assert not named(events, "job.succeeded")


async def test_a_store_error_emits_its_event_and_the_worker_continues(
    tmp_path: Path, until: Any, caplog: pytest.LogCaptureFixture
) -> None:
    app = Rota(f"sqlite:///{tmp_path / 'rota.db'}")
    errors: list[Event] = []
    app.on("worker.error")(errors.append)

    @app.task
    async def work() -> str:
        return "done"

    await app.stores.get()
    behind = sqlite3.connect(tmp_path / "rota.db", isolation_level=None)
    behind.execute("ALTER TABLE rota_jobs RENAME TO hidden")
    async with app.running(poll_s=0.01, upkeep=False):
        await until(lambda: errors)
        behind.execute("ALTER TABLE hidden RENAME TO rota_jobs")
        assert await (await work.enqueue()).result(timeout=10) == "done"
    behind.close()
    await app.close()
    assert "rota_jobs" in str(errors[0].error)


async def test_idle_is_emitted_once_per_idle_period(until: Any) -> None:
    class Counting(FakeClock):
        looks = 0

        def now(self) -> Any:
            self.looks += 1
            return super().now()

    clock = Counting()
    app = Rota("sqlite://:memory:", clock=clock)
    idle: list[Event] = []
    app.on("worker.idle")(idle.append)

    @app.task
    async def work() -> None: ...

    async with app.running(poll_s=0.002, **STILL):
        for periods in (1, 2, 3):
            await until(lambda: app.is_idle)
            polls = clock.looks + 20
            await until(lambda: clock.looks > polls)  # noqa: B023
            assert len(idle) == periods
            await (await work.enqueue()).result(timeout=10)
            await until(lambda: len(idle) == periods + 1)  # noqa: B023
    await app.close()


async def test_hooks_may_be_sync_or_async_and_several(app: Rota) -> None:
    calls: list[str] = []

    @app.on("job.succeeded")
    async def first(event: Event) -> None:
        await asyncio.sleep(0)
        calls.append("async")

    @app.on("job.succeeded")
    def second(event: Event) -> None:
        calls.append("sync")

    @app.on("job.succeeded")
    def third(event: Event) -> Any:
        return first(event)

    @app.task
    async def work() -> None: ...

    await work.enqueue()
    await drain(app)
    assert calls == ["async", "sync", "async"]


async def test_an_error_in_a_hook_is_logged_and_affects_no_job(
    app: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    calls: list[str] = []

    @app.on("job.succeeded")
    async def broken(event: Event) -> None:
        raise RuntimeError("hook trouble")

    @app.on("job.succeeded")
    def fine(event: Event) -> None:
        calls.append(event.name)

    @app.task
    async def work() -> str:
        return "done"

    jobs = await work.enqueue_many([{}, {}])
    with caplog.at_level(logging.ERROR, "rota.events"):
        await drain(app)
    assert [(await job.refresh()).state for job in jobs] == ["succeeded", "succeeded"]
    assert len(calls) == 2
    assert caplog.text.count("hook 'broken' failed on job.succeeded") == 2
    assert "hook trouble" in caplog.text


async def test_a_hook_that_hangs_delays_the_others_for_a_limited_time(
    app: Rota, until: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "LONGEST_S", 0.05)
    calls: list[str] = []
    released = threading.Event()

    @app.on("job.succeeded")
    async def hangs(event: Event) -> None:
        await asyncio.Event().wait()

    @app.on("job.succeeded")
    def hangs_in_a_thread(event: Event) -> None:
        calls.append("in a thread")
        released.wait(20)

    @app.on("job.succeeded")
    def fine(event: Event) -> None:
        calls.append("fine")

    @app.task
    async def work() -> None: ...

    await work.enqueue_many([{}, {}, {}])
    try:
        await drain(app)
    finally:
        released.set()
    assert calls == ["in a thread", "fine", "fine", "fine"]
    assert caplog.text.count("hook 'hangs' did not finish job.succeeded within") == 3
    assert caplog.text.count("hook 'hangs_in_a_thread' did not finish job.succeeded within") == 1
    await until(lambda: "hook 'hangs_in_a_thread' finished late; it missed 2 events" in caplog.text)


async def test_a_hook_that_exits_does_not_end_the_worker(app: Rota, caplog: pytest.LogCaptureFixture) -> None:
    @app.on("job.succeeded")
    def exits(event: Event) -> None:
        sys.exit(3)

    @app.task
    async def work() -> None: ...

    jobs = await work.enqueue_many([{}, {}])
    await drain(app)
    assert [(await job.refresh()).state for job in jobs] == ["succeeded", "succeeded"]
    assert caplog.text.count("hook 'exits' failed on job.succeeded") == 2


def test_an_unknown_event_suggests_the_nearest(app: Rota) -> None:
    with pytest.raises(ConfigError, match=r"no event 'job.succeded'; did you mean 'job.succeeded'\?"):
        app.on("job.succeded")(print)


def test_every_event_but_schedules_is_covered_here_or_with_budgets() -> None:
    tests = (Path(__file__), Path(__file__).with_name("test_budget_alerts.py"))
    text = "".join(path.read_text(encoding="utf-8") for path in tests)
    assert [name for name in NAMES if f'"{name}"' not in text and name != "schedule.fired"] == []


# --- what the app says about itself ---------------------------------------------------------------------


async def test_the_app_shows_whether_it_is_running_processing_or_idle(app: Rota, until: Any) -> None:
    began, free = asyncio.Event(), asyncio.Event()

    @app.task
    async def work() -> None:
        began.set()
        await free.wait()

    assert (app.is_running, app.is_processing, app.is_idle) == (False, False, False)
    async with app.running(**STILL):
        await until(lambda: app.is_idle)
        assert (app.is_running, app.is_processing) == (True, False)
        job = await work.enqueue()
        await began.wait()
        assert (app.is_running, app.is_processing, app.is_idle) == (True, True, False)
        free.set()
        await job.result(timeout=10)
        await until(lambda: app.is_idle)
    assert (app.is_running, app.is_processing, app.is_idle) == (False, False, False)


async def test_starting_twice_is_an_error_and_leaves_the_first_running(app: Rota) -> None:
    @app.task
    async def work() -> str:
        return "done"

    async with app.running(**STILL):
        with pytest.raises(AlreadyRunning, match="start it once"):
            async with app.running(**STILL):
                pass
        with pytest.raises(AlreadyRunning):
            await drain(app)
        assert app.is_running
        assert await (await work.enqueue()).result(timeout=10) == "done"
    async with app.running(**STILL):  # and again, one after the other
        assert await (await work.enqueue()).result(timeout=10) == "done"


async def test_a_task_name_can_be_registered_once(app: Rota) -> None:
    @app.task
    def work() -> None: ...

    with pytest.raises(AlreadyRegistered, match=r"'work' is already registered.*name=.*in a notebook"):
        app.task(name="work")(lambda: None)
    assert app.registry.tasks["work"] is work
