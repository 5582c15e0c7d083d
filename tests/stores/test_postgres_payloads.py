"""PostgreSQL: a large payload is written once, is the job's wherever it stands, and goes with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rota.core.jobs import lifecycle
from rota.model import FINAL, Job, JobCount, JobFilter, NewJob, RetentionCutoffs, State
from rota.store.calls import settle
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, add, change, claimed, found, new

LARGE = '{"text":"' + "rota \\u0000 " * 1000 + '"}'
SMALL = '{"text":"small"}'
LATER = T0 + timedelta(days=2)


async def apart(store: PostgresStore) -> list[str]:
    """The jobs whose payload stands apart."""
    return [row[0] for row in await store._connections.rows("SELECT job FROM rota.payloads ORDER BY job")]


async def stored(store: PostgresStore, **fields: object) -> Job:
    job = new(payload_json=LARGE, **fields)
    await add(store, job)
    return await found(store, job.id)


@pytest.mark.parametrize("count", [1, 3, 200])
async def test_by_every_road_it_is_stored_apart_and_read_with_the_job(
    store: PostgresStore, count: int
) -> None:
    jobs = [new(payload_json=LARGE if i % 2 == 0 else SMALL) for i in range(count)]
    await add(store, *jobs)
    assert await apart(store) == sorted(job.id for job in jobs[::2])
    for job in jobs[:3]:
        assert (await found(store, job.id)).payload_json == job.payload_json


async def test_it_is_the_jobs_through_its_whole_life_and_written_once(store: PostgresStore) -> None:
    job = await stored(store)
    ((before,),) = await store._connections.rows("SELECT xmin::text FROM rota.payloads")
    for _ in range(2):
        taken = await claimed(store, job.id, T0)
        assert taken.payload_json == LARGE
        await settle(store, [change(taken, State.QUEUED)], T0)
    taken = await claimed(store, job.id, T0)
    (rescued,) = await store.reclaim("other", 30.0, 10, T0 + timedelta(hours=1))
    assert rescued.payload_json == LARGE
    assert not await settle(store, [change(rescued, State.FAILED, worker="other")], T0)
    assert (await found(store, job.id)).payload_json == LARGE
    await store.edit((job.id,), lifecycle.retry(T0), T0)
    assert (await claimed(store, job.id, T0)).payload_json == LARGE
    assert await store._connections.rows("SELECT xmin::text FROM rota.payloads") == [(before,)]


async def test_jobs_are_found_by_what_stands_in_it(store: PostgresStore) -> None:
    job = new(payload_json='{"order":{"id":42},"text":"' + "x" * 5000 + '"}')
    await add(store, job)
    assert (await found(store, job.id)).payload["order"] == {"id": 42}
    assert await store.survey(JobCount(JobFilter(payload=((("order", "id"), "42"),)), 10)) == 1


async def test_a_job_that_is_replaced_has_the_new_one(store: PostgresStore) -> None:
    job = await stored(store, key="k")
    for text in ('{"text":"' + "y" * 3000 + '"}', SMALL, LARGE):
        (answer,) = await add(store, new(key="k", on_conflict="replace", payload_json=text))
        assert (answer.id, answer.outcome) == (job.id, "replaced")
        assert (await found(store, job.id)).payload_json == text
        assert await apart(store) == ([] if text == SMALL else [job.id])


async def test_it_goes_with_a_job_that_is_deleted_or_removed_or_forgotten(
    store: PostgresStore,
) -> None:
    deleted = await stored(store)
    await store.edit((deleted.id,), lifecycle.delete(), T0)
    passing = await claimed(store, (await stored(store)).id, T0)
    await settle(store, [change(passing, State.SUCCEEDED, remove=True)], T0)
    assert await apart(store) == []
    ended = await claimed(store, (await stored(store)).id, T0)
    await settle(store, [change(ended, State.SUCCEEDED)], T0)
    kept = await stored(store)
    assert (await store.maintain(RetentionCutoffs(jobs=dict.fromkeys(FINAL, LATER)), 10, LATER)).jobs == 1
    assert await apart(store) == [kept.id]


async def test_it_goes_with_a_whole_day(store: PostgresStore) -> None:
    await store.maintain(RetentionCutoffs(), 1, T0)
    ended = await claimed(store, (await stored(store)).id, T0)
    await settle(store, [change(ended, State.SUCCEEDED)], T0)
    await store.maintain(RetentionCutoffs(jobs=dict.fromkeys(FINAL, LATER)), 1, LATER)
    assert await apart(store) == []


async def test_a_job_asked_for_again_keeps_its_payload(store: PostgresStore) -> None:
    job: NewJob = new(payload_json=LARGE)
    await add(store, job)
    await store.insert([job], T0, retrying=True)
    await claimed(store, job.id, T0)
    await store.insert([job], T0, retrying=True)
    assert (await found(store, job.id)).payload_json == LARGE
