"""Looking at jobs and steering them: cancel, retry, list, count."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rota import Context, IllegalMove, JobCancelled, NotFound, OptionError, Rota, operate
from rota.testing import drain


async def test_a_queued_job_is_cancelled_at_once(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    await job.cancel("changed my mind")
    assert await drain(app) == 0
    job = await job.refresh()
    assert (job.state, job.attempt, job.error["message"]) == ("cancelled", 0, "changed my mind")
    with pytest.raises(JobCancelled, match="changed my mind"):
        await job.result(timeout=20)


@pytest.mark.parametrize("executor", ["async", "thread"])
async def test_a_running_job_is_cancelled_through_the_heartbeat(app: Rota, executor: str, until: Any) -> None:
    began = threading.Event()

    async def on_the_loop() -> None:
        began.set()
        await asyncio.Event().wait()

    def in_a_thread(ctx: Context) -> None:
        began.set()
        while not threading.Event().wait(0.01):  # a busy loop would starve the heartbeat
            ctx.cancelled  # noqa: B018

    app.task(name="endless")(on_the_loop if executor == "async" else in_a_thread)
    job = await app.enqueue("endless")
    async with app.running(lease_s=3, upkeep=False):
        await until(began.is_set)
        await job.cancel()
        with pytest.raises(JobCancelled):
            await job.result(timeout=20)
    assert (await job.refresh()).attempt == 1


async def test_what_a_jobs_state_forbids_is_refused_with_that_state(app: Rota) -> None:
    @app.task
    async def work() -> None: ...

    job = await work.enqueue()
    with pytest.raises(IllegalMove, match=r"cannot retry .* queued") as queued:
        await job.retry()
    await drain(app)
    with pytest.raises(IllegalMove, match=r"cannot cancel .* succeeded") as succeeded:
        await job.cancel()
    assert (queued.value.state, succeeded.value.state) == ("queued", "succeeded")


async def test_a_job_that_ended_can_be_run_again(app: Rota) -> None:
    fine = False

    @app.task(max_attempts=1)
    async def shaky() -> str:
        if not fine:
            raise ValueError("not yet")
        return "now"

    job = await shaky.enqueue()
    await drain(app)
    again = await job.retry()
    assert (again.state, again.attempt) == ("queued", 0)
    fine = True
    await drain(app)
    job = await job.refresh()
    assert (job.state, job.attempt, job.output, job.error) == ("succeeded", 1, "now", None)
    recorded = await operate.attempts(await app.stores.get(), job)
    assert [attempt.outcome for attempt in recorded] == ["failed", "succeeded"]


@pytest.mark.parametrize("job_id", ["", "7", "not-an-id", "0197f0a2-7c1e-4b3a-9d2f-1b2c3d4e5f6"])
async def test_an_id_that_cannot_be_one_is_named(lite: Rota, job_id: Any) -> None:
    for call in (lite.job, lite.cancel, lite.retry, lite.why, lite.wait):
        with pytest.raises(NotFound, match=r"there is no job .*is not a job id"):
            await call(job_id)
    with pytest.raises(OptionError, match="None is not a job id"):
        await lite.job(None)  # type: ignore[arg-type]


async def test_an_unknown_id_is_not_found(app: Rota) -> None:
    with pytest.raises(NotFound, match="no job 0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60"):
        await app.job("0197f0a2-7c1e-7b3a-9d2f-1b2c3d4e5f60")


async def test_jobs_are_found_by_key_and_by_several_states(app: Rota) -> None:
    @app.task
    async def note(n: int) -> None: ...

    keyed = await note.options(key="receipt:1", delay="1h").enqueue(n=1)
    cancelled = await note.options(delay="1h").enqueue(n=2)
    await cancelled.cancel()
    done = await note.enqueue(n=3)
    await drain(app)
    assert [job.id for job in (await app.jobs(key="receipt:1")).items] == [keyed.id]
    found = (await app.jobs(state=("succeeded", "cancelled"))).items
    assert {job.id for job in found} == {done.id, cancelled.id}
    assert (await app.jobs(key="receipt:1", state=["succeeded"])).items == []
    with pytest.raises(OptionError, match="state='done': must be one of"):
        await app.jobs(state=["queued", "done"])
    with pytest.raises(OptionError, match="is not a job id"):
        await app.jobs(parent="nonsense")


async def test_jobs_are_listed_newest_first_page_by_page(app: Rota) -> None:
    for n in range(5):
        await app.enqueue("note", {"n": n}, tags=["odd"] if n % 2 else [])
    first = await app.jobs(limit=3)
    rest = await app.jobs(limit=3, cursor=first.next)
    assert [job.payload["n"] for job in [*first.items, *rest.items]] == [4, 3, 2, 1, 0]
    assert rest.next is None
    assert [job.payload["n"] for job in (await app.jobs(tag="odd")).items] == [3, 1]


async def test_an_unknown_state_to_list_is_named(lite: Rota) -> None:
    with pytest.raises(OptionError, match=r"state='sucess'.*queued"):
        await lite.jobs(state="sucess")


async def test_stats_count_every_state(app: Rota) -> None:
    @app.task(max_attempts=1)
    async def work(fine: bool) -> None:
        if not fine:
            raise ValueError("no")

    for fine in (True, True, False):
        await work.enqueue(fine=fine)
    await (await work.enqueue(fine=True)).cancel()
    await drain(app)
    await work.options(queue="mail").enqueue(fine=True)
    await work.options(queue="mail", delay=3600).enqueue(fine=True)
    stats = await app.stats()
    counts = {state: stats[state] for state in ("queued", "running", "succeeded", "failed", "cancelled")}
    assert counts == {"queued": 2, "running": 0, "succeeded": 2, "failed": 1, "cancelled": 1}
    assert (stats["queues"]["mail"]["due"], stats["queues"]["mail"]["due_later"]) == (1, 1)
    assert stats["oldest_due_s"] >= 0


async def test_the_log_of_a_running_job_can_be_read_and_makes_way_at_its_end(
    app: Rota, until: Callable[..., Any]
) -> None:
    go_on = asyncio.Event()

    @app.task
    async def talk(ctx: Context) -> None:
        ctx.log("begun")
        await go_on.wait()
        ctx.log("done")

    job = await talk.enqueue()
    async with app.running(concurrency=1):

        async def has_line() -> bool:
            told = (await job.refresh()).progress
            return bool(told) and [line["message"] for line in told["log"]] == ["begun"]

        await until(has_line)
        go_on.set()
        await job.result(timeout=20)
    assert (await job.refresh()).progress is None
    shown = await app.operations().jobs.attempts(job.id)
    assert [line.message for line in shown.items[0].logs] == ["begun", "done"]
