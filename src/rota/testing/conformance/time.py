"""Time: the store's own clock rules leases, whatever the clocks of its callers show."""

from __future__ import annotations

from datetime import timedelta

from ...model import State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import T0, at, change, found, lease, new, pulse, want
from .rules import keeps
from .schedules import rule, stored

HOUR = timedelta(hours=1)


class TimeRules:
    @keeps(21)
    async def test_without_a_time_a_claim_is_made_at_the_stores(self, store: Store) -> None:
        before = await store.clock()
        await store.insert([new(run_at=before - HOUR)], before)
        turn = await store.turn((), want(lease_s=45.0), None)
        assert turn.at is not None and before <= turn.at <= await store.clock()
        (job,) = turn.jobs
        kept = await found(store, job.id)
        for one in (job, kept):
            assert (one.started_at, one.lease_until) == (turn.at, turn.at + timedelta(seconds=45))

    @keeps(21)
    async def test_what_is_due_by_a_callers_clock_alone_is_not_claimed(self, store: Store) -> None:
        now = await store.clock()
        await store.insert([new(run_at=now + HOUR)], now)
        assert list(await claim(store, want(), None)) == []

    @keeps(21)
    async def test_without_a_time_a_heartbeat_renews_from_the_stores(self, store: Store) -> None:
        before = await store.clock()
        await store.insert([new()], before - HOUR)
        (job,) = await claim(store, want(lease_s=5.0), None)
        reply = await store.heartbeat(pulse([lease(job)], lease_s=60.0), None)
        assert before <= reply.at <= await store.clock()
        assert (await found(store, job.id)).lease_until == reply.at + timedelta(seconds=60)

    @keeps(21)
    async def test_without_a_time_only_what_expired_by_the_stores_is_reclaimed(self, store: Store) -> None:
        await store.insert([new(), new()], await store.clock() - HOUR)
        (short,) = await claim(store, want(1, lease_s=0.0), None)
        await claim(store, want(1, lease_s=600.0), None)
        (job,) = await store.reclaim("w2", 30.0, 10, None)
        assert (job.id, job.worker) == (short.id, "w1")
        assert job.lease_until is not None and short.lease_until is not None
        now = await store.clock()
        assert short.lease_until <= job.lease_until - timedelta(seconds=30) <= now

    @keeps(21)
    async def test_without_a_time_an_end_is_the_stores(self, store: Store) -> None:
        before = await store.clock()
        await store.insert([new(), new()], before - HOUR)
        plain, other = await claim(store, want(2), None)
        changes = [
            change(plain, State.SUCCEEDED, started_at=before + HOUR),
            change(other, State.FAILED, error_json='{"type":"E","message":""}'),
        ]
        assert await settle(store, changes, None) == frozenset()
        for job in (plain, other):
            ended = await found(store, job.id)
            assert ended.finished_at is not None and before <= ended.finished_at <= await store.clock()

    @keeps(21)
    async def test_without_a_time_schedules_are_due_by_the_stores(self, store: Store) -> None:
        before = (await store.clock()).replace(microsecond=0)
        early, late = rule("early", check_at=before - HOUR), rule("late", check_at=before + HOUR)
        await stored(store, early, late)
        due = await store.due_schedules(None, 10)
        assert before <= due.at <= await store.clock()
        assert [schedule.name for schedule in due.schedules] == ["early"]
        assert due.next_check_at == before + HOUR

    @keeps(21)
    async def test_a_given_time_takes_the_place_of_the_stores(self, store: Store) -> None:
        await store.insert([new()], T0)
        turn = await store.turn((), want(), at(1))
        (job,) = turn.jobs
        assert turn.at == at(1)
        assert (await store.heartbeat(pulse([lease(job)]), at(2))).at == at(2)
        assert (await store.turn([change(job, State.SUCCEEDED)], None, at(3))).at == at(3)
        assert (await store.due_schedules(at(4), 1)).at == at(4)

    @keeps(21)
    async def test_a_claim_that_comes_too_late_brings_nothing(self, store: Store) -> None:
        await store.insert([new()], T0)
        assert list(await claim(store, want(until=at(5)), at(6))) == []
        assert len(await claim(store, want(until=at(6)), at(6))) == 1
        now = await store.clock()
        await store.insert([new()], now)
        assert list(await claim(store, want(until=now - HOUR), None)) == []
        assert len(await claim(store, want(until=now + HOUR), None)) == 1

    @keeps(21)
    async def test_a_claim_that_comes_too_late_still_settles(self, store: Store) -> None:
        await store.insert([new(), new()], T0)
        (job,) = await claim(store, want(1), T0)
        turn = await store.turn([change(job, State.SUCCEEDED)], want(until=at(5)), at(6))
        assert (list(turn.jobs), turn.refused) == ([], frozenset())
        assert (await found(store, job.id)).state is State.SUCCEEDED
