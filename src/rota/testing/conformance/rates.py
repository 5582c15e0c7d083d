"""Rates: never more units begun than the bucket holds, and none lost that were not used."""

from __future__ import annotations

import pytest

from ...model import State
from ...store.calls import claim, settle
from ...store.protocol import Store
from .factories import T0, add, at, change, finish, ids, new, put_limit, record, release, want
from .rules import keeps


class RateRules:
    @pytest.mark.parametrize("name", ["queue:q", "task:work", "tenant:acme", "key:k", "key:*"])
    @keeps(23)
    async def test_a_burst_begins_at_once_and_then_one_with_each_token(self, store: Store, name: str) -> None:
        await put_limit(store, name, rate="1/10s", burst=3)
        jobs = [new(queue="q", tenant="acme", concurrency_key="k") for _ in range(6)]
        await add(store, *jobs)
        result = await store.turn([], want(), T0)
        assert ids(result.jobs) == [job.id for job in jobs[:3]]
        assert result.next_due_at == at(10)
        assert list(await claim(store, want(), at(9.9))) == []
        assert ids(await claim(store, want(), at(10))) == [jobs[3].id]
        assert list(await claim(store, want(), at(19.9))) == []
        assert ids(await claim(store, want(), at(30))) == [job.id for job in jobs[4:]]
        assert (await store.turn([], want(), at(31))).next_due_at is None

    @keeps(23)
    async def test_a_job_takes_its_units_and_is_not_overtaken(self, store: Store) -> None:
        await put_limit(store, "key:openai", rate="60/m", burst=10)
        jobs = [new(concurrency_key="openai", units=units) for units in (6, 8, 1)]
        await add(store, *jobs)
        result = await store.turn([], want(), T0)
        assert ids(result.jobs) == [jobs[0].id]
        assert result.next_due_at == at(4)  # 4 are left, 8 are needed
        assert list(await claim(store, want(), at(3.9))) == []
        assert ids(await claim(store, want(), at(4))) == [jobs[1].id]
        assert ids(await claim(store, want(), at(5))) == [jobs[2].id]

    @keeps(23)
    async def test_no_window_has_more_starts_than_the_bucket_allows(self, store: Store) -> None:
        await put_limit(store, "queue:q", rate="2/s", burst=4)
        await add(store, *[new(queue="q") for _ in range(60)])
        starts: list[float] = []
        for tick in range(60):
            moment = tick * 0.17
            taken = await claim(store, want(1 + tick % 5, worker=f"w{tick % 3}"), at(moment))
            starts += [moment] * len(taken)
        for place, first in enumerate(starts):
            for n, last in enumerate(starts[place:], 1):
                assert n <= 4 + (last - first) * 2 + 1e-9
        assert len(starts) >= 4 + int(59 * 0.17 * 2) - 1  # and nothing is lost

    @keeps(23)
    async def test_a_job_released_before_it_began_returns_its_units(self, store: Store) -> None:
        await put_limit(store, "key:*", rate="1/10s", burst=2)
        await put_limit(store, "queue:q", rate="1/10s", burst=2)
        jobs = [new(queue="q", concurrency_key="k") for _ in range(4)]
        await add(store, *jobs)
        taken = await claim(store, want(), T0)
        assert len(taken) == 2
        await release(store, *taken, now=T0)
        assert ids(await claim(store, want(), T0)) == [job.id for job in jobs[:2]]
        assert list(await claim(store, want(), T0)) == []

    @keeps(23)
    async def test_a_release_returns_no_unit_that_has_come_back_by_itself(self, store: Store) -> None:
        await put_limit(store, "key:k", rate="1/10s", burst=2)
        await add(store, *[new(concurrency_key="k") for _ in range(9)])
        taken = await claim(store, want(2), T0)
        await release(store, *taken, now=at(30))  # the bucket is full again anyway
        assert len(await claim(store, want(), at(30))) == 2
        assert list(await claim(store, want(), at(39))) == []

    @keeps(23)
    async def test_a_job_that_has_begun_returns_nothing(self, store: Store) -> None:
        await put_limit(store, "key:k", rate="1/10s", burst=1)
        await add(store, *[new(concurrency_key="k") for _ in range(2)])
        (job,) = await claim(store, want(), T0)
        back = change(job, State.QUEUED, started_at=T0, record=record(job, "failed", at(1)), run_at=at(1))
        await settle(store, [back], at(1))
        assert list(await claim(store, want(), at(2))) == []
        assert len(await claim(store, want(), at(10))) == 1

    @keeps(23)
    async def test_a_release_after_the_rule_has_changed_returns_nothing(self, store: Store) -> None:
        await put_limit(store, "key:k", rate="1/10s", burst=2)
        await add(store, *[new(concurrency_key="k") for _ in range(6)])
        taken = await claim(store, want(), T0)
        await put_limit(store, "key:k", at(1), rate="1/5s", burst=4)
        await release(store, *taken, now=at(1))
        assert list(await claim(store, want(), at(1))) == []

    @keeps(23)
    async def test_a_job_gives_nothing_back_to_a_family_that_does_not_hold_for_its_key(
        self, store: Store
    ) -> None:
        await put_limit(store, "key:a:*", rate="1/m")
        await add(store, new(concurrency_key="a:1"))
        await finish(store, *(await claim(store, want(), at(1))), now=at(1))
        await put_limit(store, "key:a:1", at(2), running=1)
        await add(store, new(concurrency_key="a:1"))
        await release(store, *(await claim(store, want(), at(3))), now=at(3))
        await put_limit(store, "key:a:1", at(4))
        assert list(await claim(store, want(), at(5))) == []

    @keeps(23)
    async def test_a_limit_for_a_wider_family_refills_no_bucket_of_a_narrower_one(self, store: Store) -> None:
        await put_limit(store, "key:acc:*", rate="1/10s", burst=3)
        await add(store, *[new(concurrency_key="acc:1") for _ in range(6)])
        assert len(await claim(store, want(), T0)) == 3
        await put_limit(store, "key:*", at(1), rate="1/10s", burst=1)
        assert list(await claim(store, want(), at(2))) == []
        assert len(await claim(store, want(), at(10))) == 1

    @keeps(23)
    async def test_a_rate_and_a_number_hold_together(self, store: Store) -> None:
        await put_limit(store, "key:k", rate="1/s", burst=5, running=2)
        await add(store, *[new(concurrency_key="k") for _ in range(9)])
        first = await claim(store, want(), T0)
        assert len(first) == 2
        await finish(store, *first, now=T0)
        second = await claim(store, want(), T0)
        assert len(second) == 2
        await finish(store, *second, now=T0)
        assert len(await claim(store, want(), T0)) == 1
        assert len(await claim(store, want(), at(1))) == 1

    @keeps(23)
    async def test_a_dropped_rate_holds_nothing_up(self, store: Store) -> None:
        await put_limit(store, "key:*", rate="1/h", burst=1)
        await add(store, *[new(concurrency_key="k") for _ in range(5)])
        assert len(await claim(store, want(), T0)) == 1
        await put_limit(store, "key:*", at(1))
        assert len(await claim(store, want(), at(2))) == 4
