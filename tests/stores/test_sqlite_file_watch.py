"""SQLite: hearing of writes to the log, and doing without."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest

from rota.store.sqlite import writer
from rota.store.sqlite.file_watch import watch
from rota.store.sqlite.store import SqliteStore
from rota.testing.conformance.factories import T0, new

SOON = 20.0

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has inotify")


@linux
def test_a_write_is_reported_once_each_time_the_watch_is_armed(tmp_path: Path) -> None:
    path, heard = tmp_path / "log", threading.Semaphore(0)
    path.touch()
    watching = watch(str(path), heard.release)
    assert watching is not None
    for _ in range(3):
        assert watching.arm()
        path.write_bytes(b"x")
        assert heard.acquire(timeout=SOON)
    path.write_bytes(b"x")
    assert not heard.acquire(timeout=0.05)
    assert watching.arm()  # what was written meanwhile is heard now
    assert heard.acquire(timeout=SOON)
    watching.close()
    assert "rota-sqlite-watch" not in {thread.name for thread in threading.enumerate()}


@linux
def test_a_file_that_is_gone_ends_the_watch(tmp_path: Path) -> None:
    path, heard = tmp_path / "log", threading.Semaphore(0)
    path.touch()
    watching = watch(str(path), heard.release)
    assert watching is not None
    watching.arm()
    os.unlink(path)
    assert heard.acquire(timeout=SOON)
    assert not watching.arm()
    watching.close()


def test_there_is_no_watch_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert watch(str(tmp_path / "nothing"), lambda: None) is None


def rests(one: writer.Writer) -> None:
    """Wait until it has stopped to look eagerly."""
    for _ in range(10_000):
        if one._pause >= writer.REST_S:
            return
        threading.Event().wait(0.001)
    raise AssertionError("it never rests")


@pytest.mark.parametrize("heard", [True, False], ids=["watching", "polling"])
async def test_a_resting_sleeper_notices_other_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heard: bool
) -> None:
    if heard:
        monkeypatch.setattr(writer, "WATCHED_REST_S", 1000.0)  # nothing but the watch can end it
    else:
        monkeypatch.setattr(writer, "watch", lambda path, heard: None)
    url = f"sqlite:///{tmp_path}/rota.db?synchronous=normal"  # a slow disk could outlast the eager looks
    store, other = SqliteStore(url), SqliteStore(url)
    await store.open()
    await other.open()
    waker = store.waker()
    for queue in ("mail", "post"):
        waiting = asyncio.create_task(waker.wait([queue], 100.0))
        await asyncio.to_thread(rests, store._engine._writer)
        await other.insert([new(queue=queue)], T0)
        await asyncio.wait_for(waiting, SOON)
    await other.close()
    await store.close()
