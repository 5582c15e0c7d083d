"""Keys in bulk, keys that are filled from arguments, keys that stay taken."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg
import pytest

from rota import DuplicateJob, OptionError, Rota
from rota.testing import FakeClock, drain


async def test_a_bulk_call_fills_a_key_for_each_job(app: Rota) -> None:
    held = await app.enqueue("work", {"n": 1}, key="n:1", delay=60)
    jobs = await app.enqueue_many("work", [{"n": n % 80} for n in range(100)], key="n:{n}", delay=60)
    assert len({job.id for job in jobs}) == 80
    assert (jobs[1].id, jobs[81].id, jobs[99].id) == (held.id, held.id, jobs[19].id)
    assert (await app.jobs(task="work", limit=200)).items[0].key == "n:79"
    again = app.enqueue_many_sync("work", [{"n": 1}, {"n": 200}], key="n:{n}", delay=60)
    assert [again[0].id, again[1].key] == [held.id, "n:200"]


async def test_duplicates_in_a_bulk_call_are_treated_as_asked(app: Rota) -> None:
    first = await app.enqueue("work", {"n": 1, "v": "old"}, key="n:1", delay=60)
    payloads = [{"n": 1, "v": "a"}, {"n": 2, "v": "b"}, {"n": 1, "v": "c"}]
    jobs = await app.enqueue_many("work", payloads, key="n:{n}", on_conflict="replace", delay=60)
    assert [jobs[0].id, jobs[2].id] == [first.id] * 2
    assert (await first.refresh()).payload == {"n": 1, "v": "c"}
    with pytest.raises(
        DuplicateJob, match=r"2 of 3 jobs were refused, the others are stored.*'n:1'"
    ) as caught:
        payloads[1]["n"] = 3
        await app.enqueue_many("work", payloads, key="n:{n}", on_conflict="raise", delay=60)
    assert caught.value.job_id == first.id
    assert sorted(str(job.key) for job in (await app.jobs(task="work")).items) == ["n:1", "n:2", "n:3"]


async def test_a_key_without_a_placeholder_is_refused_in_a_bulk_call(lite: Rota) -> None:
    with pytest.raises(OptionError, match="fill it from their arguments"):
        await lite.enqueue_many("work", [{"n": 1}], key="k")
    with pytest.raises(OptionError, match="no argument 'm'"):
        await lite.enqueue_many("work", [{"n": 1}], key="k:{m}")
    assert not (await lite.jobs()).items


async def test_a_task_declares_the_key_of_its_jobs(app: Rota) -> None:
    @app.task(key="order:{order_id}", on_conflict="raise")
    async def bill(order_id: int) -> None: ...

    job = await bill.enqueue(order_id=42)
    assert job.key == "order:42"
    with pytest.raises(DuplicateJob):
        await app.enqueue("bill", {"order_id": 42})
    other = await bill.options(key="mine").enqueue(order_id=42)
    assert other.key == "mine"
    with pytest.raises(OptionError, match=r"task 'wrong': key='x:\{id\}'.*'id'"):

        @app.task(key="x:{id}")
        async def wrong(order_id: int) -> None: ...


async def test_a_key_is_kept_after_a_success_and_given_up_after_a_failure(
    still_app: Rota, clock: FakeClock
) -> None:
    app = still_app

    @app.task(key="k:{n}", key_for="1h", max_attempts=1)
    async def work(n: int) -> int:
        if n < 0:
            raise ValueError("no")
        return n

    good, bad = await work.enqueue(1), await work.enqueue(-1)
    await drain(app)
    again = await work.enqueue(1)
    assert (again.id, again.state, again.output) == (good.id, "succeeded", 1)
    assert (await work.enqueue(-1)).id != bad.id
    with pytest.raises(DuplicateJob, match=r"which is succeeded.*or delete it, for it keeps its key"):
        await work.options(on_conflict="replace").enqueue(1)
    clock.advance(3601)
    assert (await work.enqueue(1)).id != good.id


async def test_a_period_has_a_key_of_its_own(still_app: Rota, clock: FakeClock) -> None:
    async def enqueue() -> Any:
        job = await still_app.enqueue("digest", key="digest", key_per="1d")
        await drain(still_app)
        return job

    @still_app.task
    async def digest() -> None: ...

    ids = []
    for hours in (0, 6, 12, 6):  # it begins at noon
        clock.advance(hours * 3600)
        ids.append((await enqueue()).id)
    assert (ids[0] == ids[1], ids[2] == ids[3], ids[1] == ids[2]) == (True, True, False)


async def test_keys_of_a_bulk_call_join_the_callers_transaction(app: Rota, app_url: str) -> None:
    await app.migrate()
    connect: Any = psycopg.connect if app_url.startswith("postgres") else sqlite3.connect
    connection = connect(app_url.removeprefix("sqlite:///"))
    try:
        options: Any = {"key": "n:{n}", "key_for": "forever", "connection": connection}
        jobs = app.enqueue_many_sync("work", [{"n": 1}, {"n": 2}, {"n": 1}], **options)
        assert jobs[0].id == jobs[2].id
        connection.commit()

        @app.task
        async def work(n: int) -> None: ...

        await drain(app)
        (again,) = app.enqueue_many_sync("work", [{"n": 2}], **options)
        assert (again.id, again.state) == (jobs[1].id, "succeeded")
        connection.rollback()
    finally:
        connection.close()


async def test_sql_users_keep_keys_too(make_app: Any, emptied_postgres_url: str) -> None:
    app = make_app(emptied_postgres_url)

    @app.task
    async def work() -> None: ...

    ask = "SELECT rota.enqueue('work', key => 'k', key_for => '1 hour')"
    with psycopg.connect(emptied_postgres_url, autocommit=True) as connection:
        first = connection.execute(ask).fetchone()
        await drain(app)
        assert connection.execute(ask).fetchone() == first
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="key is NULL"):
            connection.execute("SELECT rota.enqueue('work', key_for => '1 hour')")
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="from 0 to 100 years"):
            connection.execute("SELECT rota.enqueue('work', key => 'k', key_for => '-1 hour')")


@pytest.mark.parametrize("many", [False, True])
async def test_secret_argument_does_not_get_into_a_key(app: Rota, many: bool) -> None:
    given = {"host": "db", "account": {"password": "canary"}}
    key = "{host}:{account.password}"
    with pytest.raises(OptionError, match="password is secret by its name"):
        await (app.enqueue_many("dial", [given], key=key) if many else app.enqueue("dial", given, key=key))
    assert (await app.enqueue("dial", given, key="{host}")).key == "db"
