"""The public testing utilities."""

from __future__ import annotations

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
