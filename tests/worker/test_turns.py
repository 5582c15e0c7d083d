"""Turns with the store: what is sent, kept and confirmed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rota import Rota, State, StoreError, StoreUnavailable
from rota.model import ClaimRequest, Settlement, TurnResult
from rota.runtime.clock import monotonic
from rota.testing import drain
from rota.worker.claim_size import MOST_AT_ONCE
from rota.worker.turns import MAX_SETTLEMENTS, PendingSettlements
from service_fixtures import Until

STILL = {"heartbeat_thread": False, "upkeep": False}


async def test_under_load_two_turns_are_under_way_at_once_and_each_job_runs_once(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    under_way = 0
    two_at_once = asyncio.Event()
    store = await app.stores.get()
    turn = store.turn

    async def slow_turn(*asked: Any) -> TurnResult:
        nonlocal under_way
        under_way += 1
        try:
            if under_way == 2:
                two_at_once.set()
            elif ran:  # the store takes its time until another turn is there
                await asyncio.wait_for(two_at_once.wait(), 60)
            return await turn(*asked)
        finally:
            under_way -= 1

    monkeypatch.setattr(store, "turn", slow_turn)

    @app.task
    async def quick(n: int) -> None:
        ran.append(n)

    await quick.enqueue_many({"n": n} for n in range(5000))
    assert await drain(app, concurrency=1000) == 5000
    assert sorted(ran) == list(range(5000))
    assert two_at_once.is_set()


async def test_a_settlement_whose_answer_was_lost_counts_as_stored(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await app.stores.get()
    turn, lost = store.turn, []

    async def lose_the_first_settlement(settlements: Any, *rest: Any) -> TurnResult:
        result = await turn(settlements, *rest)
        if settlements and not lost:
            lost.append(settlements)
            raise StoreUnavailable("the answer was lost")
        return result

    monkeypatch.setattr(store, "turn", lose_the_first_settlement)

    @app.task
    async def work() -> None: ...

    await work.enqueue()
    async with app.worker(burst=True, **STILL) as worker:
        await worker.run()
    assert len(lost) == 1
    assert (worker.finished, worker.rejected, len(worker.turns)) == (1, 0, 0)


async def test_claimed_jobs_run_though_a_lost_answer_cannot_be_checked(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await app.stores.get()
    turn, jobs, failures = store.turn, store.jobs, ["the answer was lost", "and so was the check"]

    async def lose_the_first_settlement(settlements: Any, *rest: Any) -> TurnResult:
        if settlements and len(failures) == 2:  # without a claim, whose jobs would wait for their leases
            await turn(settlements, None, rest[-1])
            raise StoreUnavailable(failures.pop(0))
        return await turn(settlements, *rest)

    async def fail_once(*asked: Any) -> Any:
        if failures:
            raise StoreUnavailable(failures.pop())
        return await jobs(*asked)

    monkeypatch.setattr(store, "turn", lose_the_first_settlement)
    monkeypatch.setattr(store, "jobs", fail_once)
    ran = []

    @app.task
    async def work(n: int) -> None:
        ran.append(n)
        if n == 1:
            await work.enqueue(2)

    await work.enqueue(1)
    async with app.worker(burst=True, **STILL) as worker:
        await worker.run()
    assert (ran, failures, worker.finished, worker.rejected) == ([1, 2], [], 2, 0)


async def test_an_outcome_the_store_cannot_take_fails_its_own_job_only(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await app.stores.get()
    turn = store.turn

    def check(settlements: Any) -> None:
        if any(one.output_json == '"bad"' for one in settlements):
            raise StoreError("the output is spoiled")

    async def checked_turn(settlements: Any, *rest: Any) -> TurnResult:
        check(settlements)
        return await turn(settlements, *rest)

    monkeypatch.setattr(store, "turn", checked_turn)

    @app.task
    async def work(output: str) -> str:
        return output

    good, bad = await work.enqueue("good"), await work.enqueue("bad")
    await drain(app)
    assert (await good.refresh()).state is State.SUCCEEDED
    failed = await bad.refresh()
    assert (failed.state, failed.error["message"]) == (
        State.FAILED, "the outcome could not be stored: the output is spoiled",
    )  # fmt: skip


async def test_an_outcome_that_can_never_be_stored_stops_no_other_job(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.task
    async def work() -> None: ...

    bad, *good = [await work.enqueue() for _ in range(20)]
    store = await app.stores.get()
    turn = store.turn

    async def reject_one(settlements: Any, *rest: Any) -> TurnResult:
        if any(one.id == bad.id for one in settlements):
            raise StoreError("this row cannot be written")
        return await turn(settlements, *rest)

    monkeypatch.setattr(store, "turn", reject_one)
    async with app.worker(burst=True, concurrency=4, lease_s=1.0, **STILL) as worker:
        await asyncio.wait_for(worker.run(), 60)
    assert (worker.finished, worker.rejected, len(worker.turns)) == (19, 1, 0)
    assert (await bad.refresh()).state is State.RUNNING  # until its lease has expired, and it is rescued
    assert {(await one.refresh()).state for one in good} == {State.SUCCEEDED}


async def test_a_worker_stops_though_the_check_of_a_lost_answer_gets_none(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await app.stores.get()
    turn, checking, lost = store.turn, asyncio.Event(), []

    async def lose_the_first_settlement(settlements: Any, *rest: Any) -> TurnResult:
        result = await turn(settlements, *rest)
        if settlements and not lost:
            lost.append(settlements)
            raise StoreUnavailable("the answer was lost")
        return result

    async def hang(*asked: Any) -> Any:
        checking.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(store, "turn", lose_the_first_settlement)
    monkeypatch.setattr(store, "jobs", hang)

    @app.task
    async def work() -> None: ...

    await work.enqueue()
    async with app.worker(shutdown_timeout=0.1, **STILL) as worker:
        run = asyncio.create_task(worker.run())
        await asyncio.wait_for(checking.wait(), 60)
        worker.drain()
        await asyncio.wait_for(run, 20)


def test_a_batch_is_bounded_and_keeps_its_order_when_it_is_put_back() -> None:
    pending = PendingSettlements()
    pending.extend((None, _Settlement(str(n))) for n in range(MAX_SETTLEMENTS + 1))  # type: ignore[misc]
    batch = pending.take()
    assert (len(batch), len(pending)) == (MAX_SETTLEMENTS, 1)
    pending.put_back(batch)
    assert [settlement.id for _, settlement in pending] == [str(n) for n in range(MAX_SETTLEMENTS + 1)]


class _Settlement:
    """As much of a settlement as a batch looks at."""

    output_json = error_json = None

    def __init__(self, id: str) -> None:
        self.id = id


async def test_a_claim_says_how_many_slots_are_free_and_whose_jobs_are_in_hand(
    app: Rota, monkeypatch: pytest.MonkeyPatch, until: Until
) -> None:
    store = await app.stores.get()
    turn, asked = store.turn, list[ClaimRequest]()
    release = asyncio.Event()

    async def noted_turn(settlements: Any, request: ClaimRequest | None, now: Any) -> TurnResult:
        if request is not None:
            asked.append(request)
        return await turn(settlements, request, now)

    monkeypatch.setattr(store, "turn", noted_turn)

    @app.task
    async def work() -> None:
        await release.wait()

    for tenant in ("zoe", "default", "acme", "acme"):
        await work.options(tenant=tenant).enqueue()
    async with app.running(concurrency=6, **STILL):
        await until(lambda: asked and asked[-1].free == 2)
        assert (asked[0].free, asked[0].holds) == (6, ())
        assert asked[-1].holds == (("acme", 2), ("default", 1), ("zoe", 1))
        release.set()
        await until(lambda: asked[-1].free == 6)
        assert asked[-1].holds == ()


@pytest.mark.parametrize("is_late", [False, True])
async def test_jobs_that_wait_for_a_slot_are_handed_back_as_never_begun(
    app: Rota, monkeypatch: pytest.MonkeyPatch, until: Until, is_late: bool
) -> None:
    store = await app.stores.get()
    turn, sent = store.turn, list[Settlement]()
    release = asyncio.Event()

    async def noted_turn(settlements: Any, *rest: Any) -> TurnResult:
        sent.extend(settlements)
        return await turn(settlements, *rest)

    monkeypatch.setattr(store, "turn", noted_turn)

    @app.task
    async def work() -> None:
        await release.wait()

    await work.options(tenant="acme").enqueue_many({} for _ in range(3))
    async with app.running(concurrency=2, **STILL) as worker:
        await until(lambda: len(worker.slots.running) == 2)
        ahead = ClaimRequest(worker=worker.id, limit=1, lease_s=60)
        claimed = await store.turn([], ahead, worker._environment.clock.store_now)
        worker.slots.take(claimed.jobs, monotonic())
        assert worker.slots.holds() == (("acme", 3),)
        if is_late:  # the loop comes to it after the slots were busy for long
            worker.slots.waiting[0].begin_by = monotonic() - 1
        else:
            worker.turns.release_waiting()
            assert worker.slots.holds() == (("acme", 2),)
            await until(lambda: sent)
        release.set()
        await until(lambda: len(sent) == 4)
    handed_back = next(one for one in sent if one.state is State.QUEUED)
    assert (handed_back.state, handed_back.attempt) == (State.QUEUED, 0)
    assert (handed_back.started_at, handed_back.record, handed_back.crashes) == (None, None, None)
    assert worker.slots.holds() == ()


@pytest.mark.parametrize("for_ever", [False, True])
async def test_a_burst_goes_on_while_the_store_has_not_looked_everywhere_but_not_for_ever(
    app: Rota, monkeypatch: pytest.MonkeyPatch, for_ever: bool
) -> None:
    store = await app.stores.get()
    turn, looks = store.turn, 0

    async def looks_a_little(settlements: Any, request: Any, now: Any) -> TurnResult:
        nonlocal looks
        looks += 1
        if for_ever or looks < 5:
            return TurnResult(next_due_at=app.clock.now())
        return await turn(settlements, request, now)

    monkeypatch.setattr(store, "turn", looks_a_little)

    @app.task
    async def work() -> None: ...

    await work.enqueue()
    async with asyncio.timeout(30):
        assert await drain(app) == (0 if for_ever else 1)
    assert looks > MOST_AT_ONCE if for_ever else looks >= 5
