"""PostgreSQL: jobs of a paused tenant stand aside, out of the index of due jobs, and come back in order."""

from __future__ import annotations

from rota.core.jobs import lifecycle
from rota.model import CurrentOverview, JobCount, JobFilter, JobsAhead, State
from rota.store.calls import claim, edit_matching
from rota.store.postgres.store import PostgresStore
from rota.testing.conformance.factories import T0, at, found, ids, new, want

ASIDE = "SELECT count(*) FROM rota.queued WHERE due IS NULL"
PAUSED = ("loud",)


async def aside(store: PostgresStore) -> int:
    ((count,),) = await store._connections.rows(ASIDE)
    return int(count)


async def test_a_paused_tenant_is_passed_once_and_not_with_every_claim(store: PostgresStore) -> None:
    loud = [new(tenant="loud", priority=5) for _ in range(3000)]
    quiet = [new(tenant="quiet") for _ in range(30)]
    await store.insert([*loud, *quiet], T0)
    taken = await claim(store, want(10, exclude_tenants=PAUSED), T0)
    assert ids(taken) == [job.id for job in quiet[:10]]
    assert await aside(store) == 3000
    assert await store.survey(JobsAhead(await found(store, quiet[20].id), 100)) == 10
    overview = await store.survey(CurrentOverview(at(5), "loud"))
    assert overview.queues["default"].due == 3000
    assert await store.survey(JobCount(JobFilter(tenant="loud", states=(State.QUEUED,)), 5000)) == 3000


async def test_held_jobs_run_in_order_and_before_less_urgent_ones(store: PostgresStore) -> None:
    loud = [new(tenant="loud", priority=n % 3, queue=f"q{n % 2}") for n in range(1200)]
    quiet = [new(tenant="quiet", priority=1, queue="q0") for _ in range(40)]
    await store.insert([*loud, *quiet], T0)
    assert not await claim(store, want(10, queues=("q1",), exclude_tenants=PAUSED), T0)
    assert len(await claim(store, want(10, exclude_tenants=PAUSED), T0)) == 10
    assert await aside(store) == 1200
    left = [*loud, *quiet[10:]]
    for queue in ("q0", "q1"):
        taken = []
        while jobs := await claim(store, want(70, queues=(queue,)), T0):
            taken += jobs
        assert [job.priority for job in taken] == sorted((job.priority for job in taken), reverse=True)
        for tenant in ("loud", "quiet"):
            expected = sorted(
                (job for job in left if (job.queue, job.tenant) == (queue, tenant)),
                key=lambda job: (-job.priority, job.id),
            )
            assert ids([job for job in taken if job.tenant == tenant]) == [job.id for job in expected]
    assert await aside(store) == 0


async def test_what_stands_aside_can_be_edited(store: PostgresStore) -> None:
    jobs = [new(tenant="loud") for _ in range(400)]
    await store.insert(jobs, T0)
    assert not await claim(store, want(exclude_tenants=PAUSED), T0)
    assert await aside(store) == 400
    first, second, third = (JobFilter(ids=(job.id,)) for job in jobs[:3])
    assert await edit_matching(store, first, lifecycle.cancel("no", at(1)), 1, at(1))
    assert await edit_matching(store, second, lifecycle.delete(), 1, at(1))
    assert await edit_matching(store, third, lifecycle.move(run_at=at(60)), 1, at(1))
    assert not await claim(store, want(exclude_tenants=PAUSED), at(61))
    assert await aside(store) == 397
    assert ids(await claim(store, want(400), at(62))) == [*(job.id for job in jobs[3:]), jobs[2].id]


async def test_a_tenant_that_stays_paused_does_not_come_back_with_another(store: PostgresStore) -> None:
    jobs = [new(tenant=tenant) for tenant in ("a", "b", "c") for _ in range(100)]
    await store.insert(jobs, T0)
    assert not await claim(store, want(exclude_tenants=("a", "b", "c")), T0)
    assert await aside(store) == 300
    assert ids(await claim(store, want(exclude_tenants=("a", "c")), T0)) == [job.id for job in jobs[100:110]]
    assert await aside(store) == 290
    assert not await claim(store, want(queues=("other",)), T0)
    assert not await claim(store, want(exclude_queues=("default",)), T0)
    assert await aside(store) == 290


async def test_jobs_of_an_unknown_task_are_held_and_run_where_it_is_known(store: PostgresStore) -> None:
    unknown = [new(task="other") for _ in range(1000)]
    known = [new() for _ in range(30)]
    await store.insert([*unknown, *known], T0)
    assert ids(await claim(store, want(10, tasks=("work",)), T0)) == [job.id for job in known[:10]]
    assert await aside(store) == 1000
    assert ids(await claim(store, want(10, tasks=("work",)), T0)) == [job.id for job in known[10:20]]
    jobs = await claim(store, want(1005), T0)
    assert ids(jobs) == [job.id for job in [*unknown, *known[20:25]]]
    assert await aside(store) == 0
