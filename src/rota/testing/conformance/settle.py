"""Settling: the decided end of an attempt is written whole, once, and only by the holder of the lease."""

from __future__ import annotations

from ...model import CurrentOverview, Job, NewJob, State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .audit import line, lines
from .factories import (
    ERROR,
    FINAL_STATES,
    T0,
    add,
    at,
    change,
    claimed,
    found,
    new,
    new_id,
    read,
    record,
    running,
    want,
)
from .rules import keeps

ENDS = (State.QUEUED, *FINAL_STATES)


class SettleRules:
    @keeps(7)
    async def test_success_is_written_with_its_output(self, store: Store) -> None:
        job = await running(store)
        assert (
            await settle(store, [change(job, State.SUCCEEDED, output_json='{"sent":true}')], at(5))
            == frozenset()
        )
        kept = await found(store, job.id)
        assert (kept.state, kept.output_json, kept.error_json) == (State.SUCCEEDED, '{"sent":true}', None)
        assert (kept.started_at, kept.finished_at) == (T0, at(5))
        assert (kept.attempt, kept.lease_token, kept.lease_until) == (1, 1, None)

    @keeps(7)
    async def test_failure_and_cancellation_are_written_with_their_error(self, store: Store) -> None:
        for state in (State.FAILED, State.CANCELLED):
            job = await running(store)
            await settle(store, [change(job, state, error_json=ERROR)], at(5))
            kept = await found(store, job.id)
            assert (kept.state, kept.error_json, kept.finished_at) == (state, ERROR, at(5))

    @keeps(7)
    async def test_a_job_that_goes_back_waits_until_its_time(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.QUEUED, run_at=at(60), error_json=ERROR)], at(5))
        kept = await found(store, job.id)
        assert (kept.state, kept.run_at, kept.error_json) == (State.QUEUED, at(60), ERROR)
        assert (kept.attempt, kept.lease_token) == (1, 1)
        assert (kept.worker, kept.lease_until, kept.finished_at) == (None, None, None)
        assert list(await claim(store, want(), at(59))) == []
        assert (await claimed(store, job.id, at(60))).lease_token == 2

    @keeps(7)
    async def test_a_job_that_goes_back_without_a_time_is_due_at_once(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.QUEUED)], at(5))
        assert (await claimed(store, job.id, at(5))).attempt == 2

    @keeps(7)
    async def test_success_after_a_failure_clears_the_error(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.QUEUED, error_json=ERROR)], at(1))
        job = await claimed(store, job.id, at(2))
        assert job.error_json == ERROR
        await settle(store, [change(job, State.SUCCEEDED)], at(3))
        assert (await found(store, job.id)).error_json is None

    @keeps(6)
    async def test_a_late_settle_is_refused_and_changes_nothing(self, store: Store) -> None:
        for state in ENDS:
            job = await running(store)
            (taken,) = await store.reclaim("w2", 3000, 10, at(100))
            before = await found(store, job.id)
            late = change(job, state, output_json="1", error_json=ERROR, cost_cents=5, run_at=at(500))
            assert await settle(store, [late], at(101)) == {job.id}
            assert await found(store, job.id) == before
            assert await settle(store, [change(taken, State.SUCCEEDED, worker="w2")], at(102)) == frozenset()

    @keeps(6)
    async def test_a_job_that_does_not_run_cannot_be_settled(self, store: Store) -> None:
        for before in ENDS:
            job = await running(store)
            await settle(store, [change(job, before, run_at=at(500))], at(1))
            for after in ENDS:
                assert await settle(store, [change(job, after)], at(2)) == {job.id}
            assert (await found(store, job.id)).state is before

    @keeps(6)
    async def test_a_token_from_the_future_is_refused(self, store: Store) -> None:
        job = await running(store)
        assert await settle(
            store, [change(job, State.SUCCEEDED, lease_token=job.lease_token + 1)], at(1)
        ) == {job.id}
        assert (await found(store, job.id)).state is State.RUNNING

    @keeps(6)
    async def test_a_settle_with_the_token_of_another_holder_is_refused(self, store: Store) -> None:
        """A server that lost its last transactions may give the same token to two workers."""
        for state in ENDS:
            job = await running(store)
            before = await found(store, job.id)
            for changes in ([change(job, state, worker="w2")], [change(job, state, worker=None)]):
                assert await settle(store, changes, at(1)) == {job.id}
            assert await found(store, job.id) == before
            assert await settle(store, [change(job, state, run_at=at(500))], at(1)) == frozenset()

    @keeps(6)
    async def test_an_unknown_job_is_refused(self, store: Store) -> None:
        job = await running(store)
        stranger = new_id()
        assert await settle(store, [change(job, State.SUCCEEDED, id=stranger)], at(1)) == {stranger}
        assert await read(store, stranger) is None

    @keeps(6)
    async def test_one_refused_change_does_not_harm_the_others(self, store: Store) -> None:
        jobs = [await running(store) for _ in range(5)]
        await settle(store, [change(jobs[2], State.FAILED)], at(1))
        refused = await settle(store, [change(job, State.SUCCEEDED) for job in jobs], at(2))
        assert refused == {jobs[2].id}
        states = [(await found(store, job.id)).state for job in jobs]
        assert states == [State.SUCCEEDED] * 2 + [State.FAILED] + [State.SUCCEEDED] * 2

    @keeps(7)
    async def test_a_batch_may_hold_every_kind_of_end(self, store: Store) -> None:
        jobs = [await running(store) for _ in ENDS]
        changes = [change(job, state) for job, state in zip(jobs, ENDS, strict=True)]
        assert await settle(store, changes, at(1)) == frozenset()
        assert [(await found(store, job.id)).state for job in jobs] == list(ENDS)

    @keeps(7)
    async def test_settling_nothing_is_fine(self, store: Store) -> None:
        assert await settle(store, [], T0) == frozenset()

    @keeps(7)
    async def test_the_attempt_is_stored_as_decided(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.QUEUED, attempt=0, run_at=at(9))], at(1))
        assert (await found(store, job.id)).attempt == 0

    @keeps(7)
    async def test_the_start_of_the_code_replaces_the_time_of_the_claim(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED, started_at=at(2))], at(5))
        assert (await found(store, job.id)).started_at == at(2)

    @keeps(7)
    async def test_no_job_has_begun_after_its_end_where_the_clock_of_the_worker_is_ahead(
        self, store: Store
    ) -> None:
        for state in (State.SUCCEEDED, State.FAILED):
            job = await running(store)
            await settle(store, [change(job, state, started_at=at(6))], at(5))
            ended = await found(store, job.id)
            assert (ended.started_at, ended.finished_at) == (at(5), at(5))

    @keeps(7)
    async def test_costs_add_up_over_attempts(self, store: Store) -> None:
        job = await running(store)
        for round_ in range(1, 3):
            await settle(store, [change(job, State.QUEUED, cost_cents=1.5)], at(round_))
            job = await claimed(store, job.id, at(round_))
            assert job.cost_cents == 1.5 * round_
        await settle(store, [change(job, State.SUCCEEDED, cost_cents=2.25)], at(3))
        assert (await found(store, job.id)).cost_cents == 5.25

    @keeps(7)
    async def test_the_count_of_crashes_is_kept_unless_another_is_given(self, store: Store) -> None:
        for end in FINAL_STATES:
            job = await running(store)
            assert job.crashes == 0
            for round_, (given, stored) in enumerate([(2, 2), (None, 2), (0, 0), (1, 1)], 1):
                await settle(store, [change(job, State.QUEUED, crashes=given)], at(round_))
                job = await claimed(store, job.id, at(round_))
                assert job.crashes == stored
            await settle(store, [change(job, end, crashes=3 if end is State.FAILED else None)], at(9))
            assert (await found(store, job.id)).crashes == (3 if end is State.FAILED else 1)

    @keeps(7)
    async def test_progress_is_kept_unless_a_newer_one_is_given(self, store: Store) -> None:
        first, second = '{"percent":1.0,"message":""}', '{"percent":2.0,"message":""}'
        job = await running(store)
        await settle(store, [change(job, State.QUEUED, progress_json=first)], at(1))
        job = await claimed(store, job.id, at(2))
        await settle(store, [change(job, State.QUEUED)], at(3))
        assert (await found(store, job.id)).progress_json == first
        job = await claimed(store, job.id, at(4))
        await settle(store, [change(job, State.FAILED, progress_json=second)], at(5))
        assert (await found(store, job.id)).progress_json == second
        other = await running(store, now=at(6))
        await settle(store, [change(other, State.QUEUED, progress_json=first)], at(6))
        other = await claimed(store, other.id, at(7))
        await settle(store, [change(other, State.SUCCEEDED)], at(8))
        assert (await found(store, other.id)).progress_json == first

    @keeps(7)
    async def test_attempt_records_are_kept_oldest_first(self, store: Store) -> None:
        job = await running(store)
        one = record(job, "failed", at(1), error_json=ERROR, logs_json="[]", cost_cents=2.5)
        await settle(store, [change(job, State.QUEUED, record=one)], at(1))
        job = await claimed(store, job.id, at(2))
        two = record(job, "snoozed", at(3))
        await settle(store, [change(job, State.QUEUED, attempt=1, record=two)], at(3))
        job = await claimed(store, job.id, at(4))
        three = record(job, "succeeded", at(5))
        await settle(store, [change(job, State.SUCCEEDED, record=three)], at(5))
        assert list(await store.attempts(job.id)) == [one, two, three]

    @keeps(7)
    async def test_a_refused_change_leaves_no_record(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        await settle(store, [change(job, State.FAILED, record=record(job, "failed", at(2)))], at(2))
        assert list(await store.attempts(job.id)) == []

    @keeps(7)
    async def test_follow_up_jobs_are_stored_with_the_change(self, store: Store) -> None:
        job = await running(store)
        then = (new(parent=job.id, origin="job", payload_json="[1]"), new(queue="q2", run_at=at(90)))
        await settle(store, [change(job, State.SUCCEEDED, then=then)], at(1))
        one, two = await found(store, then[0].id), await found(store, then[1].id)
        assert (one.parent, one.origin, one.payload_json, one.run_at) == (job.id, "job", "[1]", at(1))
        assert (two.queue, two.run_at) == ("q2", at(90))
        assert (await claimed(store, one.id, at(2))).attempt == 1

    @keeps(7)
    async def test_follow_up_jobs_of_a_refused_change_are_not_stored(self, store: Store) -> None:
        job = await running(store)
        await settle(store, [change(job, State.SUCCEEDED)], at(1))
        refused, then = change(job, State.SUCCEEDED, then=(follow := new(),)), follow
        assert await settle(store, [refused], at(2)) == {job.id}
        assert await read(store, then.id) is None

    @keeps(7)
    async def test_a_follow_up_job_may_take_the_key_of_the_job_that_ends(self, store: Store) -> None:
        job = await running(store, key="chain")
        then = new(key="chain")
        await settle(store, [change(job, State.SUCCEEDED, then=(then,))], at(1))
        assert (await found(store, then.id)).key == "chain"

    @keeps(7)
    async def test_a_follow_up_job_whose_key_is_taken_does_not_stop_the_change(self, store: Store) -> None:
        await add(store, holder := new(key="k", queue="other", run_at=at(900)))
        job = await running(store)
        then = new(key="k")
        assert await settle(store, [change(job, State.SUCCEEDED, then=(then,))], at(1)) == frozenset()
        assert await read(store, then.id) is None
        assert (await found(store, holder.id)).state is State.QUEUED

    @keeps(7)
    async def test_a_removed_job_leaves_nothing(self, store: Store) -> None:
        job = await self._failed_once(store, new(auto_remove=True, key="k"))
        then = new(run_at=at(99))
        await settle(store, [change(job, State.SUCCEEDED, remove=True, then=(then,))], at(3))
        assert await read(store, job.id) is None
        assert list(await store.attempts(job.id)) == []
        assert (await found(store, then.id)).state is State.QUEUED
        counts = (await store.survey(CurrentOverview(at(3)))).counts
        assert (counts["running"], counts["succeeded"]) == (0, 0)

    @keeps(6)
    async def test_a_late_removal_is_refused(self, store: Store) -> None:
        job = await running(store, auto_remove=True)
        await store.reclaim("w2", 300, 10, at(100))
        assert await settle(store, [change(job, State.SUCCEEDED, remove=True)], at(101)) == {job.id}
        assert (await found(store, job.id)).state is State.RUNNING

    async def _failed_once(self, store: Store, asked: NewJob) -> Job:
        await add(store, asked)
        job = await claimed(store, asked.id)
        failure = record(job, "failed", at(1), error_json=ERROR)
        await settle(store, [change(job, State.QUEUED, record=failure)], at(1))
        return await claimed(store, asked.id, at(2))

    @keeps(7)
    async def test_a_change_is_written_with_its_audit_lines(self, store: Store) -> None:
        first, second, third = [await running(store) for _ in range(3)]
        await settle(
            store,
            [
                change(first, State.FAILED, audit=(line("job.exhausted_retries", object=f"job:{first.id}"),)),
                change(second, State.SUCCEEDED),
                change(third, State.QUEUED, audit=(line("job.rescued"), line("email.sent", at=at(3)))),
            ],
            at(1),
        )
        entries = await lines(store)
        assert [entry.action for entry in entries] == ["job.exhausted_retries", "job.rescued", "email.sent"]
        assert (entries[0].object, entries[0].at, entries[2].at) == (f"job:{first.id}", T0, at(3))
        assert [entry.id for entry in entries] == sorted({entry.id for entry in entries})

    @keeps(7)
    async def test_a_refused_change_leaves_no_audit_line(self, store: Store) -> None:
        late = await running(store)
        await store.reclaim("w2", 3000, 10, at(100))
        good = await running(store, now=at(100), queue="other")
        changes = [
            change(late, State.FAILED, audit=(line("late"),)),
            change(good, State.FAILED, audit=(line("good"),)),
        ]
        assert await settle(store, changes, at(101)) == {late.id}
        assert [entry.action for entry in await lines(store)] == ["good"]

    @keeps(7)
    async def test_a_job_that_leaves_no_row_leaves_its_audit_lines(self, store: Store) -> None:
        job = await running(store, auto_remove=True)
        await settle(store, [change(job, State.SUCCEEDED, remove=True, audit=(line("email.sent"),))], at(1))
        assert await read(store, job.id) is None
        assert [entry.action for entry in await lines(store)] == ["email.sent"]
