"""Counting: how many jobs match, stand ahead, belong to whom, ended how; and health."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from ...core.jobs import lifecycle
from ...model import (
    ActivityBetween,
    CurrentOverview,
    DepthByTenant,
    JobCount,
    JobFilter,
    JobsAhead,
    RetentionCutoffs,
    State,
)
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import EVERYTHING, REACHABLE, T0, add, at, change, found, in_state, new, running, want
from .rules import keeps


async def ended(store: Store, since: datetime, until: datetime) -> Counter[tuple[datetime, str, str, str]]:
    tallies: Counter[tuple[datetime, str, str, str]] = Counter()
    for tally in await store.survey(ActivityBetween(since, until)):
        tallies[tally.at, tally.queue, tally.task, tally.state] += tally.n
    return tallies


class CountRules:
    @keeps(11)
    async def test_matching_jobs_are_counted_up_to_a_bound(self, store: Store) -> None:
        await add(store, *[new(queue="a", task="t") for _ in range(5)], new(queue="b"))
        await in_state(store, State.SUCCEEDED, queue="c")
        assert await store.survey(JobCount(EVERYTHING, 100)) == 7
        assert await store.survey(JobCount(EVERYTHING, 3)) == 3
        assert await store.survey(JobCount(JobFilter(queue="a"), 100)) == 5
        assert await store.survey(JobCount(JobFilter(queue="a", states=(State.FAILED,)), 100)) == 0
        assert await store.survey(JobCount(JobFilter(queue="missing"), 100)) == 0

    @keeps(11)
    async def test_each_state_can_be_counted(self, store: Store) -> None:
        for state in reversed(REACHABLE):
            await in_state(store, state, queue=state.value)
        for state in REACHABLE:
            assert await store.survey(JobCount(JobFilter(states=(state,)), 10)) == 1

    @keeps(11)
    async def test_a_place_in_line_counts_what_a_claim_would_take_before(self, store: Store) -> None:
        await running(store)
        urgent, earlier = new(priority=5, task="other"), new(run_at=at(-5))
        mine, after, low = new(), new(), new(priority=-1, run_at=at(-50))
        await add(store, urgent, earlier, mine, after, low)
        await add(store, new(queue="other", priority=9), new(priority=9, run_at=at(500)))
        places = [
            await store.survey(JobsAhead(await found(store, job.id), 100))
            for job in (urgent, earlier, mine, after, low)
        ]
        assert places == [0, 1, 2, 3, 4]
        assert await store.survey(JobsAhead(await found(store, low.id), 3)) == 3

    @keeps(11)
    async def test_live_jobs_are_counted_by_tenant(self, store: Store) -> None:
        assert dict(await store.survey(DepthByTenant(T0, 100))) == {}
        await running(store, tenant="x")
        await add(store, new(tenant="x", run_at=at(-20)), new(tenant="x"), new(tenant="x", run_at=at(70)))
        await add(store, new(tenant="y", run_at=at(70)))
        await in_state(store, State.FAILED, tenant="z", queue="z")
        depths = await store.survey(DepthByTenant(at(10), 100))
        assert set(depths) == {"x", "y"}
        assert (depths["x"].due, depths["x"].due_later, depths["x"].running) == (2, 1, 1)
        assert (depths["y"].due, depths["y"].due_later, depths["y"].running) == (0, 1, 0)
        assert (depths["x"].oldest_due_s, depths["y"].oldest_due_s) == (30, None)

    @keeps(11)
    async def test_tenants_are_counted_from_the_oldest_jobs_first(self, store: Store) -> None:
        await add(store, *[new(tenant="old") for _ in range(3)], *[new(tenant="young") for _ in range(3)])
        assert {name: depth.due for name, depth in (await store.survey(DepthByTenant(T0, 4))).items()} == {
            "old": 3,
            "young": 1,
        }

    @keeps(11)
    async def test_the_overview_of_a_tenant_counts_its_jobs_only(self, store: Store) -> None:
        for state in reversed(REACHABLE):
            await in_state(store, state, queue=state.value, tenant="x")
            await in_state(store, state, queue=state.value, tenant="y")
        await add(store, new(tenant="x", queue="q", run_at=at(60)), new(tenant="x", queue="q", run_at=at(-5)))
        overview = await store.survey(CurrentOverview(at(10), "x"))
        expected = {"waiting": 0, "queued": 3, "running": 1, "succeeded": 1, "failed": 1, "cancelled": 1}
        for state_, n in overview.counts.items():
            assert state_ in overview.estimated or n == expected[state_], state_
        assert set(overview.counts) == set(expected)
        depth = overview.queues["q"]
        assert (depth.due, depth.due_later, depth.running, depth.oldest_due_s) == (1, 1, 0, 15)
        assert overview.oldest_due_s == 15
        assert set(overview.queues) == {"q", "queued", "running"}

    @keeps(11)
    async def test_the_overview_of_an_unknown_tenant_is_empty(self, store: Store) -> None:
        await running(store)
        overview = await store.survey(CurrentOverview(at(1), "missing"))
        assert (sum(overview.counts.values()), dict(overview.queues), overview.oldest_due_s) == (0, {}, None)

    @keeps(11)
    async def test_activity_counts_finished_jobs_by_minute_and_state(self, store: Store) -> None:
        for state in (State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.QUEUED):
            job = await running(store, queue="a", task="t")
            await settle(store, [change(job, state, run_at=at(10_000))], at(59))
        job = await running(store, queue="b", task="t", auto_remove=True)
        await settle(store, [change(job, State.SUCCEEDED, remove=True)], at(61))
        stopped = new(queue="c")
        await add(store, stopped)
        await store.edit((stopped.id,), lifecycle.cancel("no", at(130)), at(130))
        assert await ended(store, T0, at(180)) == {
            (T0, "a", "t", "succeeded"): 2,
            (T0, "a", "t", "failed"): 1,
            (at(60), "b", "t", "removed"): 1,
            (at(120), "c", "work", "cancelled"): 1,
        }

    @keeps(11)
    async def test_activity_covers_the_minutes_that_began_within(self, store: Store) -> None:
        await in_state(store, State.SUCCEEDED)
        assert sum((await ended(store, T0, at(60))).values()) == 1
        assert sum((await ended(store, T0, at(1))).values()) == 1
        assert not await ended(store, at(1), at(60))
        assert not await ended(store, at(-60), T0)

    @keeps(11)
    async def test_old_activity_keeps_its_sum(self, store: Store) -> None:
        for n in (1, 2, 3):
            job = await running(store)
            await settle(store, [change(job, State.SUCCEEDED)], at(n * 300))
        days = 86_400 * 10
        await store.maintain(RetentionCutoffs(), 1, at(days))
        assert sum((await ended(store, at(-days), at(days))).values()) == 3

    @keeps(11)
    async def test_an_examination_names_what_it_looked_at(self, store: Store) -> None:
        findings = await store.check_health(T0)
        assert findings
        for finding in findings:
            assert finding.check
            assert finding.text
            assert finding.level in ("ok", "warning")

    @keeps(11)
    async def test_gauges_are_numbers_and_need_no_connection(self, store: Store) -> None:
        await claim(store, want(), T0)
        before = store.gauges
        await store.close()
        for name, value in [*before.items(), *store.gauges.items()]:
            assert name.replace("_", "").isalnum()
            assert value >= 0
        await store.open()
