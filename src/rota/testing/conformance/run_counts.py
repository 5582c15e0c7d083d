"""Runs of schedules, counted when they end: by outcome and day, whatever becomes of their jobs."""

from __future__ import annotations

from collections import Counter
from datetime import date
from typing import Any

from ...core.jobs import lifecycle
from ...model import Job, RetentionCutoffs, RunCount, RunCounts, State
from ...store.calls import settle
from ...store.protocol import Store
from .factories import ERROR, T0, add, at, change, claimed, new, running
from .rules import keeps
from .schedules import rule, stored

DAY_S = 86_400.0
TODAY = T0.date()
OURS = ("default", "nightly")


async def counted(
    store: Store, *schedules: tuple[str, str], since: date = TODAY
) -> dict[tuple[str, str], RunCount]:
    found = await store.survey(RunCounts(schedules or [OURS], since))
    return {(one.tenant, one.schedule): one for one in found}


async def outcomes(store: Store, since: date = TODAY) -> tuple[int, int, int]:
    found = (await counted(store, since=since)).get(OURS)
    return (found.succeeded, found.failed, found.cancelled) if found else (0, 0, 0)


async def run(store: Store, seconds: float = 0.0, **fields: Any) -> Job:
    """A run of the schedule that a worker holds."""
    return await running(store, at(seconds), **({"schedule": "nightly"} | fields))


async def ended(store: Store, state: State, seconds: float, **fields: Any) -> Job:
    job = await run(store, seconds, **fields)
    error = ERROR if state is State.FAILED else None
    assert not await settle(store, [change(job, state, error_json=error)], at(seconds + 1))
    return job


class RunCountRules:
    @keeps(11)
    async def test_runs_are_counted_by_outcome_with_their_durations(self, store: Store) -> None:
        jobs = [await run(store, n, queue=f"q{n}") for n in range(5)]
        others = [await running(store, queue="x"), await run(store, tenant="acme", queue="y")]
        states = [State.SUCCEEDED, State.SUCCEEDED, State.FAILED, State.CANCELLED, State.QUEUED]
        settled = [
            change(job, state, started_at=at(n))
            for n, (job, state) in enumerate(zip(jobs, states, strict=True))
        ]
        settled += [change(job, State.SUCCEEDED) for job in others]
        assert not await settle(store, settled, at(10))
        found = await counted(store, OURS, ("acme", "nightly"), ("default", "other"))
        assert found == {
            OURS: RunCount(
                tenant="default", schedule="nightly", succeeded=2, failed=1, cancelled=1,
                timed=3, total_ms=27_000.0, longest_ms=10_000.0,
            ),
            ("acme", "nightly"): RunCount(tenant="acme", schedule="nightly", succeeded=1),
        }  # fmt: skip
        assert await store.survey(RunCounts([], T0.date())) == []

    @keeps(11)
    async def test_the_counts_stay_true_when_jobs_are_deleted_by_age(self, store: Store) -> None:
        """Compared with a count made on the side; the jobs that are left would say 50 %."""
        aside: Counter[State] = Counter()
        for day in range(30):
            state = State.FAILED if day % 15 == 0 else State.SUCCEEDED
            await ended(store, state, day * DAY_S)
            aside[state] += 1
        now = at(30 * DAY_S)
        cutoffs = RetentionCutoffs(jobs={State.SUCCEEDED: at(28.5 * DAY_S), State.FAILED: at(-DAY_S)})
        while not (await store.maintain(cutoffs, 10, now)).is_complete(10):
            pass
        expected = (aside[State.SUCCEEDED], aside[State.FAILED], 0)
        assert await outcomes(store) == expected == (28, 2, 0)
        assert await outcomes(store, at(15 * DAY_S).date()) == (14, 1, 0)
        assert await outcomes(store, at(16 * DAY_S).date()) == (14, 0, 0)

    @keeps(11)
    async def test_of_a_retried_run_the_last_outcome_counts(self, store: Store) -> None:
        job = await ended(store, State.FAILED, 0)
        assert await outcomes(store) == (0, 1, 0)
        assert await store.edit([job.id], lifecycle.retry(at(2 * DAY_S)), at(2 * DAY_S)) == [job.id]
        assert await outcomes(store) == (0, 0, 0)
        again = await claimed(store, job.id, at(2 * DAY_S))
        assert not await settle(store, [change(again, State.SUCCEEDED)], at(2 * DAY_S + 1))
        assert await outcomes(store) == (1, 0, 0)
        assert await outcomes(store, at(2 * DAY_S).date()) == (1, 0, 0)

    @keeps(11)
    async def test_a_run_that_never_began_or_deletes_itself_is_counted(self, store: Store) -> None:
        await add(store, waiting := new(schedule="nightly", run_at=at(99)), new(run_at=at(99)))
        assert await store.edit([waiting.id], lifecycle.cancel("enough", at(1)), at(1)) == [waiting.id]
        job = await run(store, 2, auto_remove=True)
        assert not await settle(store, [change(job, State.SUCCEEDED, remove=True)], at(3))
        assert await outcomes(store) == (1, 0, 1)

    @keeps(11)
    async def test_a_refused_end_counts_nothing(self, store: Store) -> None:
        job = await run(store)
        stranger = change(job, State.FAILED, worker="w2", error_json=ERROR)
        assert await settle(store, [stranger], at(1)) == {job.id}
        assert await settle(store, [change(job, State.SUCCEEDED, worker="w2")], at(1)) == {job.id}
        assert await outcomes(store) == (0, 0, 0)

    @keeps(11)
    async def test_a_deleted_schedule_takes_its_counts_along(self, store: Store) -> None:
        (schedule, _) = await stored(store, rule("nightly"), rule("weekly"))
        await ended(store, State.SUCCEEDED, 0)
        await ended(store, State.SUCCEEDED, 2, schedule="weekly")
        await store.delete_schedules([schedule.id])
        assert list(await counted(store, OURS, ("default", "weekly"))) == [("default", "weekly")]

    @keeps(11)
    async def test_a_retry_takes_nothing_from_the_counts_of_a_schedule_made_again(self, store: Store) -> None:
        made = rule("nightly")
        await store.put_schedules([made], T0)
        job = await ended(store, State.FAILED, 0)
        await store.delete_schedules([made.id])
        assert await store.edit((job.id,), lifecycle.retry(at(2)), at(2))
        assert await outcomes(store) == (0, 0, 0)
