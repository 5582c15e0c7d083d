"""SQLite: several processes on one file, a killed one, and a forked one."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from rota.errors import StoreUnavailable
from rota.model import CurrentOverview, State
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import T0, new

CHILD = str(Path(__file__).with_name("sqlite_child.py"))


async def test_eight_processes_write_one_file_and_none_is_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/rota.db"
    children = [
        await asyncio.create_subprocess_exec(
            sys.executable, CHILD, "work", url, "60", stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for _ in range(8)
    ]
    ran: list[str] = []
    for child in children:
        out, errors = await child.communicate()
        assert child.returncode == 0, errors.decode()
        ran += out.decode().split()
    assert len(ran) == len(set(ran)) == 480
    store = SqliteStore(url)
    overview = await store.survey(CurrentOverview(T0))
    assert overview.counts[State.SUCCEEDED] == 480
    assert overview.counts[State.QUEUED] == overview.counts[State.RUNNING] == 0
    await store.close()


@pytest.mark.crash
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    child = subprocess.Popen(
        [sys.executable, CHILD, "insert", f"sqlite:///{path}"], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    acknowledged = [child.stdout.readline().strip() for _ in range(300)]
    child.kill()
    acknowledged += [line.strip() for line in child.stdout if line.endswith("\n")]
    child.wait()
    child.stdout.close()
    with closing(sqlite3.connect(path)) as connection:
        stored = {row[0] for row in connection.execute("SELECT id FROM rota_jobs")}
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert set(acknowledged) <= stored


def in_child(store: SqliteStore, answers: multiprocessing.SimpleQueue[str]) -> None:
    async def insert() -> str:
        try:
            await store.insert([new(queue="child")], T0)
        except StoreUnavailable as error:
            return str(error)
        await store.close()
        return "stored"

    answers.put(asyncio.run(insert()))


def forked(store: SqliteStore) -> str:
    """Use the store here, then in a forked child; what the child says."""
    context = multiprocessing.get_context("fork")
    answers: multiprocessing.SimpleQueue[str] = context.SimpleQueue()
    child = context.Process(target=in_child, args=(store, answers))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return answers.get()


async def test_a_forked_child_opens_the_file_for_itself(tmp_path: Path) -> None:
    store = SqliteStore(f"sqlite:///{tmp_path}/rota.db")
    await store.open()
    first, second = new(queue="parent"), new(queue="parent")
    await store.insert([first], T0)
    assert forked(store) == "stored"
    await store.insert([second], T0)
    depths = (await store.survey(CurrentOverview(T0))).queues
    assert {queue: depth.due for queue, depth in depths.items()} == {"child": 1, "parent": 2}
    await store.close()


async def test_a_forked_child_of_a_memory_store_is_refused() -> None:
    store = SqliteStore("sqlite://:memory:")
    await store.insert([new()], T0)
    assert "use a database file" in forked(store)
    await store.close()
