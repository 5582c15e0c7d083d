"""``TaskSet`` and ``app.include``: tasks declared in modules that do not import the app."""

from __future__ import annotations

import pytest

from rota import AlreadyRegistered, ConfigError, InvalidSchedule, OptionError, PayloadError, Rota, TaskSet
from rota.testing import drain, inline

MEMORY = "sqlite://:memory:"


def mail_tasks() -> TaskSet:
    tasks = TaskSet(prefix="mail", queue="mail", max_attempts=5)

    @tasks.task
    async def send(to: str) -> str:
        return f"sent to {to}"

    @tasks.task(queue="slow")
    def archive(to: str) -> None: ...

    @tasks.cron("0 8 * * *", timezone="Europe/Berlin", missed="skip")
    async def digest() -> None: ...

    return tasks


async def test_tasks_of_an_included_set_are_enqueued_and_run() -> None:
    app, tasks = Rota(MEMORY), mail_tasks()
    app.include(tasks)
    send, archive, _ = tasks
    job = await send.enqueue("anna")
    other = await archive.enqueue(to="ben")
    assert (job.task, job.queue, job.max_attempts) == ("mail.send", "mail", 5)
    assert (other.task, other.queue) == ("mail.archive", "slow")
    assert await drain(app) == 2
    assert await job.result(timeout=5) == "sent to anna"
    await app.close()


async def test_a_schedule_of_an_included_set_is_stored_when_a_worker_starts() -> None:
    app = Rota(MEMORY, name="shop")
    app.include(mail_tasks())
    async with app.worker() as worker:
        assert worker.scheduler is not None
        await worker.scheduler.tick()
    stored = await app.schedules.get("mail.digest")
    assert (stored.task, stored.cron, stored.queue, stored.missed) == (
        "mail.digest",
        "0 8 * * *",
        "mail",
        "skip",
    )
    assert (stored.source, stored.owner) == ("code", "shop")
    await app.close()


async def test_a_task_in_no_app_can_be_called_but_not_enqueued() -> None:
    send = next(iter(mail_tasks()))
    assert await send("anna") == "sent to anna"
    with pytest.raises(ConfigError, match=r"task 'mail.send' belongs to no app yet.*app\.include\(tasks\)"):
        await send.enqueue("anna")
    for enqueue in (send.enqueue_sync, send.options(delay=5).enqueue_sync, send.enqueue_many_sync):
        with pytest.raises(ConfigError, match="belongs to no app yet"):
            enqueue([{}])


def test_a_set_with_a_taken_name_is_not_included_at_all() -> None:
    app = Rota(MEMORY)

    @app.task(name="mail.archive")
    def mine() -> None: ...

    with pytest.raises(AlreadyRegistered, match=r"mail\.archive"):
        app.include(mail_tasks())
    assert app.registry.names == ("mail.archive",)
    assert app.registry.tasks["mail.archive"] is mine


def test_a_set_is_included_once_in_an_app() -> None:
    app, tasks = Rota(MEMORY), mail_tasks()
    app.include(tasks)
    with pytest.raises(AlreadyRegistered, match=r"mail\.send"):
        app.include(tasks)
    assert app.registry.names == ("mail.send", "mail.archive", "mail.digest")


async def test_tasks_enqueue_through_the_app_that_included_them_last() -> None:
    first, second, tasks = Rota(MEMORY), Rota(MEMORY), mail_tasks()
    first.include(tasks)
    second.include(tasks)
    send = next(iter(tasks))
    await send.enqueue("anna")
    assert [len((await app.jobs()).items) for app in (first, second)] == [0, 1]
    for app in (first, second):
        await app.close()


async def test_several_sets_are_included_in_one_call() -> None:
    orders = TaskSet()

    @orders.every("1h")
    def tidy() -> None: ...

    app = Rota(MEMORY)
    app.include(mail_tasks(), orders)
    assert app.registry.names == ("mail.send", "mail.archive", "mail.digest", "tidy")


async def test_inline_runs_the_jobs_of_an_included_set() -> None:
    app, tasks = Rota(MEMORY), mail_tasks()
    app.include(tasks)
    send = next(iter(tasks))
    async with inline(app):
        assert (await send.enqueue("anna")).output == "sent to anna"
    assert (await send.enqueue("ben")).output is None
    await app.close()


def test_mistakes_are_reported_where_the_task_is_declared() -> None:
    tasks = TaskSet()
    with pytest.raises(InvalidSchedule, match="cron"):

        @tasks.cron("61 * * * *")
        def never() -> None: ...

    with pytest.raises(PayloadError, match="missing"):

        @tasks.every("1h")
        def needs(order_id: int) -> None: ...

    with pytest.raises(OptionError, match="did you mean queue"):
        TaskSet(queu="mail")  # type: ignore[call-arg]
    with pytest.raises(OptionError, match="prefix"):
        TaskSet(prefix="")
    assert len(tasks) == 0


def test_names_are_unique_within_a_set() -> None:
    tasks = mail_tasks()
    with pytest.raises(AlreadyRegistered, match=r"mail\.send"):
        tasks.task(name="send")(lambda: None)
    assert repr(tasks) == "<TaskSet of mail.send, mail.archive, mail.digest>"
