"""Heartbeats: only the holder of the token renews a lease, writes progress or learns of a cancel."""

from __future__ import annotations

from ...core.jobs import lifecycle
from ...model import Lease, ProgressUpdate, State
from ...store.calls import find_document, settle
from ...store.protocol import Store
from .factories import FINAL_STATES, at, change, found, in_state, lease, new_id, pulse, running
from .rules import keeps

HALF = '{"percent":50.0,"message":"half"}'


class LeaseRules:
    @keeps(6)
    async def test_a_beat_renews_the_lease(self, store: Store) -> None:
        job = await running(store)
        reply = await store.heartbeat(pulse([lease(job)], lease_s=45.0), at(20))
        assert (reply.lost, reply.cancel) == (frozenset(), frozenset())
        kept = await found(store, job.id)
        assert (kept.lease_until, kept.lease_token, kept.state) == (at(65), job.lease_token, State.RUNNING)

    @keeps(6)
    async def test_a_renewed_lease_is_not_reclaimed(self, store: Store) -> None:
        job = await running(store)
        await store.heartbeat(pulse([lease(job)]), at(20))
        assert list(await store.reclaim("w2", 30, 10, at(40))) == []

    @keeps(6)
    async def test_a_beat_with_an_old_token_reports_the_lease_as_lost(self, store: Store) -> None:
        job = await running(store)
        await store.reclaim("w2", 30, 10, at(100))
        reply = await store.heartbeat(pulse([lease(job)]), at(110))
        assert reply.lost == {job.id}
        kept = await found(store, job.id)
        assert (kept.lease_until, kept.worker) == (at(130), "w2")

    @keeps(6)
    async def test_a_beat_with_a_token_from_the_future_is_refused_too(self, store: Store) -> None:
        job = await running(store)
        reply = await store.heartbeat(pulse([Lease(id=job.id, lease_token=job.lease_token + 1)]), at(10))
        assert reply.lost == {job.id}
        assert (await found(store, job.id)).lease_until == job.lease_until

    @keeps(6)
    async def test_a_beat_with_the_token_of_another_holder_is_refused(self, store: Store) -> None:
        job = await running(store)
        note = ProgressUpdate(id=job.id, lease_token=job.lease_token, progress_json=HALF)
        reply = await store.heartbeat(pulse([lease(job)], worker="w2", notes=[note]), at(10))
        assert reply.lost == {job.id}
        kept = await found(store, job.id)
        assert (kept.lease_until, kept.progress_json, kept.worker) == (job.lease_until, None, "w1")

    @keeps(6)
    async def test_the_lease_of_an_ended_or_waiting_job_is_lost(self, store: Store) -> None:
        for state in FINAL_STATES:
            job = await in_state(store, state)
            assert (await store.heartbeat(pulse([Lease(id=job, lease_token=1)]), at(10))).lost == {job}
        again = await running(store)
        await settle(store, [change(again, State.QUEUED)], at(1))
        assert (await store.heartbeat(pulse([lease(again)]), at(10))).lost == {again.id}

    @keeps(6)
    async def test_the_lease_of_an_unknown_job_is_lost(self, store: Store) -> None:
        stranger = new_id()
        assert (await store.heartbeat(pulse([Lease(id=stranger, lease_token=1)]), at(1))).lost == {stranger}

    @keeps(6)
    async def test_one_lost_lease_does_not_harm_the_others(self, store: Store) -> None:
        gone, kept = await running(store), await running(store)
        await settle(store, [change(gone, State.SUCCEEDED)], at(1))
        reply = await store.heartbeat(pulse([lease(gone), lease(kept)]), at(10))
        assert reply.lost == {gone.id}
        assert (await found(store, kept.id)).lease_until == at(40)

    @keeps(6)
    async def test_a_beat_reports_a_cancel(self, store: Store) -> None:
        asked, other = await running(store), await running(store)
        await store.edit((asked.id,), lifecycle.cancel("stop", at(1)), at(1))
        reply = await store.heartbeat(pulse([lease(asked), lease(other)]), at(2))
        assert (reply.lost, reply.cancel) == (frozenset(), frozenset({asked.id}))
        assert (await store.heartbeat(pulse([lease(asked)]), at(3))).cancel == {asked.id}

    @keeps(6)
    async def test_a_beat_without_leases_reports_a_cancel_too(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(1)), at(1))
        assert (await store.heartbeat(pulse([]), at(2))).cancel == {job.id}

    @keeps(6)
    async def test_a_cancel_does_not_end_the_lease(self, store: Store) -> None:
        job = await running(store)
        await store.edit((job.id,), lifecycle.cancel("stop", at(1)), at(1))
        await store.heartbeat(pulse([lease(job)]), at(20))
        assert (await found(store, job.id)).lease_until == at(50)

    @keeps(6)
    async def test_a_beat_writes_progress(self, store: Store) -> None:
        job = await running(store)
        note = ProgressUpdate(id=job.id, lease_token=job.lease_token, progress_json=HALF)
        await store.heartbeat(pulse([lease(job)], notes=[note]), at(5))
        assert (await found(store, job.id)).progress == {"percent": 50.0, "message": "half"}

    @keeps(6)
    async def test_progress_with_an_old_token_is_not_written(self, store: Store) -> None:
        job = await running(store)
        await store.reclaim("w2", 30, 10, at(100))
        note = ProgressUpdate(id=job.id, lease_token=job.lease_token, progress_json=HALF)
        await store.heartbeat(pulse([lease(job)], notes=[note]), at(101))
        assert (await found(store, job.id)).progress_json is None

    @keeps(6)
    async def test_a_beat_records_the_worker(self, store: Store) -> None:
        await store.heartbeat(pulse(worker="w9", document='{"host":"a"}'), at(1))
        await store.heartbeat(pulse(worker="w9", document='{"host":"b"}'), at(2))
        document = await find_document(store, "worker", "w9")
        assert document is not None
        assert (document.body, document.updated_at) == ('{"host":"b"}', at(2))

    @keeps(6)
    async def test_many_leases_are_renewed_by_one_beat(self, store: Store) -> None:
        jobs = [await running(store) for _ in range(60)]
        reply = await store.heartbeat(pulse([lease(job) for job in jobs]), at(20))
        assert reply.lost == frozenset()
        assert list(await store.reclaim("w2", 30, 100, at(45))) == []
