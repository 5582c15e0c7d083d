"""What a task's code can see, say and use while it runs."""

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


async def test_what_a_coroutine_sets_is_not_seen_by_the_next_on_its_lane(app: Rota) -> None:
    seen = []

    @app.task
    async def paint(colour: str) -> None:
        seen.append(COLOUR.get())
        COLOUR.set(colour)
        await asyncio.sleep(0)
        assert COLOUR.get() == colour

    for colour in ("red", "green", "blue"):
        await paint.enqueue(colour)
    await drain(app, concurrency=1)
    assert seen == ["none"] * 3


async def test_what_a_function_sets_is_not_seen_by_the_next_in_its_thread(app: Rota) -> None:
    seen = []

    @app.task
    def paint(colour: str) -> None:
        seen.append(COLOUR.get())
        COLOUR.set(colour)

    for colour in ("red", "green", "blue"):
        await paint.enqueue(colour)
    await drain(app, concurrency=1)
    assert seen == ["none"] * 3


async def test_timeouts_and_task_groups_work_inside_a_task(app: Rota) -> None:
    async def square(n: int) -> int:
        await asyncio.sleep(0)
        return n * n

    @app.task
    async def modern() -> list[int]:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(square(n)) for n in range(4)]
        return [task.result() for task in tasks]

    job = await modern.enqueue()
    await drain(app)
    assert (await job.refresh()).output == [0, 1, 4, 9]


async def test_the_context_tells_about_the_job(app: Rota) -> None:
    seen: list[Any] = []

    @app.task
    def look(n: int, ctx: Context) -> None:
        seen.extend([ctx.job.id, ctx.attempt, ctx.job.payload, ctx.cancelled, ctx.job.state])

    job = await look.enqueue(3)
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


async def test_log_lines_are_bounded_and_say_so(app: Rota) -> None:
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
async def test_nonsense_said_to_the_context_is_named(app: Rota, say: Any, words: str) -> None:
    caught: list[str] = []

    @app.task
    async def work(ctx: Context) -> None:
        with pytest.raises(OptionError) as error:
            say(ctx)
        caught.append(str(error.value))

    await work.enqueue()
    await drain(app)
    assert words in caught[0]


async def test_a_job_made_inside_a_task_knows_its_parent(app: Rota) -> None:
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
