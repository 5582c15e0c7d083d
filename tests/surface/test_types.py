"""What type checkers say to a user's program: mypy and pyright, each run once over the same file.

A line that is wrong on purpose ends with ``# wrong``; no other line may have an error.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from __future__ import annotations

from datetime import UTC, datetime, timedelta

from typing_extensions import Unpack

from rota import (
    Backoff,
    BoundTask,
    Cancel,
    Context,
    Duration,
    Event,
    JobFailed,
    JobHandle,
    JobOptions,
    Page,
    Rota,
    RunSummary,
    Schedule,
    ScheduleRun,
    Snooze,
    Task,
    TaskSet,
)
from rota.testing import FakeClock, assert_enqueued, drain

app = Rota("sqlite://:memory:", clock=FakeClock(), max_attempts=5)
tasks = TaskSet("mail")


@app.task
async def add(a: int, b: int = 2) -> int:
    return a + b


@app.task(queue="mail", max_attempts=5, backoff=Backoff(base=10, jitter=1), timeout=timedelta(seconds=30))
def send(ctx: Context, order_id: int) -> dict[str, bool]:
    ctx.progress(50, "rendered")
    ctx.log("hello")
    ctx.cost(cents=3)
    if ctx.cancelled or ctx.attempt > 3:
        raise Cancel("enough")
    if ctx.job.priority > 9:
        raise Snooze(60)
    return {"sent": True}


@tasks.task
async def render(ctx: Context, page: str) -> str:
    return page


@app.cron("0 8 * * *", queue="night")
async def nightly(day: str = "") -> int:
    return len(day)


@app.every("15m")
def tick(ctx: Context) -> None: ...


@app.task(queue=5)  # wrong
def one() -> None: ...


@app.on("job.failed")
async def tell(event: Event) -> None:
    if event.job is not None:
        print(event.job.id, event.error)


async def options() -> None:
    await send.options(delay=60, priority=9, tenant="acme", key="receipt:42").enqueue(order_id=42)
    await app.enqueue("send", {"order_id": 42}, run_at=datetime(2030, 1, 1, tzinfo=UTC))
    await app.enqueue("two", {"a": 1}, prioritty=5)  # wrong
    add.options(delay=[1])  # wrong


async def later(task: Task[[int], int], wait: Duration, **given: Unpack[JobOptions]) -> JobHandle[int]:
    bound: BoundTask[[int], int] = task.options(**given).options(delay=wait)
    return await bound.enqueue(1)


async def lists() -> None:
    schedule: Schedule = await app.schedules.get("nightly")
    page: Page[ScheduleRun] = await app.schedules.runs("nightly")
    total: RunSummary = await app.schedules.summary("nightly")
    jobs: Page[JobHandle] = await app.jobs(state=("queued", "running"), key="k")
    print(schedule.next_run_at, page.items[0].success, total.runs, jobs.next)


async def arguments() -> None:
    await add.enqueue(1)
    await add.enqueue(1, b=3)
    await add.enqueue("x")  # wrong
    await add.enqueue()  # wrong
    await add.enqueue(a=1, c=2)  # wrong
    await send.enqueue(order_id=42)
    await send.enqueue(ordr_id=42)  # wrong
    await send.options(delay=60).enqueue(order_id="x")  # wrong
    send.enqueue_sync(order_id=1)
    send.enqueue_sync(order_id=None)  # wrong
    await render.options(queue="slow").enqueue("a")
    await render.enqueue()  # wrong
    await nightly.enqueue(day="monday")
    await nightly.enqueue(day=1)  # wrong
    await tick.enqueue()
    tick.enqueue_sync(1)  # wrong


async def results() -> None:
    whole: int = await (await add.enqueue(1)).result()
    text: str = await (await add.enqueue(1)).result()  # wrong
    sent: dict[str, bool] = send.enqueue_sync(order_id=1).result_sync()
    page: str = await (await render.options(delay=3).enqueue(page="x")).result()
    count: int = await (await (await nightly.enqueue()).refresh()).result()
    many: list[int] = [await job.result() for job in await add.enqueue_many({"a": n} for n in range(3))]
    plain: JobHandle = await send.enqueue(order_id=1)
    exact: JobHandle[int] = await add.enqueue(1)
    other: JobHandle[str] = await add.enqueue(1)  # wrong
    print(whole, text, sent, page, count, many, plain, exact, other)


def in_sync_code() -> None:
    handle: JobHandle = app.job_sync("an-id")
    app.job_sync(42)  # wrong
    app.job_sync()  # wrong
    app.jobs_sync(stat="failed")  # wrong
    whole: int = add.enqueue_sync(1).refresh_sync().result_sync(timeout=5)
    text: str = add.enqueue_sync(1).refresh_sync().result_sync()  # wrong
    handle.cancel_sync(reson="x")  # wrong
    schedule: str = app.schedules.create_sync(name="n", task="add", every="15m").name
    app.schedules.create_sync(nam="n")  # wrong
    app.pause_sync(queue="mail", reason="provider down")
    app.calendars.get_sync(5)  # wrong
    found: int = app.call_sync(app.stats)["queued"]
    app.call_sync(app.job, 42)  # wrong
    with app.running_sync(concurrency=2) as worker:
        print(worker.finished, handle, whole, text, schedule, found)


async def direct() -> None:
    whole: int = await add(1, b=2)
    await add("x")  # wrong
    send(order_id=1)  # wrong
    some: Task = add
    exact: Task[..., int] = add
    print(whole, some, exact)


async def main() -> None:
    await app.migrate()
    job = await send.enqueue(order_id=42)
    async with app.running(queues=["mail"], concurrency=50):
        try:
            print(await job.result(timeout=10))
        except JobFailed as failed:
            print(failed.error)
    print(await app.stats(), (await app.jobs(state="failed")).items)
    await drain(app)
    assert_enqueued(send, order_id=42)
    await app.close()
"""

# What only people without strict rules write: a type checker must then not be wrong about it.
UNTYPED = """
from rota import Rota

app = Rota()


@app.task
def add(a, b=2):
    return a + b


@app.task(queue="slow")
async def subtract(a, b):
    return a - b


add.enqueue_sync(a=1, b=2)
add.enqueue_sync(1)
subtract.enqueue_sync(1, b=2)
subtract.options(delay=1).enqueue_sync(a=1, b=2)
"""

WRONG = {number for number, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, timeout=280, check=False, cwd=folder
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "untyped.py").write_text(UNTYPED, encoding="utf-8")
    return tmp_path


@pytest.mark.timeout(300)
def test_mypy_sees_wrong_arguments_and_the_types_of_results(folder: Path) -> None:
    cache = Path(__file__).parents[2] / ".mypy_cache" / "surface"
    said = run(folder, "mypy", "--strict", "--cache-dir", str(cache), "shop.py").stdout
    assert {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line} == WRONG, said


@pytest.mark.timeout(300)
def test_pyright_sees_the_same_and_nothing_in_untyped_functions(folder: Path) -> None:
    command = ["--level", "error", "--pythonpath", sys.executable, "shop.py", "untyped.py"]
    said = run(folder, "basedpyright", *command).stdout
    errors = [line.strip() for line in said.splitlines() if " - error:" in line]
    assert {int(line.split(":")[1]) for line in errors if "shop.py:" in line} == WRONG, said
    assert [line for line in errors if "untyped.py:" in line] == [], said
