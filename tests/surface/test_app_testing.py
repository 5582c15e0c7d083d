"""The public testing utilities."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rota import Rota
from rota.testing import assert_enqueued, assert_not_enqueued, drain, inline


async def test_inline_runs_a_job_when_it_is_enqueued(lite: Rota) -> None:
    @lite.task
    async def double(n: int) -> int:
        return 2 * n

    async with inline(lite):
        job = await double.enqueue(n=4)
        assert (job.state, job.output) == ("succeeded", 8)
    assert (await double.enqueue(n=5)).state == "queued"


async def test_assert_enqueued_finds_jobs_by_payload(lite: Rota) -> None:
    @lite.task
    async def send(to: str, copies: int = 1) -> None: ...

    job = await send.enqueue("me", copies=2)
    assert assert_enqueued(send, to="me").id == job.id
    assert assert_enqueued(send).id == job.id
    assert_not_enqueued(send, to="you")
    with pytest.raises(AssertionError, match=r"no job of task 'send' has .*you(.|\n)*me"):
        assert_enqueued(send, to="you")
    with pytest.raises(AssertionError, match=job.id):
        assert_not_enqueued(send, copies=2)


async def test_drain_moves_a_fake_clock_through_all_retries(lite: Rota) -> None:
    @lite.task(max_attempts=3)
    async def broken() -> None:
        raise ValueError("no")

    await broken.options(delay=3600).enqueue()
    assert await drain(lite, advance=True) == 3


async def test_inline_runs_jobs_enqueued_synchronously_and_in_bulk(lite: Rota) -> None:
    @lite.task
    async def double(n: int) -> int:
        return 2 * n

    async with inline(lite):
        assert double.enqueue_sync(n=1).output == 2
        assert [job.output for job in await double.enqueue_many([{"n": 2}, {"n": 3}])] == [4, 6]
        assert [job.output for job in double.enqueue_many_sync([{"n": 4}])] == [8]


async def test_inline_runs_children_after_their_parents(lite: Rota) -> None:
    order: list[str] = []

    @lite.task
    async def child() -> None:
        order.append("child")

    @lite.task
    async def parent() -> None:
        await child.enqueue()
        order.append("parent")

    async with inline(lite):
        await parent.enqueue()
    assert order == ["parent", "child"]


async def test_inline_accepts_a_job_with_auto_remove(lite: Rota) -> None:
    @lite.task(auto_remove=True)
    async def work() -> None: ...

    async with inline(lite):
        await work.enqueue()
    assert (await lite.jobs()).items == []


async def test_drain_advances_only_a_fake_clock(make_app: Any) -> None:
    app = make_app("sqlite://:memory:")
    app.task(name="work")(lambda: None)
    with pytest.raises(TypeError, match="FakeClock"):
        await drain(app, advance=True)


async def test_assert_enqueued_compares_options(lite: Rota) -> None:
    @lite.task(queue="mail")
    async def send(to: str) -> None: ...

    job = await send.options(tenant="acme", key="me:1", delay=60, priority=4, tags=["a", "b"]).enqueue("me")
    for options in (
        {"tenant": "acme", "key": "me:1"},
        {"delay": 60},
        {"run_at": job.run_at, "priority": 4},
        {"tags": ["a"]},
    ):
        assert assert_enqueued(send.options(**options), to="me").id == job.id
    assert_not_enqueued(send.options(tenant="other"), to="me")
    assert_not_enqueued(send.options(delay=61))
    with pytest.raises(AssertionError, match=r"key='me:2'(.|\n)*tenant acme.*key me:1"):
        assert_enqueued(send.options(key="me:2"))
    with pytest.raises(TypeError, match="on_conflict"):
        assert_enqueued(send.options(on_conflict="raise"))


PLUGIN_TEST = """
from shop import nightly, outbox, send
from rota.testing import assert_enqueued, drain, drain_sync

def test_sync(rota_app):
    send.enqueue_sync(to="a")
    assert_enqueued(send, to="a")
    assert drain_sync(rota_app) == 1
    assert outbox == ["a"]

def test_each_test_has_an_empty_store(rota_app, fake_clock):
    assert drain_sync(rota_app, advance="1d") == 1
    assert outbox == ["a", "nightly"]
    assert rota_app.clock is fake_clock

async def test_async(rota_app):
    await send.enqueue(to="b")
    assert await drain(rota_app) == 1
    assert outbox[-1] == "b"
"""
ASYNC = "asyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
PLUGIN_APP = """
from rota import Rota
app = Rota("sqlite:///production.db")
outbox = []

@app.task
def send(to: str) -> None:
    outbox.append(to)

@app.cron("0 3 * * *")
def nightly() -> None:
    outbox.append("nightly")
"""


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_the_plugin_gives_an_app_to_tests(tmp_path: Path, kind: str) -> None:
    url = "rota_url =\n" if kind == "memory" else f"rota_url = sqlite:///{tmp_path / 'test.db'}\n"
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nrota_app = shop:app\npythonpath = .\n{ASYNC}{url}")
    (tmp_path / "shop.py").write_text(PLUGIN_APP)
    (tmp_path / "test_shop.py").write_text(PLUGIN_TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "production.db").exists()
