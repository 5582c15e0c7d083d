"""Sync code can do all that async code can, under the same names with ``_sync``."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import Any

import pytest

from rota import Context, JobHandle, NotFound, Rota, SyncCallWarning, Task, TenantClient
from rota.operate.requests import BulkRequest, JobSelector
from rota.operate.tenant_client import TenantTask
from rota.operate.tenant_schedules import TenantSchedules
from rota.tasks.task import BoundTask

INTERNAL = {"clock", "hooks", "ids", "portal", "producer", "published", "registry", "runtime", "stores"}
BY_HAND = {
    (Rota, "serve"): "run is its sync twin",
    (Rota, "worker"): "part of running and run, which have twins",
}


@pytest.fixture
def app(store_url: str) -> Iterator[Rota]:
    app = Rota(store_url)
    yield app
    app.close_sync()


def public_classes() -> set[type]:
    """Those of users' objects: the app, its tasks and jobs, and whatever the app has, such as schedules."""
    app = Rota("sqlite://:memory:")
    parts = {name: type(getattr(app, name)) for name in dir(app) if not name.startswith("_")}
    owned = {
        part for name, part in parts.items() if part.__module__.startswith("rota.") and name not in INTERNAL
    }
    return {Rota, Task, BoundTask, JobHandle, TenantClient, TenantSchedules, TenantTask, *owned}


def is_async(function: Any) -> bool:
    plain = inspect.unwrap(function)
    return inspect.iscoroutinefunction(plain) or inspect.isasyncgenfunction(plain)


def async_methods() -> Iterator[tuple[type, str]]:
    for owner in public_classes():
        for name, function in inspect.getmembers(owner, inspect.isfunction):
            is_twin = name.endswith("_sync")
            if (
                not name.startswith("_")
                and not is_twin
                and is_async(function)
                and (owner, name) not in BY_HAND
            ):
                yield owner, name


METHODS = sorted(async_methods(), key=str)


def test_the_classes_that_users_hold_are_all_found() -> None:
    found = {owner.__name__ for owner, _ in METHODS}
    assert found >= {"Rota", "Task", "BoundTask", "JobHandle", "Schedules", "Calendars"}


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=[f"{o.__name__}.{n}" for o, n in METHODS])
def test_every_async_method_has_a_sync_twin_with_the_same_signature(owner: type, name: str) -> None:
    twin = getattr(owner, f"{name}_sync", None)
    remedy = f"add it below the method: {name}_sync = sync_twin({name})"
    assert twin is not None, f"{owner.__name__}.{name} has no sync twin; {remedy}"
    asynchronous = inspect.signature(getattr(owner, name))
    assert inspect.signature(twin).parameters == asynchronous.parameters
    assert twin.__name__ == f"{name}_sync" and twin.__doc__


def test_a_program_without_a_coroutine_does_everything(app: Rota) -> None:
    @app.task
    def double(n: int) -> int:
        return n * 2

    app.migrate_sync()
    job = double.enqueue_sync(n=4)
    assert app.job_sync(job.id).state == "queued"
    assert app.stats_sync()["queued"] == 1
    assert app.why_sync(job.id).summary
    app.pause_sync(queue="default", reason="a test")
    assert app.resume_sync(queue="default") and not app.resume_sync(queue="default")
    other = double.enqueue_sync(n=5)
    other.cancel_sync("not needed")
    assert other.refresh_sync().state == "cancelled"
    assert app.retry_sync(other.id).state == "queued"
    with app.running_sync(scheduler=False) as worker:
        assert app.is_running
        assert (job.result_sync(timeout=30), app.wait_sync(other.id, timeout=30)) == (8, 10)
        assert worker.finished <= 2
    assert not app.is_running
    assert {one.id for one in app.jobs_sync(task="double").items} == {job.id, other.id}
    selected = BulkRequest(action="retry", filter=JobSelector(task="double"), dry_run=True)
    assert app.call_sync(app.operations().jobs.bulk, selected).matched == 2
    with pytest.raises(NotFound):
        app.job_sync("00000000-0000-7000-8000-000000000000")


def test_schedules_and_calendars_have_twins_that_work(app: Rota) -> None:
    app.calendars.put_sync("holidays", [date(2030, 12, 25)])
    assert [one.name for one in app.calendars.list_sync()] == ["holidays"]
    app.schedules.create_sync(name="nightly", task="clean", cron="0 3 * * *", calendar="holidays")
    assert len(app.schedules.preview_sync("nightly", 3)) == 3
    assert app.schedules.disable_sync("nightly").enabled is False
    assert app.schedules.trigger_sync("nightly").task == "clean"
    app.schedules.delete_sync("nightly")
    assert not app.schedules.list_sync().items


def test_recurring_work_can_be_registered_from_sync_code(app: Rota) -> None:
    ran = threading.Event()
    with app.running_sync():
        app.register_sync("acme", "rollup", ran.set, every="1h", start_at=app.clock.now())
        assert ran.wait(30)
        app.unregister_sync("acme", "rollup")


def test_a_sync_call_in_a_task_knows_the_job_that_makes_it(app: Rota) -> None:
    @app.task
    def child() -> None: ...

    @app.task
    def parent(ctx: Context) -> list[str]:
        return [child.enqueue_sync().id, child.enqueue_many_sync([{}])[0].id]

    with app.running_sync(), warnings.catch_warnings():
        warnings.simplefilter("error")
        job = parent.options(tenant="acme").enqueue_sync()
        children = job.result_sync(timeout=30)
    for one in children:
        found = app.job_sync(one)
        assert (found.parent, found.tenant, found.origin) == (job.id, "acme", "job")


def test_many_threads_share_the_sync_api(app: Rota) -> None:
    def use(n: int) -> str:
        job = app.enqueue_sync("work", {"n": n})
        app.cancel_sync(job.id)
        return app.job_sync(job.id).state

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(use, range(100))) == {"cancelled"}


def test_a_sync_call_in_a_coroutine_warns_at_the_line_that_makes_it_and_works(app: Rota) -> None:
    async def main() -> str:
        job = app.enqueue_sync("work")
        return app.job_sync(job.id).task

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert asyncio.run(main()) == "work"
    texts = [str(one.message) for one in caught if one.category is SyncCallWarning]
    assert [text.partition(" ")[0] for text in texts] == ["enqueue_sync()", "job_sync()"]
    assert "await job(…) instead" in texts[1]
    first = inspect.getsourcelines(main)[1]
    assert [(one.filename, one.lineno - first) for one in caught] == [(__file__, 1), (__file__, 2)]


def test_closing_in_sync_code_leaves_no_thread_behind(store_url: str) -> None:
    app = Rota(store_url)
    app.enqueue_sync("work")
    asyncio.run(app.stats())
    app.close_sync()
    app.close_sync()
    deadline = time.monotonic() + 30
    while left := [one.name for one in threading.enumerate() if one.name.startswith("rota")]:
        assert time.monotonic() < deadline, left
        time.sleep(0.005)
