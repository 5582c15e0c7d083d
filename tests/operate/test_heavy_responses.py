"""Heavy answers: off the loop, shared, kept for a moment, bounded, and stopped when no one waits."""

from __future__ import annotations

import asyncio
import threading

import pytest

from rota.runtime import heavy
from rota.runtime.heavy import Abandoned, Caller, HeavyResponses, TooBusy, Work, heavy_response, serve_with

DEADLINE_S = 60.0


class Leaving(Caller):
    """A caller that leaves when told."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def gone(self) -> None:
        await self.left.wait()


class Counted:
    """Makes an answer when told, and counts how often."""

    def __init__(self) -> None:
        self.made = 0
        self.go_on = threading.Event()

    async def make(self, work: Work) -> int:
        self.made += 1
        return await work.run(self._compute, work, self.made)

    def _compute(self, work: Work, number: int) -> int:
        while not self.go_on.wait(0.001):
            work.check()
        return number


async def settled(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_the_same_question_at_the_same_time_is_answered_once() -> None:
    answers, counted = HeavyResponses(), Counted()
    asked = [asyncio.create_task(answers.answer("q", Caller(), counted.make)) for _ in range(5)]
    other = asyncio.create_task(answers.answer("other", Caller(), counted.make))
    await settled()
    counted.go_on.set()
    assert await asyncio.gather(*asked) == [1] * 5
    assert (await other, counted.made) == (2, 2)
    assert await answers.answer("q", Caller(), counted.make) == 3  # a cheap answer is not kept
    answers.close()


async def test_an_answer_that_took_long_is_kept_until_something_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(heavy, "CHEAP_S", 0.0)
    monkeypatch.setattr(heavy, "KEPT_FOR", 1e9)
    monkeypatch.setattr(heavy, "LONGEST_KEPT_S", 1e9)
    answers, counted = HeavyResponses(), Counted()
    counted.go_on.set()
    assert [await answers.answer("q", Caller(), counted.make) for _ in range(3)] == [1, 1, 1]
    answers.forget()
    assert await answers.answer("q", Caller(), counted.make) == 2
    for number in range(heavy.MOST_KEPT + 10):
        await answers.answer(number, Caller(), counted.make)
    assert len(answers._kept) == heavy.MOST_KEPT
    answers.close()


async def test_an_answer_begun_before_a_change_is_not_given_to_later_callers() -> None:
    answers, counted = HeavyResponses(), Counted()
    before = asyncio.create_task(answers.answer("q", Caller(), counted.make))
    await settled()
    answers.forget()
    after = asyncio.create_task(answers.answer("q", Caller(), counted.make))
    await settled()
    counted.go_on.set()
    assert (await before, await after) == (1, 2)
    answers.close()


async def test_work_stops_when_the_last_caller_has_gone_and_not_before() -> None:
    answers, counted, works = HeavyResponses(), Counted(), list[Work]()

    async def make(work: Work) -> int:
        works.append(work)
        return await counted.make(work)

    first, second = Leaving(), Leaving()
    asked = [asyncio.create_task(answers.answer("q", one, make)) for one in (first, second)]
    await settled()
    first.left.set()
    with pytest.raises(Abandoned):
        await asked[0]
    assert not works[0].is_stopped
    second.left.set()
    with pytest.raises(Abandoned):
        await asked[1]
    assert works[0].is_stopped
    counted.go_on.set()
    assert await answers.answer("q", Caller(), make) == 2  # not the one that was stopped
    answers.close()


async def test_the_loop_goes_on_while_an_answer_is_made() -> None:
    answers, turns = HeavyResponses(), 0
    enough = threading.Event()

    def compute(work: Work) -> None:
        while not enough.is_set():  # busy all the time
            work.check()

    asked = asyncio.create_task(answers.answer("q", Caller(), lambda work: work.run(compute, work)))
    async with asyncio.timeout(DEADLINE_S):
        while turns < 20:
            await asyncio.sleep(0.001)
            turns += 1
    assert not asked.done()
    enough.set()
    await asked
    answers.close()


async def test_work_is_told_when_its_time_is_spent() -> None:
    work = Work(cpu_s=0.02)

    def compute() -> int:
        steps = 0
        while work.step():
            steps += 1
        return steps

    assert await work.run(compute) > 0
    assert work.is_spent


async def test_too_many_at_once_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heavy, "MOST_WAITING", 3)
    answers, counted = HeavyResponses(), Counted()
    asked = [asyncio.create_task(answers.answer(n, Caller(), counted.make)) for n in range(3)]
    await settled()
    with pytest.raises(TooBusy):
        await answers.answer("one more", Caller(), counted.make)
    counted.go_on.set()
    assert sorted(await asyncio.gather(*asked)) == [1, 2, 3]
    answers.close()


async def test_a_program_without_a_server_gets_its_own_answer() -> None:
    counted = Counted()
    counted.go_on.set()
    assert await heavy_response("q", counted.make) == 1
    answers = HeavyResponses()
    serve_with(answers, Caller())
    assert await heavy_response("q", counted.make) == 2
    answers.close()
