"""How long the answers of a store are waited for."""

from __future__ import annotations

import asyncio

import pytest

from rota import StoreUnavailable
from rota.worker.deadline import StoreDeadline


async def never() -> None:
    await asyncio.Event().wait()


async def test_an_answer_in_time_is_returned() -> None:
    async def answer() -> int:
        return 42

    assert await StoreDeadline(10).answer(answer()) == 42


async def test_a_missing_answer_is_an_unavailable_store() -> None:
    with pytest.raises(StoreUnavailable, match=r"the store did not answer within 0\.01 s"):
        await StoreDeadline(0.01).answer(never())


async def test_a_shorter_limit_applies_to_the_answer_under_way() -> None:
    deadline = StoreDeadline(3600)
    waiting = asyncio.create_task(deadline.answer(never()))
    await asyncio.sleep(0)
    deadline.limit(0.01)
    with pytest.raises(StoreUnavailable, match=r"within 0\.01 s"):
        await waiting
