"""What a task can read and report through its context, and the capture of its log."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import Any

import pytest

from rota import Context, OptionError, Rota, operate
from rota.model import LogLine
from rota.testing import drain

COLOUR: ContextVar[str] = ContextVar("colour", default="none")


async def logs(app: Rota, job: Any) -> list[LogLine]:
    attempts = await operate.attempts(await app.stores.get(), await job.refresh())
    return [line for attempt in attempts for line in attempt.logs]


async def test_context_gives_job_and_attempt(app: Rota) -> None:
    seen: list[Any] = []

    @app.task
    def record(n: int, ctx: Context) -> None:
        seen.extend([ctx.job.id, ctx.attempt, ctx.job.payload, ctx.cancelled, ctx.job.state])

    job = await record.enqueue(3)
    await drain(app)
    assert seen == [job.id, 1, {"n": 3}, False, "running"]


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_log_lines_are_kept_with_the_attempt(app: Rota, executor: str) -> None:
    async def on_the_loop(ctx: Context) -> None:
        ctx.log("rendered", level="warning")
        await asyncio.sleep(0)
        logging.getLogger("shop.mail").error("no %s", "stamp")

    def in_a_thread(ctx: Context) -> None:
        ctx.log("rendered", level="warning")
        logging.getLogger("shop.mail").error("no %s", "stamp")

    app.task(name="work")(on_the_loop if executor == "async" else in_a_thread)
    job = await app.enqueue("work")
    await drain(app)
    assert [(line.level, line.message) for line in await logs(app, job)] == [
        ("warning", "rendered"),
        ("error", "shop.mail: no stamp"),
    ]


async def test_log_lines_of_jobs_that_run_together_do_not_mix(app: Rota) -> None:
    both = asyncio.Barrier(2)

    @app.task
    async def talk(name: str) -> None:
        for n in range(3):
            logging.getLogger("talk").warning("%s %d", name, n)
            async with asyncio.timeout(10):
                await both.wait()

    jobs = {name: await talk.enqueue(name) for name in ("left", "right")}
    await drain(app)
    for name, job in jobs.items():
        assert [line.message for line in await logs(app, job)] == [f"talk: {name} {n}" for n in range(3)]


async def test_log_lines_are_bounded_and_the_dropped_ones_counted(app: Rota) -> None:
    @app.task
    async def chatty(ctx: Context) -> None:
        for n in range(1000):
            ctx.log(f"{n} \0\ud800" + "x" * 5000)

    job = await chatty.enqueue()
    await drain(app)
    lines = await logs(app, job)
    assert len(lines) == 201
    assert lines[0].message == "… 800 earlier lines were dropped"
    assert lines[1].message.startswith("800 ")
    assert max(len(line.message) for line in lines) <= 2000


async def test_lines_logged_outside_a_task_belong_to_no_job(app: Rota) -> None:
    @app.task
    async def quiet() -> None: ...

    job = await quiet.enqueue()
    logging.getLogger("elsewhere").error("not yours")
    await drain(app)
    assert await logs(app, job) == []


async def test_no_log_handler_is_left_behind(app: Rota) -> None:
    @app.task
    async def quiet() -> None: ...

    before = list(logging.getLogger().handlers)
    await quiet.enqueue()
    await drain(app)
    assert logging.getLogger().handlers == before


async def test_the_last_progress_stays_with_the_job(app: Rota) -> None:
    @app.task
    async def work(ctx: Context) -> None:
        ctx.progress(30, "begun")
        ctx.progress(250, "more than all")

    job = await work.enqueue()
    await drain(app)
    assert (await job.refresh()).progress == {"percent": 100.0, "message": "more than all"}


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (lambda ctx: ctx.progress(float("nan")), "percent=nan"),
        (lambda ctx: ctx.progress("half"), "percent='half'"),
        (lambda ctx: ctx.cost(cents=-1), "cents=-1"),
        (lambda ctx: ctx.cost(cents=float("inf")), "cents=inf"),
        (lambda ctx: ctx.log("x", level="loud"), "level='loud'"),
    ],
)
async def test_invalid_context_arguments_are_named(app: Rota, say: Any, words: str) -> None:
    caught: list[str] = []

    @app.task
    async def work(ctx: Context) -> None:
        with pytest.raises(OptionError) as error:
            say(ctx)
        caught.append(str(error.value))

    await work.enqueue()
    await drain(app)
    assert words in caught[0]


async def test_a_job_enqueued_by_a_task_has_a_parent(app: Rota) -> None:
    @app.task
    async def child(n: int) -> None: ...

    @app.task
    async def awaiting() -> None:
        await child.enqueue(n=1)

    @app.task
    def threaded() -> None:
        child.enqueue_sync(n=2)
        child.enqueue_many_sync([{"n": 3}])

    first = await awaiting.options(tenant="acme").enqueue()
    second = await threaded.options(tenant="umbrella").enqueue()
    await drain(app)
    family = {job.payload["n"]: job for job in (await app.jobs(task="child")).items}
    assert {n: (job.parent, job.origin, job.tenant) for n, job in family.items()} == {
        1: (first.id, "job", "acme"),
        2: (second.id, "job", "umbrella"),
        3: (second.id, "job", "umbrella"),
    }
    assert (await first.refresh()).origin == "api"
