"""Who enqueues, fires or triggers does not matter: a task's own options hold where its code is not."""

from __future__ import annotations

import asyncio
import inspect
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from rota import Backoff, Context, Rota
from rota.model import Actor, TaskParameter
from rota.operate.requests import EnqueueRequest
from rota.tasks.published import KIND
from rota.testing import FakeClock, drain

Make = Callable[..., Rota]
MAIL: dict[str, Any] = {"queue": "mail", "max_attempts": 7, "priority": 4, "tags": ["out"], "timeout": 30}


def nothing() -> None: ...


def declare(app: Rota, **options: Any) -> Rota:
    @app.task(**{**MAIL, **options})
    async def send(to: str, copies: int = 1) -> None:
        """Send a letter.

        By post.
        """

    return app


async def work_for_a_moment(app: Rota, until: Callable[..., Any]) -> None:
    """A worker of the app starts, publishes and stops."""
    store = await app.stores.get()
    async with app.running(poll_s=0.01):
        mine = app.published._declarations()

        async def published() -> bool:
            stored = {one.key: one.body for one in await store.documents(KIND)}
            return all(stored.get(name) == body for name, body in mine.items())

        await until(published)


@pytest.fixture
async def stranger(app_url: str, clock: FakeClock, make_app: Make, until: Any) -> Rota:
    """A program without the code of ``send``, of which a worker has run elsewhere."""
    await work_for_a_moment(declare(make_app(app_url, clock=clock)), until)
    return make_app(app_url, clock=clock, max_attempts=2)


def options_of(job: Any) -> tuple[Any, ...]:
    return job.queue, job.max_attempts, job.priority, tuple(job.tags)


OWN = ("mail", 7, 4, ("out",))


async def only_job(app: Rota) -> Any:
    (job,) = (await app.jobs()).items
    return job


async def test_a_trigger_by_a_program_without_the_code_uses_the_options_of_the_task(stranger: Rota) -> None:
    await stranger.schedules.create(name="s", task="send", every="1h", payload={"to": "ann"})
    job = await stranger.schedules.trigger("s")
    assert options_of(job) == OWN
    assert job.timeout is None  # read from the task when it runs


async def test_a_scheduler_without_the_code_uses_the_options_of_the_task(
    stranger: Rota, clock: FakeClock
) -> None:
    await stranger.schedules.create(name="s", task="send", every="1h", payload={"to": "ann"}, max_attempts=9)
    async with stranger.worker() as worker:
        assert worker.scheduler is not None
        clock.advance(3600)
        await worker.scheduler.tick()
    assert options_of(await only_job(stranger)) == ("mail", 9, 4, ("out",))


@pytest.mark.parametrize("how", ["enqueue", "enqueue_sync", "enqueue_many", "enqueue_many_sync"])
async def test_a_producer_without_the_code_uses_the_options_of_the_task(stranger: Rota, how: str) -> None:
    call: Any = getattr(stranger, how)
    payload = [{"to": "ann"}] if "many" in how else {"to": "ann"}
    if how.endswith("_sync"):
        await asyncio.to_thread(call, "send", payload, priority=5)
    else:
        await call("send", payload, priority=5)
    assert options_of(await only_job(stranger)) == ("mail", 7, 5, ("out",))


@pytest.mark.parametrize("how", ["enqueue", "enqueue_sync", "enqueue_many", "enqueue_many_sync"])
async def test_the_options_hold_at_once_in_the_callers_own_transaction(
    stranger: Rota, app_url: str, how: str
) -> None:
    payload: Any = [{"to": "ann"}] if "many" in how else {"to": "ann"}
    async with transaction(app_url) as connection:
        answer = getattr(stranger, how)("send", payload, connection=connection)
        await answer if inspect.isawaitable(answer) else answer
    assert options_of(await only_job(stranger)) == OWN


