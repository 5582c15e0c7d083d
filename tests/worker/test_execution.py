"""What becomes of a job when its task returns, raises, snoozes, cancels or runs too long."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from rota import Backoff, Cancel, Context, JobCancelled, JobFailed, Rota, Snooze, operate
from rota.testing import FakeClock, drain


async def outcomes(app: Rota, job: Any) -> list[str]:
    recorded = await operate.attempts(await app.stores.get(), await job.refresh())
    return [attempt.outcome for attempt in recorded]


# --- failing and trying again ------------------------------------------------------------------------


async def test_the_default_backoff_doubles_from_five_seconds_to_five_minutes(
    app: Rota, clock: FakeClock
) -> None:
    @app.task(max_attempts=9)
    async def broken() -> None:
        raise ValueError("no")

    job = await broken.enqueue()
    waits = []
    for _ in range(8):
        await drain(app)
        job = await job.refresh()
        waits.append((job.run_at - clock.now()).total_seconds())
        clock.advance(waits[-1])
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]
    await drain(app)
    assert ((await job.refresh()).state, (await job.refresh()).attempt) == ("failed", 9)


async def test_jitter_adds_up_to_a_second(app: Rota, clock: FakeClock) -> None:
    clock.fraction = 0.5

    @app.task
    async def broken() -> None:
        raise ValueError("no")

    job = await broken.enqueue()
    await drain(app)
    assert (await job.refresh()).run_at - clock.now() == timedelta(seconds=5.5)


async def test_the_patient_backoff_doubles_from_ten_seconds_without_a_cap(
    app: Rota, clock: FakeClock
) -> None:
    @app.task(max_attempts=10, backoff=Backoff.patient())
    async def broken() -> None:
        raise ValueError("no")

    job = await broken.enqueue()
    waits = []
    for _ in range(8):
        await drain(app)
        job = await job.refresh()
        waits.append((job.run_at - clock.now()).total_seconds())
        clock.advance(waits[-1])
    assert waits == [10, 20, 40, 80, 160, 320, 640, 1280]


async def test_a_jobs_own_backoff_comes_before_its_tasks(app: Rota, clock: FakeClock) -> None:
    @app.task(backoff=Backoff(base=100, jitter=0))
    async def broken() -> None:
        raise ValueError("no")

    usual = await broken.enqueue()
    own = await broken.options(backoff=Backoff(base=7, jitter=0)).enqueue()
    await drain(app)
    assert (await usual.refresh()).run_at - clock.now() == timedelta(seconds=100)
    assert (await own.refresh()).run_at - clock.now() == timedelta(seconds=7)


async def test_a_job_with_one_attempt_fails_at_the_first_error(app: Rota) -> None:
    @app.task(max_attempts=1)
    async def broken() -> None:
        raise ValueError("no")

    job = await broken.enqueue()
    assert await drain(app) == 1
    job = await job.refresh()
    assert (job.state, job.attempt, job.error["type"], job.error["message"]) == (
        "failed", 1, "ValueError", "no",
    )  # fmt: skip
    assert "test_execution.py" in job.error["traceback"]
    assert "rota/worker" not in job.error["traceback"]


async def test_a_retry_that_succeeds_leaves_no_error_but_keeps_the_record(app: Rota) -> None:
    calls = 0

    @app.task
    async def shaky() -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise ConnectionError("away")
        return "done"

    job = await shaky.enqueue()
    assert await drain(app, advance=True) == 2
    job = await job.refresh()
    assert (job.state, job.output, job.error, job.attempt) == ("succeeded", "done", None, 2)
    assert await outcomes(app, job) == ["failed", "succeeded"]


async def test_cost_adds_up_over_attempts(app: Rota) -> None:
    @app.task
    async def paid(ctx: Context) -> None:
        ctx.cost(cents=3)
        ctx.cost(cents=0.5)
        if ctx.attempt == 1:
            raise ConnectionError("away")

    job = await paid.enqueue()
    await drain(app, advance=True)
    assert (await job.refresh()).cost_cents == 7.0


async def test_a_cost_of_nothing_is_reported_too(app: Rota) -> None:
    @app.task(price=40)
    async def cached(ctx: Context) -> None:
        ctx.cost(cents=0)

    job = await cached.enqueue()
    await drain(app)
    assert (await job.refresh()).cost_cents == 0.0


# --- snooze and cancel -------------------------------------------------------------------------------


async def test_a_snooze_counts_no_attempt(app: Rota, clock: FakeClock) -> None:
    snoozes = 3

    @app.task(max_attempts=1)
    async def sleepy() -> str:
        nonlocal snoozes
        if snoozes:
            snoozes -= 1
            raise Snooze(30)
        return "awake"

    job = await sleepy.enqueue()
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.attempt) == ("queued", 0)
    assert job.run_at - clock.now() == timedelta(seconds=30)
    assert await drain(app) == 0
    assert await drain(app, advance=True) == 3
    job = await job.refresh()
    assert (job.state, job.attempt, job.output) == ("succeeded", 1, "awake")
    assert await outcomes(app, job) == ["snoozed", "snoozed", "snoozed", "succeeded"]


async def test_a_task_can_cancel_its_own_job(app: Rota) -> None:
    @app.task
    def unneeded() -> None:
        raise Cancel("the order is gone")

    job = await unneeded.enqueue()
    assert await drain(app, advance=True) == 1
    job = await job.refresh()
    assert (job.state, job.error["message"]) == ("cancelled", "the order is gone")
    with pytest.raises(JobCancelled, match="the order is gone"):
        await job.result(timeout=1)


# --- time ----------------------------------------------------------------------------------------------


async def test_a_jobs_own_timeout_comes_before_its_tasks(app: Rota) -> None:
    @app.task(timeout=3600, max_attempts=1)
    async def endless() -> None:
        await asyncio.Event().wait()

    job = await endless.options(timeout=0.02).enqueue()
    await drain(app)
    assert "0.02 s" in (await job.refresh()).error["message"]


# --- strange ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [object(), float("nan"), "\0", "\ud800", 2**70, {1: {(1, 2): 3}}])
async def test_an_output_that_cannot_be_stored_fails_the_attempt(app: Rota, value: Any) -> None:
    @app.task(max_attempts=1)
    async def odd() -> Any:
        return value

    job = await odd.enqueue()
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.error["type"]) == ("failed", "PayloadError")
    assert "the output of task 'odd'" in job.error["message"]


async def test_an_output_over_the_limit_fails_the_attempt(clock: FakeClock) -> None:
    app = Rota("sqlite://:memory:", clock=clock, max_payload_bytes=1000)

    @app.task(max_attempts=1)
    def large() -> str:
        return "x" * 1000

    job = await large.enqueue()
    await drain(app)
    assert "limit is 1000 bytes" in (await job.refresh()).error["message"]
    await app.close()


async def test_a_huge_error_is_stored_in_bounds(app: Rota) -> None:
    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise RuntimeError("\0\ud800" + "x" * 1_000_000)

    @app.task(max_attempts=1)
    async def broken() -> None:
        deep(200)

    job = await broken.enqueue()
    await drain(app)
    error = (await job.refresh()).error
    assert error["type"] == "RuntimeError"
    assert 3000 < len(error["message"]) <= 4000
    assert len(error["traceback"]) <= 16_000
    assert "\0" not in error["message"]


async def test_an_error_whose_text_cannot_be_read_is_still_stored(app: Rota) -> None:
    class NastyError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text for you")

    @app.task(max_attempts=1)
    async def broken() -> None:
        raise NastyError

    job = await broken.enqueue()
    await drain(app)
    error = (await job.refresh()).error
    assert error["type"].endswith("NastyError")
    assert error["message"] == "(the message could not be read)"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_task_that_exits_the_process_only_fails(
    app: Rota, executor: str, kind: type[BaseException]
) -> None:
    async def on_the_loop() -> None:
        raise kind

    def in_a_thread() -> None:
        raise kind

    app.task(name="rude", max_attempts=1)(on_the_loop if executor == "async" else in_a_thread)
    app.task(name="fine")(lambda: "ok")
    rude, fine = await app.enqueue("rude"), await app.enqueue("fine")
    await drain(app, concurrency=1)
    rude = await rude.refresh()
    assert rude.state == "failed"
    assert kind.__name__ in rude.error["type"] + rude.error["message"]
    assert (await fine.refresh()).state == "succeeded"


async def test_an_error_group_is_stored_with_its_members(app: Rota) -> None:
    @app.task(max_attempts=1)
    async def several() -> None:
        raise ExceptionGroup("two at once", [ValueError("first"), KeyError("second")])

    job = await several.enqueue()
    await drain(app)
    error = (await job.refresh()).error
    assert error["type"] == "ExceptionGroup"
    assert "first" in error["traceback"] and "second" in error["traceback"]
    with pytest.raises(JobFailed) as caught:
        await job.result(timeout=1)
    assert caught.value.error == error
