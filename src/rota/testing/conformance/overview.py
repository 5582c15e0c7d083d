"""The counts of now, through whole lives of jobs."""

from __future__ import annotations

from datetime import datetime

from ...core.jobs import lifecycle
from ...model import CurrentOverview, JobFilter, Overview, RetentionCutoffs, State
from ...store.calls import edit_matching, settle
from ...store.protocol import Store
from .factories import T0, add, at, change, claimed, new, running
from .rules import keeps


async def counts(store: Store, now: datetime, **expected: int) -> Overview:
    """The overview, whose exact counts must be as expected; states not named must be zero."""
    overview = await store.survey(CurrentOverview(now))
    assert set(overview.counts) == {state.value for state in State}
    for state, count in overview.counts.items():
        if state not in overview.estimated:
            assert count == expected.get(state, 0), (state, count, expected)
    return overview


class OverviewRules:
    @keeps(11)
    async def test_an_empty_store_counts_nothing(self, store: Store) -> None:
        overview = await counts(store, T0)
        assert (overview.oldest_due_s, dict(overview.queues)) == (None, {})

    @keeps(11)
    async def test_live_counts_are_exact(self, store: Store) -> None:
        await running(store)
        overview = await counts(store, T0, running=1)
        assert not overview.estimated & {"queued", "running", "waiting"}

    @keeps(11)
    async def test_a_job_is_counted_in_one_state_at_a_time(self, store: Store) -> None:
        job = await running(store)
        await counts(store, at(1), running=1)
        await settle(store, [change(job, State.QUEUED)], at(2))
        await counts(store, at(2), queued=1)
        job = await claimed(store, job.id, at(3))
        await settle(store, [change(job, State.FAILED)], at(4))
        await counts(store, at(4), failed=1)
        await store.edit((job.id,), lifecycle.retry(at(5)), at(5))
        await counts(store, at(5), queued=1)
        job = await claimed(store, job.id, at(6))
        await settle(store, [change(job, State.SUCCEEDED)], at(7))
        await counts(store, at(7), succeeded=1)
        await store.edit((job.id,), lifecycle.delete(), at(8))
        await counts(store, at(8))

    @keeps(11)
    async def test_cancelled_and_pruned_jobs_are_counted(self, store: Store) -> None:
        await add(store, new(), new(), new())
        await edit_matching(store, JobFilter(), lifecycle.cancel("no", at(1)), 2, at(1))
        await counts(store, at(1), queued=1, cancelled=2)
        await store.maintain(RetentionCutoffs(jobs={State.CANCELLED: at(50)}), 1, at(60))
        await counts(store, at(60), queued=1, cancelled=1)

    @keeps(11)
    async def test_a_queue_counts_due_scheduled_and_running_jobs_separately(self, store: Store) -> None:
        await running(store, queue="a")
        await add(store, new(queue="a", run_at=at(-90)), new(queue="a"), new(queue="a", run_at=at(60)))
        await add(store, new(queue="b", run_at=at(500)))
        overview = await counts(store, at(10), queued=4, running=1)
        depth = overview.queues["a"]
        assert (depth.due, depth.due_later, depth.running) == (2, 1, 1)
        assert depth.oldest_due_s == 100
        later = overview.queues["b"]
        assert (later.due, later.due_later, later.running, later.oldest_due_s) == (0, 1, 0, None)
        assert overview.oldest_due_s == 100

    @keeps(11)
    async def test_jobs_become_due_as_time_goes_by(self, store: Store) -> None:
        await add(store, new(run_at=at(60)))
        before, after = (
            await store.survey(CurrentOverview(at(59))),
            await store.survey(CurrentOverview(at(75))),
        )
        assert (before.queues["default"].due_later, before.oldest_due_s) == (1, None)
        assert (after.queues["default"].due, after.queues["default"].due_later) == (1, 0)
        assert after.oldest_due_s == 15
