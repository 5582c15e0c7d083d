"""PostgreSQL: days of history, the tally, and claims side by side."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from rota.core.jobs import lifecycle
from rota.model import FINAL, CurrentOverview, JobFilter, PageRequest, RetentionCutoffs, State
from rota.store.calls import claim, settle
from rota.store.postgres.job_pages import count_statement, page_statement
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, change, in_state, new, read, record, running, want

DAY = timedelta(days=1)
PART = "SELECT relname FROM pg_class WHERE oid = (SELECT tableoid FROM rota.done WHERE id = %s)"


async def part_of(store: PostgresStore, job: str) -> str:
    ((part,),) = await store._connections.rows(PART, (job,))
    return str(part)


async def days(store: PostgresStore) -> set[str]:
    rows = await store._connections.rows("SELECT partition::text FROM rota.days")
    return {row[0].removeprefix("rota.") for row in rows}


async def succeeded(store: PostgresStore) -> int:
    return (await store.survey(CurrentOverview(T0))).counts[State.SUCCEEDED]


async def test_a_day_is_made_before_any_job_can_end_in_it(store: PostgresStore) -> None:
    """A reader planned before a partition was attached would miss the jobs that end in it."""
    before = await days(store)
    early = await in_state(store, State.SUCCEEDED)
    await store.maintain(RetentionCutoffs(), 1, T0)
    assert await days(store) - before == {f"done_203001{day:02}" for day in range(3, 16)}
    late = await in_state(store, State.FAILED)
    assert {await part_of(store, early), await part_of(store, late)} == {"done_default"}
    third = await running(store, now=T0 + 2 * DAY)
    await settle(store, [change(third, State.SUCCEEDED)], T0 + 2 * DAY)
    assert await part_of(store, third.id) == "done_20300103"
    cutoffs = RetentionCutoffs(jobs={state: T0 + DAY for state in FINAL})
    assert (await store.maintain(cutoffs, 100, T0 + 2 * DAY)).jobs == 2  # row by row
    assert await read(store, early) is None and await read(store, third.id) is not None
    assert await succeeded(store) == 1


async def test_a_whole_expired_day_is_dropped(store: PostgresStore) -> None:
    await store.maintain(RetentionCutoffs(), 1, T0 - 2 * DAY)
    gone = await in_state(store, State.SUCCEEDED)
    job = await running(store)
    record_of = lifecycle.decide(job, lifecycle.Cancelled(reason="no"), T0, 0.0)
    await settle(store, [record_of], T0)
    kept = await running(store, now=T0 + 2 * DAY)
    await settle(store, [change(kept, State.SUCCEEDED)], T0 + 2 * DAY)
    assert await store.attempts(job.id)
    assert (
        await store.maintain(RetentionCutoffs(jobs={state: T0 + DAY for state in FINAL}), 100, T0 + 2 * DAY)
    ).jobs == 2
    assert "done_20300101" not in await days(store)
    assert await read(store, gone) is None and await read(store, kept.id) is not None
    assert not await store.attempts(job.id)
    assert await succeeded(store) == 1


async def test_a_reader_keeps_its_day_and_no_one_waits(
    store: PostgresStore, migrated_postgres_url: str
) -> None:
    await store.maintain(RetentionCutoffs(), 1, T0 - 2 * DAY)
    await in_state(store, State.SUCCEEDED)
    cutoffs = RetentionCutoffs(jobs={state: T0 + DAY for state in FINAL})
    with psycopg.connect(migrated_postgres_url) as reader:
        reader.execute("SELECT count(*) FROM rota.done").fetchone()
        assert (await store.maintain(cutoffs, 100, T0 + 2 * DAY)).jobs == 1  # row by row instead
        assert "done_20300101" in await days(store)
        assert await in_state(store, State.SUCCEEDED)
    assert (await store.maintain(cutoffs, 100, T0 + 2 * DAY)).jobs == 1
    assert "done_20300101" not in await days(store)


async def test_folding_the_tally_keeps_its_sums(store: PostgresStore) -> None:
    for _ in range(3):
        await in_state(store, State.SUCCEEDED)
    failed = await in_state(store, State.FAILED)
    await store.maintain(RetentionCutoffs(), 1, T0 + 5 * DAY)
    counts = (await store.survey(CurrentOverview(T0))).counts
    assert (counts[State.SUCCEEDED], counts[State.FAILED]) == (3, 1)
    await store.edit((failed,), lifecycle.retry(T0), T0)
    await store.maintain(RetentionCutoffs(), 1, T0 + 5 * DAY)
    assert (await store.survey(CurrentOverview(T0))).counts[State.FAILED] == 0
    await store.maintain(RetentionCutoffs(), 1, T0 + 5 * DAY)  # and what came to nothing is forgotten
    assert await store._connections.rows("SELECT count(*) FROM rota.tally") == [(1,)]


async def test_claimers_side_by_side_never_get_the_same_job(store: PostgresStore) -> None:
    jobs = [new(queue=f"q{n % 4}", priority=n % 3) for n in range(3000)]
    await store.insert(jobs, T0)
    claimers = [store.for_another_loop() for _ in range(4)]
    taken: list[str] = []

    async def drain_as(claimer: PostgresStore, name: str) -> None:
        await claimer.open()
        pending: list[str] = []
        while got := await claim(claimer, want(37, worker=name), T0):
            pending += [job.id for job in got]
            refused = await settle(claimer, [change(job, State.SUCCEEDED) for job in got], T0)
            assert not refused
        taken.extend(pending)
        await claimer.close()

    await asyncio.gather(*(drain_as(claimer, f"w{n}") for n, claimer in enumerate(claimers)))
    # a claimer may have met only locked rows at the end: the last one takes what is left
    taken += [job.id for job in await claim(store, want(3000), T0)]
    assert sorted(taken) == sorted(job.id for job in jobs)


async def test_an_urgent_job_is_not_hidden_by_where_the_last_claim_ended(store: PostgresStore) -> None:
    await store.insert([new(queue=f"q{n % 2}") for n in range(300)], T0)
    assert len(await claim(store, want(50), T0)) == 50
    urgent, ordinary = new(queue="q1", priority=9), new(queue="q0", priority=-9)
    await store.insert([urgent, ordinary], T0)
    assert (await claim(store, want(50), T0))[0].id == urgent.id
    rest = [job.id for job in await claim(store, want(1000), T0)]
    assert len(rest) == 202 and ordinary.id in rest


async def test_a_job_behind_the_place_of_the_last_claim_is_found_when_the_claim_runs_short(
    store: PostgresStore,
) -> None:
    await store.insert([new(queue="b") for n in range(70)], T0)
    assert len(await claim(store, want(50), T0)) == 50
    behind, elsewhere = new(queue="b", run_at=T0 - DAY), new(queue="a")
    await store.insert([behind, elsewhere], T0)
    got = {job.id for job in await claim(store, want(50), T0)}
    assert len(got) == 22 and {behind.id, elsewhere.id} <= got


@pytest.mark.parametrize(
    "states, live, ended",
    [
        ((State.QUEUED,), True, False),
        ((State.FAILED, State.SUCCEEDED), False, True),
        ((State.QUEUED, State.FAILED), True, True),
        (None, True, True),
    ],
)
async def test_a_question_about_live_jobs_does_not_look_through_those_that_have_ended(
    store: PostgresStore, states: tuple[State, ...] | None, live: bool, ended: bool
) -> None:
    where = JobFilter(states=states)
    for statement, params in (page_statement(where, PageRequest()), count_statement(where, 10)):
        plan = "\n".join(row[0] for row in await store._connections.rows(f"EXPLAIN {statement}", params))
        assert (" on queued" in plan, " on done" in plan) == (live, ended), plan


async def test_a_day_that_is_dropped_leaves_the_jobs_with_a_retention_of_their_own(
    store: PostgresStore,
) -> None:
    await store.maintain(RetentionCutoffs(), 1, T0)
    third = T0 + 2 * DAY
    kept, gone = await running(store, now=third, keep=400 * 86400.0), await running(store, now=third)
    settled = [change(one, State.SUCCEEDED, record=record(one, "succeeded", third)) for one in (kept, gone)]
    await settle(store, settled, third)
    cutoffs = RetentionCutoffs(jobs={state: T0 + 10 * DAY for state in FINAL})
    await store.maintain(cutoffs, 100, T0 + 10 * DAY)
    assert "done_20300103" not in await days(store)
    assert await read(store, gone.id) is None
    assert await part_of(store, kept.id) == "done_default"
    assert len(await store.attempts(kept.id)) == 1 and await succeeded(store) == 1
    await store.maintain(cutoffs, 100, third + 401 * DAY)
    assert await read(store, kept.id) is None and await succeeded(store) == 0
