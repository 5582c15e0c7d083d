"""What the README promises: enqueue, run, result; looking and steering; several apps in one process."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rota import Context, JobFailed, NotFound, Rota, operate
from rota.testing import drain


async def test_a_job_runs_and_its_result_comes_back(app: Rota) -> None:
    @app.task
    async def add(a: int, b: int = 2) -> dict[str, int]:
        return {"sum": a + b}

    @app.task
    def double(n: int) -> int:
        return 2 * n

    async with app.running(concurrency=8):
        first, second = await add.enqueue(a=40), await double.enqueue(21)
        assert await first.result(timeout=20) == {"sum": 42}
        assert await second.result(timeout=20) == 42
    job = await first.refresh()
    assert (job.state, job.attempt, job.origin, job.tenant, job.queue) == (
        "succeeded", 1, "api", "default", "default",
    )  # fmt: skip
    assert job.created_at <= job.started_at <= job.finished_at  # type: ignore[operator]


async def test_a_producer_needs_no_code_to_enqueue_by_name(app: Rota, app_url: str, make_app: Any) -> None:
    @app.task
    async def greet(name: str) -> str:
        return f"hello {name}"

    producer = make_app(app_url)
    job = await producer.enqueue("greet", {"name": "you"}, queue="mail", priority=3)
    await drain(app)
    assert await job.result(timeout=20) == "hello you"


def test_the_sync_twin_works_from_a_plain_thread(app_url: str) -> None:
    app = Rota(app_url)

    @app.task
    def double(n: int) -> int:
        return 2 * n

    one = double.enqueue_sync(n=4)
    many = double.enqueue_many_sync([{"n": 5}, {"n": 6}])
    by_name = app.enqueue_sync("double", {"n": 7})
    app.run(burst=True, upkeep=False)
    handles = [one, *many, by_name]
    assert [handle.result_sync(timeout=20) for handle in handles] == [8, 10, 12, 14]
    asyncio.run(app.close())


async def test_the_sync_twin_works_inside_a_running_loop(app: Rota) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    job = double.enqueue_sync(n=4)
    await drain(app)
    assert (await job.refresh()).output == 8
    assert job.result_sync(timeout=20) == 8


async def test_many_threads_enqueue_at_once(app: Rota) -> None:
    @app.task
    async def note(n: int) -> None: ...

    def produce(start: int) -> None:
        for n in range(start, start + 10):
            note.enqueue_sync(n=n)

    threads = [threading.Thread(target=produce, args=(start,)) for start in range(0, 60, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    page = await app.jobs(limit=100)
    assert sorted(job.payload["n"] for job in page.items) == list(range(60))


async def test_a_failed_job_raises_with_its_error(app: Rota) -> None:
    @app.task(max_attempts=1)
    async def broken() -> None:
        raise ValueError("the printer is on fire \0")

    job = await broken.enqueue()
    await drain(app)
    with pytest.raises(JobFailed, match=r"broken.*failed after 1 attempt: ValueError: the printer") as caught:
        await job.result(timeout=20)
    assert caught.value.error is not None and caught.value.error["type"] == "ValueError"


async def test_a_result_that_does_not_come_in_time_is_a_timeout(app: Rota) -> None:
    job = await app.enqueue("unserved")
    with pytest.raises(TimeoutError, match=f"job {job.id} did not finish within 0.05 s"):
        await job.result(timeout=0.05)


async def test_a_job_that_removes_itself_leaves_nothing(app: Rota) -> None:
    @app.task(auto_remove=True)
    async def work() -> str:
        return "unseen"

    job = await work.enqueue()
    await drain(app)
    with pytest.raises(NotFound, match=job.id):
        await job.refresh()
    assert await job.result(timeout=20) is None


async def test_a_job_that_should_remove_itself_stays_when_it_fails(app: Rota) -> None:
    @app.task(auto_remove=True, max_attempts=1)
    async def broken() -> None:
        raise ValueError("no")

    job = await broken.enqueue()
    await drain(app)
    assert (await job.refresh()).state == "failed"


async def test_a_waiting_program_notices_a_job_that_another_process_ran(
    app: Rota, app_url: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(
        "import sys\nfrom rota import Rota\napp = Rota(sys.argv[1])\n"
        "@app.task\nasync def double(n: int) -> int:\n    return 2 * n\n"
        "app.run(max_jobs=1)\n"
    )
    job = await app.enqueue("double", {"n": 21})
    waiting = asyncio.create_task(job.result(timeout=30))
    process = await asyncio.create_subprocess_exec(sys.executable, "shop.py", app_url, cwd=tmp_path)
    assert await waiting == 42
    assert await process.wait() == 0


async def test_progress_is_seen_while_the_job_runs(app: Rota, until: Any) -> None:
    free = asyncio.Event()

    @app.task
    async def work(ctx: Context) -> None:
        ctx.progress(50, "half of it")
        await free.wait()

    job = await work.enqueue()
    async with app.running(lease_s=3, upkeep=False):

        async def recorded() -> bool:
            return (await job.refresh()).progress == {"percent": 50.0, "message": "half of it"}

        await until(recorded)
        assert (await job.refresh()).state == "running"
        free.set()


async def test_two_apps_on_two_stores_share_nothing(
    make_app: Any, sqlite_url: str, emptied_postgres_url: str
) -> None:
    left, right = make_app(sqlite_url), make_app(emptied_postgres_url)

    @left.task(name="work")
    async def on_the_left() -> str:
        return "left"

    @right.task(name="work")
    async def on_the_right() -> str:
        return "right"

    async with left.running(), right.running():
        jobs = [await on_the_left.enqueue(), await on_the_right.enqueue()]
        assert [await job.result(timeout=20) for job in jobs] == ["left", "right"]
    with pytest.raises(NotFound):
        await right.job(jobs[0].id)


async def test_a_log_line_is_kept_once_though_two_apps_work_in_one_process(make_app: Any) -> None:
    left, right = make_app("sqlite://:memory:"), make_app("sqlite://:memory:")

    @left.task
    async def talk() -> None:
        logging.getLogger("shop").warning("once")

    right.task(name="other")(lambda: None)
    async with left.running(), right.running():
        job = await talk.enqueue()
        await job.result(timeout=20)
    (attempt,) = await operate.attempts(await left.stores.get(), await job.refresh())
    assert [line.message for line in attempt.logs] == ["shop: once"]
