"""What a job counts under: the limit of its task, its concurrency key, its units and its price."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rota import Context, Limit, OptionError, Rota, TaskSet
from rota.model import Actor, Job, LimitRule, LimitRules
from rota.operate.requests import EnqueueRequest
from rota.testing import FakeClock, drain

Make = Callable[..., Rota]


async def test_a_concurrency_key_is_filled_from_the_arguments_however_a_job_is_enqueued(
    still_app: Rota, clock: FakeClock
) -> None:
    app = still_app

    @app.task(concurrency_key="account:{account_id}", units=3, price=2.5)
    async def sync_account(account_id: int) -> None: ...

    @app.task
    async def parent(ctx: Context) -> None:
        ctx.enqueue(sync_account, account_id=5)

    def counts(job: Job) -> tuple[Any, ...]:
        return job.concurrency_key, job.units, job.price

    assert counts(await sync_account.enqueue(account_id=1)) == ("account:1", 3, 2.5)
    assert counts(await app.enqueue("sync_account", {"account_id": 2}, units=4)) == ("account:2", 4, 2.5)
    bound = sync_account.options(concurrency_key="all:{account_id}", price=0)
    assert counts(await bound.enqueue(3)) == ("all:3", 3, 0.0)
    assert counts(await sync_account.options(concurrency_key="one").enqueue(3)) == ("one", 3, 2.5)
    bulk = await sync_account.enqueue_many([{"account_id": n} for n in (6, 7)])
    assert [job.concurrency_key for job in bulk] == ["account:6", "account:7"]
    operations = app.operations(Actor(name="ann", role="admin", payloads=True))
    view = await operations.jobs.enqueue(EnqueueRequest(task="sync_account", payload={"account_id": 4}))
    assert (view.concurrency_key, view.units, view.price) == ("account:4", 3, 2.5)
    await parent.enqueue()
    await app.schedules.create(
        name="nightly", task="sync_account", cron="0 3 * * *", payload={"account_id": 8}
    )
    assert counts(await app.schedules.trigger("nightly")) == ("account:8", 3, 2.5)
    await drain(app)
    found = {job.concurrency_key for job in (await app.jobs(task="sync_account")).items}
    assert {f"account:{n}" for n in (1, 2, 4, 5, 6, 7, 8)} <= found
    stored = (await app.jobs(task="sync_account")).items
    assert {job.units for job in stored} == {3, 4}


@pytest.mark.parametrize("template", ["account:{acount_id}", "{account_id}:{other}"])
def test_a_template_that_names_an_unknown_argument_is_refused_when_the_task_is_declared(
    lite: Rota, template: str
) -> None:
    with pytest.raises(OptionError, match=r"task 'sync': concurrency_key=.* no argument"):

        @lite.task(concurrency_key=template)
        async def sync(account_id: int) -> None: ...


async def test_a_filled_key_of_more_than_200_characters_is_refused(lite: Rota) -> None:
    @lite.task(concurrency_key="k:{text}")
    async def work(text: str) -> None: ...

    assert (await work.enqueue(text="x" * 198)).concurrency_key == "k:" + "x" * 198
    with pytest.raises(OptionError, match=r"concurrency_key=.*must have 1 to 200 characters"):
        await work.enqueue(text="x" * 199)
    with pytest.raises(OptionError, match="the job is given no argument"):
        await work.options(concurrency_key="{pasword}").enqueue(text="x")
    for given, said in (
        ({"units": 0}, "units=0: must be a whole number from 1"),
        ({"price": -1}, "price=-1: "),
    ):
        with pytest.raises(OptionError, match=said):
            work.options(**given)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        (5, "limit=5: must be a Limit, such as Limit"),
        (Limit(), "limit: give running=…, rate=…, or both"),
        (Limit(running=0), "running=0: would let nothing run; pause it instead"),
        (Limit(rate="fast"), "rate='fast': is not a rate"),
        (Limit(running=1, strict=True), "strict=True: holds up the other jobs of a key"),
    ],
)
def test_a_limit_that_makes_no_sense_is_refused_when_the_task_is_declared(
    lite: Rota, limit: Any, said: str
) -> None:
    tasks = TaskSet()
    for place in (lite, tasks):
        with pytest.raises(OptionError) as caught:
            place.task(name="work", limit=limit)(lambda: None)
        assert said in str(caught.value) and "task 'work'" in str(caught.value)


async def test_the_limit_of_a_task_is_declared_when_a_worker_starts_and_cleared_by_code_without_it(
    app_url: str, make_app: Make
) -> None:
    async def run_once(limit: Limit | None) -> Rota:
        app = make_app(app_url)

        @app.task(limit=limit)
        async def call_crm() -> None: ...

        await call_crm.enqueue()
        await app.serve(burst=True)
        return app

    app = await run_once(Limit(running=5, rate="100/m", burst=20))
    held = await app.limits.get("task:call_crm")
    assert (held.most, held.rate, held.burst, held.source) == (5, "100/m", 20, "code")
    await app.limits.set("task:call_crm", running=9)
    app = await run_once(Limit(running=6))
    held = await app.limits.get("task:call_crm")
    assert (held.most, held.source, held.declared) == (9, "run time", Limit(running=6))
    await app.limits.drop("task:call_crm")
    app = await run_once(None)
    assert await app.limits.list() == []


async def test_the_limits_of_the_code_are_in_force_before_the_first_job_begins(
    app_url: str, make_app: Make
) -> None:
    app = make_app(app_url)
    seen: list[Any] = []

    @app.task(limit=Limit(running=5))
    async def report() -> None:
        seen.append([held.most for held in await app.limits.list()])

    await report.enqueue()
    await app.serve(burst=True)
    assert seen == [[5]]


async def test_units_above_the_burst_of_a_limit_are_refused_with_both_numbers(still_app: Rota) -> None:
    app = still_app

    @app.task(queue="ai", concurrency_key="openai:{model}")
    async def ask(model: str) -> None: ...

    await app.limits.set("key:openai:*", rate="600/m")  # ten at once
    assert (await ask.options(units=10).enqueue(model="a")).units == 10
    said = r"units=11: is more than the burst of limit key:openai:\*, 10, .* take at most 10 units"
    with pytest.raises(OptionError, match=said):
        await ask.options(units=11).enqueue(model="a")
    with pytest.raises(OptionError, match=said):
        await ask.options(units=11).enqueue_many([{"model": "a"}, {"model": "b"}])
    operations = app.operations(Actor(name="ann", role="admin"))
    with pytest.raises(OptionError, match=said):
        await operations.jobs.enqueue(EnqueueRequest(task="ask", payload={"model": "a"}, units=11))
    await ask.options(units=11, concurrency_key="other").enqueue(model="a")
    await app.limits.set("tenant:acme", rate="2/s")
    with pytest.raises(OptionError, match="burst of limit tenant:acme, 2"):
        await ask.options(units=3, concurrency_key="other", tenant="acme").enqueue(model="a")


def test_units_above_the_burst_are_refused_in_the_callers_own_transaction(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    app = Rota(f"sqlite:///{path}")
    app.limits.set_sync("key:ai", rate="10/s")
    app.close_sync()
    other = Rota(f"sqlite:///{path}")  # a process that has read nothing yet
    with closing(sqlite3.connect(path)) as connection, connection:
        given: Any = {"concurrency_key": "ai", "connection": connection}
        other.enqueue_sync("ask", {}, units=10, **given)
        with pytest.raises(OptionError, match="units=11: is more than the burst of limit key:ai, 10"):
            other.enqueue_sync("ask", {}, units=11, **given)
        with pytest.raises(OptionError, match="units=11"):
            other.enqueue_many_sync("ask", [{}], units=11, **given)
    assert len(other.jobs_sync().items) == 1
    other.close_sync()


async def test_a_schedule_whose_payload_does_not_fill_the_key_is_disabled_with_the_reason(
    still_app: Rota, clock: FakeClock
) -> None:
    app = still_app

    @app.task(concurrency_key="account:{account_id}")
    async def work(account_id: int = 0) -> None: ...

    await app.schedules.create(name="nightly", task="work", every="1h")
    clock.advance(3700)
    await drain(app)
    schedule = await app.schedules.get("nightly")
    assert not schedule.enabled and "no argument 'account_id'" in (schedule.reason or "")
    assert not (await app.jobs()).items


async def test_code_that_others_change_meanwhile_is_declared_all_the_same(still_app: Rota) -> None:
    app = still_app

    @app.task(limit=Limit(running=2))
    async def work() -> None: ...

    store = await app.stores.get()
    await store.put_rules([LimitRule(name="task:work", chosen=Limit(running=7))], app.clock.now())
    await app.published.publish(store)
    (rule,) = await store.survey(LimitRules())
    assert (rule.declared, rule.chosen) == (Limit(running=2), Limit(running=7))
