"""``ctx.enqueue``: follow-up jobs are stored with the success of an attempt, or not at all."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

import rota
from rota import Backoff, Cancel, Context, OptionError, PayloadError, Rota, Snooze
from rota.testing import FakeClock, drain
from rota.worker import follow_ups

process_app = Rota("sqlite://:memory:", clock=FakeClock())  # process tasks live at the top of a module


@process_app.task(executor="process", max_attempts=1)
def fan_out_in_a_process(ctx: Context, names: list[str], fail: bool) -> list[str]:
    made = [ctx.enqueue("greet", {"name": name}, delay=60) for name in names]
    if fail:
        raise ValueError("after enqueueing")
    return [job.id for job in made]


async def children(app: Rota, parent: str) -> list[Any]:
    return sorted((await app.jobs(parent=parent, limit=100)).items, key=lambda job: job.id)


async def test_follow_ups_are_stored_when_the_task_succeeds(still_app: Rota, clock: FakeClock) -> None:
    app, made = still_app, []

    @app.task(queue="mail", max_attempts=7)
    async def greet(name: str) -> None: ...

    @app.task
    async def fan_out(ctx: Context) -> None:
        made.append(ctx.enqueue(greet, name="Ann"))
        made.append(ctx.enqueue(greet, "Bob"))
        made.append(ctx.enqueue(greet.options(delay=60, priority=3), name="Cy"))
        made.append(ctx.enqueue("greet", {"name": "Di"}, tags=["late"]))
        made.append(ctx.enqueue("elsewhere"))
        assert not (await app.jobs(parent=ctx.job.id)).items

    parent = await fan_out.options(tenant="acme").enqueue()
    await drain(app)
    stored = await children(app, parent.id)
    assert [job.id for job in stored] == [job.id for job in made]
    assert [job.payload.get("name") for job in stored] == ["Ann", "Bob", "Cy", "Di", None]
    assert {(job.parent, job.origin, job.tenant) for job in stored} == {(parent.id, "job", "acme")}
    assert [(job.queue, job.max_attempts) for job in stored[:4]] == [("mail", 7)] * 4
    assert (stored[2].priority, stored[2].run_at - clock.now()) == (3, timedelta(seconds=60))
    assert stored[3].tags == ("late",)
    assert [job.state for job in stored] == ["succeeded", "succeeded", "queued", "succeeded", "queued"]


async def test_a_failing_task_leaves_no_follow_ups_and_its_retry_one_set(app: Rota) -> None:
    @app.task
    async def child() -> None: ...

    @app.task(max_attempts=3, backoff=Backoff.none())
    async def shaky(ctx: Context) -> None:
        for _ in range(3):
            ctx.enqueue(child)
        if ctx.attempt < 3:
            raise ValueError("not yet")

    @app.task(max_attempts=1)
    def broken(ctx: Context) -> None:
        ctx.enqueue(child)
        raise ValueError("never")

    jobs = [await shaky.enqueue(), await broken.enqueue()]
    await drain(app)
    assert [len(await children(app, job.id)) for job in jobs] == [3, 0]


@pytest.mark.parametrize("end", [Snooze(60), Cancel("no need")])
async def test_a_task_that_snoozes_or_cancels_leaves_no_follow_ups(app: Rota, end: Exception) -> None:
    @app.task
    async def work(ctx: Context) -> None:
        ctx.enqueue("child")
        raise end

    job = await work.enqueue()
    await drain(app)
    assert await children(app, job.id) == []


async def test_a_timed_out_or_undeliverable_outcome_leaves_no_follow_ups(app: Rota) -> None:
    @app.task(max_attempts=1)
    async def unserialisable(ctx: Context) -> Any:
        ctx.enqueue("child")
        return object()

    job = await unserialisable.enqueue()
    await drain(app)
    assert ((await job.refresh()).state, await children(app, job.id)) == ("failed", [])


async def test_mistakes_are_raised_in_the_task(app: Rota) -> None:
    @app.task
    async def child(n: int) -> None: ...

    caught: list[tuple[type[Exception], str]] = []

    @app.task
    async def work(ctx: Context) -> None:
        for call in (
            lambda: ctx.enqueue(child, m=1),
            lambda: ctx.enqueue(child, n="x" * 2_000_000),
            lambda: ctx.enqueue("child", {"n": 1}, prio=3),  # type: ignore[call-overload]
            lambda: ctx.enqueue("child", {"n": 1}, {"n": 2}),  # type: ignore[call-overload]
            lambda: ctx.enqueue(print, 1),  # type: ignore[call-overload]
            lambda: ctx.enqueue(child.options(connection=object()), n=1),
            lambda: ctx.enqueue(child.options(key="k", on_conflict="raise"), n=1),
        ):
            try:
                call()
            except (PayloadError, OptionError) as error:
                caught.append((type(error), str(error)))

    job = await work.enqueue()
    await drain(app)
    assert (await job.refresh()).state == "succeeded"
    assert [kind for kind, _ in caught] == [PayloadError] * 2 + [OptionError] * 5
    for (_, text), words in zip(
        caught,
        ("m", "", "priority", "one payload", "the name of a task", "connection=", "on_conflict"),
        strict=True,
    ):
        assert words in text
    assert await children(app, job.id) == []


async def test_the_number_and_size_of_follow_ups_is_bounded(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_ups, "MOST", 2)
    monkeypatch.setattr(follow_ups, "MOST_BYTES", 100)
    errors = []

    @app.task
    async def work(ctx: Context) -> None:
        for text in ("x" * 200, "", "", ""):
            try:
                ctx.enqueue("child", {"text": text})
            except OptionError as error:
                errors.append(str(error))

    job = await work.enqueue()
    await drain(app)
    assert len(await children(app, job.id)) == 2
    assert ["larger than" in errors[0], "at most 2 follow-up jobs" in errors[1]] == [True, True]


async def test_follow_ups_keep_their_keys(app: Rota) -> None:
    held = await app.enqueue("child", {"n": 0}, key="a", delay=60)

    @app.task
    async def work(ctx: Context) -> None:
        ctx.enqueue("child", {"n": 1}, key="a", delay=60)
        ctx.enqueue("child", {"n": 2}, key="b", delay=60)
        ctx.enqueue("child", {"n": 3}, key="b", delay=60)
        ctx.enqueue("child", {"n": 4}, key="b", on_conflict="replace", delay=60)

    job = await work.enqueue()
    await drain(app)
    assert [child.payload for child in await children(app, job.id)] == [{"n": 4}]
    assert (await held.refresh()).payload == {"n": 0}


async def test_threads_of_a_task_add_follow_ups_at_the_same_time(app: Rota) -> None:
    @app.task
    def work(ctx: Context) -> None:
        def add() -> None:
            for _ in range(20):
                ctx.enqueue("child", delay=60)

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    job = await work.enqueue()
    await drain(app)
    stored = await children(app, job.id)
    assert len({child.id for child in stored}) == 80
    assert {child.origin for child in stored} == {"job"}


async def test_a_process_task_adds_follow_ups() -> None:
    app = process_app
    try:
        good = await fan_out_in_a_process.enqueue(names=["Ann", "Bob"], fail=False)
        bad = await fan_out_in_a_process.enqueue(names=["Ann"], fail=True)
        await drain(app)
        stored = await children(app, good.id)
        assert [job.id for job in stored] == await good.result()
        assert [job.payload for job in stored] == [{"name": "Ann"}, {"name": "Bob"}]
        due = [(job.run_at - app.clock.now()).total_seconds() for job in stored]
        assert all(60 <= seconds < 1000 for seconds in due), "a child's delay counts from the worker's time"
        assert await children(app, bad.id) == []
    finally:
        await app.close()


async def test_a_follow_up_with_a_chosen_id_is_stored_once_even_after_it_has_finished(app: Rota) -> None:
    ran = []

    @app.task
    async def child() -> None:
        ran.append(1)

    chosen = rota.new_id()

    @app.task
    async def work(ctx: Context) -> None:
        ctx.enqueue(child.options(id=chosen))

    for _ in range(2):
        await work.enqueue()
        await drain(app)
    assert len(ran) == 1
    assert (await app.job(chosen)).state == "succeeded"
