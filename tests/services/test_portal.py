"""The loop for sync calls: each call ends, whatever becomes of the app around it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from rota import AppClosed, Rota, RotaError
from rota.runtime.portal import Portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    async def nothing() -> None: ...

    portal = Portal(lambda: None, nothing)
    yield portal
    portal.close()


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_a_call_that_waits_for_ever_fails_when_the_portal_closes(portal: Portal) -> None:
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(portal.call, wait)
        assert begun.wait(30)
        portal.close()
        with pytest.raises(AppClosed, match="closed while this call was under way"):
            waiting.result(30)


def test_a_call_that_is_nearly_done_is_let_end_when_the_portal_closes(portal: Portal) -> None:
    begun = threading.Event()

    async def brief() -> str:
        begun.set()
        await asyncio.sleep(0.1)
        return "done"

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(portal.call, brief)
        assert begun.wait(30)
        portal.close()
        assert waiting.result(30) == "done"


def test_a_call_that_refuses_to_end_does_not_hold_up_the_others_or_its_caller(
    portal: Portal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rota.runtime.portal.LAST_ANSWERS_S", 0.05)
    begun, release = threading.Event(), threading.Event()

    async def stubborn() -> None:
        begun.set()
        while not release.is_set():
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(portal.call, stubborn)
        assert begun.wait(30)
        monkeypatch.setattr("rota.runtime.portal.CLOSING_S", 0.1)
        portal.close()
        assert portal.call(answer) == 42  # another thread serves from now on
        release.set()
        assert waiting.result(30) is None


async def answer() -> int:
    return 42


def test_calls_that_meet_a_close_return_or_fail_and_never_hang(store_url: str) -> None:
    app, over = Rota(store_url), threading.Event()

    def enqueue_for_ever() -> set[str]:
        seen: set[str] = set()
        while not over.is_set():
            try:
                app.enqueue_sync("work")
            except RotaError as error:
                seen.add(type(error).__name__)
        return seen

    app.enqueue_sync("work")
    with ThreadPoolExecutor(4) as pool:
        producers = [pool.submit(enqueue_for_ever) for _ in range(4)]
        for number in range(15):
            if number % 2:
                app.portal.close()
            else:
                asyncio.run(app.close())
        over.set()
        seen = set().union(*(producer.result(30) for producer in producers))
    assert seen <= {"AppClosed", "StoreUnavailable"}
    app.portal.close()


def test_a_call_on_the_portals_own_loop_is_refused_instead_of_waiting_for_itself(portal: Portal) -> None:
    async def outer() -> int:
        return portal.call(answer)

    with pytest.raises(RotaError, match="await the async method"):
        portal.call(outer)


def test_a_portal_whose_loop_was_torn_down_fails_its_calls_and_starts_again(
    portal: Portal, caplog: pytest.LogCaptureFixture
) -> None:
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def leave() -> None:
        raise SystemExit(3)

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(portal.call, wait)
        assert begun.wait(30)
        with pytest.raises(SystemExit):
            portal.call(leave)
        with pytest.raises((AppClosed, asyncio.CancelledError)):
            waiting.result(30)
    eventually(lambda: "ended" in caplog.text)
    assert portal.call(answer) == 42


INTERRUPTED = """
import asyncio, os, signal, sys, threading
from rota import Rota
app = Rota(sys.argv[1])
job = app.enqueue_sync("work")
cancelled = threading.Event()

async def wait():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        await app.wait(job.id)
    except asyncio.CancelledError:
        cancelled.set()
        raise

try:
    app.portal.call(wait)
except KeyboardInterrupt:
    print("interrupted", cancelled.wait(30), app.portal.call(app.stats)["queued"])
"""

LEFT = """
import sys, threading
from rota import Rota
app = Rota(sys.argv[1])
job = app.enqueue_sync("work")
threading.Thread(target=app.portal.call, args=(app.wait, job.id), daemon=True).start()
print("left")
"""


@pytest.mark.parametrize(("program", "said"), [(INTERRUPTED, "interrupted True 1"), (LEFT, "left")])
def test_a_program_that_is_interrupted_or_ends_in_a_sync_call_ends(
    program: str, said: str, migrated_postgres_url: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "always::ResourceWarning", "-c", program, migrated_postgres_url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.strip() == said
    assert (done.returncode, done.stderr) == (0, "")


def test_a_forked_child_has_a_portal_and_connections_of_its_own(store_url: str) -> None:
    if ":memory:" in store_url:
        pytest.skip("a database in memory belongs to one process")
    app = Rota(store_url)
    app.enqueue_sync("work")
    portal_lock, store_lock = app.portal._lock, app.stores._lock
    with portal_lock, store_lock:  # as other threads may hold them at that moment
        child = os.fork()
    if child == 0:
        status = 1
        try:
            app.enqueue_sync("work")
            asyncio.run(app.job(app.enqueue_sync("work").id))
            asyncio.run(app.close())
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert app.portal.call(app.stats)["queued"] == 3
    app.portal.close()