async def test_a_task_is_read_once_in_the_callers_own_transactions(
    stranger: Rota, app_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[str] = []
    async with transaction(app_url) as connection:
        if isinstance(connection, sqlite3.Connection):
            connection.set_trace_callback(asked.append)
        for _ in range(3):
            await stranger.enqueue("send", {"to": "ann"}, connection=connection)
        assert sum("rota_documents" in statement for statement in asked) == bool(asked)
        await stranger.enqueue("sent", {"to": "ann"}, connection=connection)
    assert "did you mean 'send'?" in caplog.text


@asynccontextmanager
async def transaction(url: str) -> AsyncIterator[Any]:
    if url.startswith("sqlite"):
        connection: Any = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.execute("BEGIN IMMEDIATE")  # no one else can write now
    else:
        connection = psycopg.connect(url)
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


async def test_a_follow_up_by_name_uses_the_options_of_the_task(stranger: Rota, until: Any) -> None:
    @stranger.task
    async def order(ctx: Context) -> None:
        ctx.enqueue("send", {"to": "ann"}, priority=5)

    await work_for_a_moment(stranger, until)
    job = await order.enqueue()
    await drain(stranger)
    (follow_up,) = (await stranger.jobs(parent=job.id)).items
    assert options_of(follow_up) == ("mail", 7, 5, ("out",))


async def test_an_operator_who_enqueues_by_name_uses_the_options_of_the_task(stranger: Rota) -> None:
    view = await stranger.operations().jobs.enqueue(EnqueueRequest(task="send", payload={"to": "ann"}))
    assert options_of(view) == OWN


async def test_an_operator_who_misspells_a_task_is_warned_with_the_one_that_was_meant(
    stranger: Rota,
) -> None:
    said = "no worker has declared a task named 'sendd': the job waits until one does"
    for role, tenant, warning in (
        ("operator", None, f"{said}; did you mean 'send'?"),
        ("operator", "acme", said),
    ):
        jobs = stranger.operations(Actor(name="ann", role=role, tenant=tenant)).jobs
        assert (await jobs.enqueue(EnqueueRequest(task="sendd"))).warning == warning
        assert (await jobs.enqueue(EnqueueRequest(task="send", payload={"to": "ann"}))).warning is None


async def test_a_deploy_that_changes_options_counts_for_the_next_fire_whoever_fires(
    stranger: Rota, app_url: str, clock: FakeClock, make_app: Make, until: Any
) -> None:
    await stranger.schedules.create(name="s", task="send", every="1h", payload={"to": "ann"})
    newer = declare(make_app(app_url, clock=clock), queue="post", max_attempts=8)
    await work_for_a_moment(newer, until)
    older = declare(make_app(app_url, clock=clock))  # has not started since
    fresh = make_app(app_url, clock=clock)
    for app in (older, newer, fresh):
        assert options_of(await app.schedules.trigger("s"))[:2] == ("post", 8)


async def test_a_schedule_made_where_the_code_is_counts_before_any_worker_has_run(
    app_url: str, clock: FakeClock, make_app: Make
) -> None:
    maker, other = declare(make_app(app_url, clock=clock)), make_app(app_url, clock=clock)
    await maker.schedules.create(name="s", task="send", every="1h", payload={"to": "ann"})
    assert options_of(await other.schedules.trigger("s")) == OWN


async def test_an_unknown_name_is_warned_about_once_with_the_one_that_was_meant(
    stranger: Rota, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "rota.tasks")
    job: Any = None
    for _ in range(2):
        job = await stranger.enqueue("sendd", {})
    assert options_of(job) == ("default", 2, 0, ())
    (record,) = [one for one in caplog.records if one.name == "rota.tasks"]
    assert "no worker has declared a task named 'sendd'" in record.message
    assert "did you mean 'send'?" in record.message


async def test_what_is_published_describes_the_task(lite: Rota) -> None:
    declare(lite, backoff=Backoff(base=3), fail_on=ValueError)
    store = await lite.stores.get()
    await lite.published.publish(store)
    found = await lite.published.find(store, "send")
    assert found is not None
    assert found.description == "Send a letter."
    assert found.executor == "async"
    assert found.parameters == (
        TaskParameter(name="to", type="str", required=True),
        TaskParameter(name="copies", type="int", required=False),
    )
    assert found.options["timeout"] == 30.0
    assert found.options["backoff"]["base"] == 3
    assert "fail_on" not in found.options


async def test_publishing_writes_only_what_has_changed_and_renews_it_daily(
    lite: Rota, clock: FakeClock
) -> None:
    declare(lite)
    store = await lite.stores.get()

    async def published() -> list[tuple[str, int]]:
        await lite.published.publish(store)
        return [(one.key, one.version) for one in await store.documents(KIND)]

    assert await published() == [("send", 1)]
    assert await published() == [("send", 1)]
    lite.task(name="more")(nothing)
    assert await published() == [("more", 1), ("send", 1)]
    clock.advance(timedelta(days=1, seconds=1).total_seconds())
    assert await published() == [("more", 2), ("send", 2)]


async def test_what_a_tenant_registers_is_not_published(lite: Rota) -> None:
    async with lite.worker():
        await lite.register("acme", "rollup", nothing, every="1h")
        store = await lite.stores.get()
        await lite.published.publish(store)
        assert not await store.documents(KIND)


async def test_a_document_that_cannot_be_read_hides_no_other(lite: Rota, clock: FakeClock) -> None:
    declare(lite)
    store = await lite.stores.get()
    await lite.published.publish(store)
    await store.put_document(KIND, "broken", '{"name": 7}', 0, clock.now())
    body = '{"name": "newer", "options": {"queue": "q", "colour": "red", "max_attempts": 100000}}'
    await store.put_document(KIND, "newer", body, 0, clock.now())
    options = await lite.published.options_for_schedules(store)
    assert (options["newer"].queue, options["newer"].max_attempts) == ("q", None)
    assert options["send"].queue == "mail"


async def test_sql_uses_the_options_of_the_task(
    emptied_postgres_url: str, make_app: Make, until: Any, clock: FakeClock
) -> None:
    app = declare(make_app(emptied_postgres_url, clock=clock), tenant="acme", expires="15m", keep="90d")
    await work_for_a_moment(app, until)
    with psycopg.connect(emptied_postgres_url) as connection:
        connection.execute("SELECT rota.enqueue('send', '{\"to\": \"ann\"}')")
        connection.execute(
            "SELECT rota.enqueue('send', '{}', queue => 'q', tags => '{a}', max_attempts => 1)"
        )
        connection.execute("SELECT rota.enqueue('other')")
    jobs = list(reversed((await app.jobs()).items))
    assert sorted(map(options_of, jobs)) == [
        ("default", 3, 0, ()),
        ("mail", 7, 4, ("out",)),
        ("q", 1, 4, ("a",)),
    ]
    assert sorted(job.tenant for job in jobs) == ["acme", "acme", "default"]
    (sent,) = [job for job in jobs if job.queue == "mail"]
    assert (sent.keep, sent.expires_at) == (90 * 86400.0, sent.run_at + timedelta(minutes=15))


async def test_operators_see_what_a_task_declares(stranger: Rota) -> None:
    await stranger.pause(task="send")
    (task,) = (await stranger.operations().system.tasks()).items
    assert task.declared is not None
    assert (task.declared.options["queue"], task.declared.parameters[0].name) == ("mail", "to")
