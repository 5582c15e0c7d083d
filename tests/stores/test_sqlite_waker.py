"""SQLite: hints within one object, between objects, and between processes.

Each wait has a timeout far beyond the test's own: it can only end because of a hint.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from rota.model import State
from rota.store.calls import settle
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import T0, at, change, new, running
from rota.testing.conformance.firing import firing, run_of
from rota.testing.conformance.schedules import changed, rule, stored

LONG = 100.0  # longer than SOON by far
SOON = 20.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(f"sqlite:///{tmp_path}/rota.db")
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def other(store: SqliteStore) -> AsyncIterator[SqliteStore]:
    """The same file through an object of its own, as another process would have."""
    opened = SqliteStore(store.url)
    await opened.open()
    yield opened
    await opened.close()


async def begun(store: SqliteStore) -> None:
    """Let the waits that were started reach the writer's thread and its first look at the file."""
    for _ in range(5):
        await asyncio.sleep(0)
    await store.documents("nothing")
    await store.put_document("test", "round trip", "{}", None, T0)


async def test_an_insert_wakes_those_who_wait_for_its_queue(store: SqliteStore) -> None:
    waker = store.waker()
    mail = asyncio.create_task(waker.wait(["mail"], LONG))
    anything = asyncio.create_task(waker.wait(None, LONG))
    rest = asyncio.create_task(waker.wait(["rest"], LONG))
    await begun(store)
    await store.insert([new(queue="mail")], T0)
    await asyncio.wait_for(asyncio.gather(mail, anything), SOON)
    assert not rest.done()
    rest.cancel()
    await waker.close()


async def test_a_fire_wakes_the_waiters_of_its_queue_and_a_refused_one_wakes_none(store: SqliteStore) -> None:
    (late, schedule) = await stored(store, rule("late"), rule("on time"))
    await stored(store, changed(late, description="edited"))
    waker = store.waker()
    mail = asyncio.create_task(waker.wait(["mail"], LONG))
    rest = asyncio.create_task(waker.wait(["rest"], LONG))
    await begun(store)
    acts = [firing(late, run_of(late, queue="rest")), firing(schedule, run_of(schedule, queue="mail"))]
    assert await store.fire(acts, T0) == {late.id}
    await asyncio.wait_for(mail, SOON)
    assert not rest.done()
    rest.cancel()
    await waker.close()


async def test_a_hint_between_two_waits_is_not_lost(store: SqliteStore) -> None:
    waker = store.waker()
    await store.insert([new(queue="mail")], T0)
    await asyncio.wait_for(waker.wait(["mail"], LONG), SOON)
    await waker.wait(["mail"], 0.01)  # the hint came only once
    await waker.close()


async def test_a_wait_ends_after_its_timeout(store: SqliteStore) -> None:
    await asyncio.wait_for(store.waker().wait(None, 0.01), SOON)
    await asyncio.wait_for(store.waker().wait_finished((await running(store)).id, 0.01), SOON)


async def test_another_object_on_the_file_wakes_too(store: SqliteStore, other: SqliteStore) -> None:
    waker = store.waker()
    waiting = asyncio.create_task(waker.wait(["mail"], LONG))
    await begun(store)
    await other.insert([new(queue="mail")], T0)
    await asyncio.wait_for(waiting, SOON)


async def test_a_commit_between_claim_and_wait_is_seen(store: SqliteStore, other: SqliteStore) -> None:
    waker = store.waker()
    await waker.wait(["mail"], 0.001)
    await other.insert([new(queue="mail")], T0)
    await asyncio.wait_for(waker.wait(["mail"], LONG), SOON)


async def test_writes_that_make_nothing_ready_wake_no_one(store: SqliteStore, other: SqliteStore) -> None:
    waker = store.waker()
    waiting = asyncio.create_task(waker.wait(["mail"], LONG))
    await begun(store)
    for _ in range(20):
        await other.put_document("gate", "x", "{}", None, T0)
        await other.insert([new(queue="rest")], T0)
        await store.put_document("gate", "y", "{}", None, T0)
    assert not waiting.done()
    waiting.cancel()


async def test_an_earlier_due_time_wakes_the_sleeper(store: SqliteStore, other: SqliteStore) -> None:
    waker = store.waker()
    await other.insert([new(run_at=at(3600))], T0)
    await waker.wait(None, 0.05)
    waiting = asyncio.create_task(waker.wait(None, LONG))
    await begun(store)
    await other.insert([new(run_at=at(5))], T0)
    await asyncio.wait_for(waiting, SOON)


async def test_the_end_of_a_job_wakes_waiters_of_both_stores(store: SqliteStore, other: SqliteStore) -> None:
    job = await running(store)
    waits = [
        asyncio.create_task(one.waker().wait_finished(job.id, LONG))
        for one in (store, other, store.for_another_loop())
    ]
    await begun(store)
    await settle(store, [change(job, State.SUCCEEDED)], at(1))
    await asyncio.wait_for(asyncio.gather(*waits), SOON)


async def test_waiting_for_a_job_that_has_ended_or_never_was_returns(store: SqliteStore) -> None:
    job = await running(store)
    await settle(store, [change(job, State.FAILED)], at(1))
    await asyncio.wait_for(store.waker().wait_finished(job.id, LONG), SOON)
    await asyncio.wait_for(store.waker().wait_finished("missing", LONG), SOON)


async def test_a_plain_sqlite_client_of_another_process_wakes_us(store: SqliteStore, tmp_path: Path) -> None:
    await store.insert([new(queue="mail")], T0)
    taken = new(queue="mail")
    await store.insert([taken], T0)
    waker = store.waker()
    while True:  # spend the hint of our own insert
        waiting = asyncio.create_task(waker.wait(["bell"], LONG))
        await begun(store)
        if not waiting.done():
            break
    code = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
        "c.execute(\"UPDATE rota_jobs SET queue = 'bell' WHERE id = ?\", (sys.argv[2],)); c.commit()"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path / "rota.db"), taken.id
    )
    assert await process.wait() == 0
    await asyncio.wait_for(waiting, SOON)
    with closing(sqlite3.connect(tmp_path / "rota.db")) as connection:
        assert connection.execute("SELECT count(*) FROM rota_jobs WHERE queue = 'bell'").fetchone() == (1,)


async def test_a_scheduler_that_waits_alone_is_woken_by_a_row_written_elsewhere(
    store: SqliteStore, tmp_path: Path
) -> None:
    """No one waits for jobs while all slots of a worker are busy."""
    waker = store.waker()
    await begun(store)
    await waker.wait_schedules(0.01)  # what is there already
    waiting = asyncio.create_task(waker.wait_schedules(LONG))
    await begun(store)
    with closing(sqlite3.connect(tmp_path / "rota.db")) as connection, connection:
        connection.execute("INSERT INTO rota_schedules (name, task, every) VALUES ('s', 't', 60)")
    assert await asyncio.wait_for(waiting, SOON)
    assert not await waker.wait_schedules(0.05)
    await waker.close()
