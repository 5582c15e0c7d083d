"""``app.for_tenant``: whatever a client is asked, it touches one tenant."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from rota import (
    Forbidden,
    IllegalMove,
    NotFound,
    OptionError,
    QuotaExceeded,
    Rota,
    Task,
    TenantClient,
)
from rota.model import Actor
from rota.runtime.audit import acting_as
from rota.testing import FakeClock, drain


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url, clock=FakeClock())

    @app.task(queue="mail")
    async def double(n: int) -> int:
        return 2 * n

    yield app
    await app.close()


def task(app: Rota) -> Task[..., int]:
    found = app.registry.get("double")
    assert found is not None
    return found


async def test_what_a_client_enqueues_is_of_its_tenant(app: Rota) -> None:
    acme = app.for_tenant("acme")
    jobs = [
        await acme.enqueue("double", {"n": 1}),
        *await acme.enqueue_many("double", [{"n": 2}, {"n": 3}], tenant="acme"),
        await acme.bind(task(app)).enqueue(n=4),
        await acme.bind(task(app)).options(priority=3).enqueue(n=5),
        *await acme.bind(task(app)).enqueue_many([{"n": 6}]),
    ]
    assert {job.tenant for job in jobs} == {"acme"}
    assert (jobs[4].priority, jobs[4].queue) == (3, "mail")
    await app.enqueue("double", {"n": 9})
    assert {job.id for job in (await acme.jobs()).items} == {job.id for job in jobs}
    await drain(app)
    assert await acme.wait(jobs[0].id) == 2
    assert await jobs[3].result() == 8


async def test_an_option_that_names_another_tenant_is_refused(app: Rota) -> None:
    acme = app.for_tenant("acme")
    for call in (
        lambda: acme.bind(task(app)).options(tenant="other"),
        lambda: acme.enqueue_sync("double", {"n": 1}, tenant="other"),
        lambda: acme.enqueue_many_sync("double", [{"n": 1}], tenant="other"),
    ):
        with pytest.raises(OptionError, match=r"tenant='other': this client is for tenant 'acme'"):
            call()
    with pytest.raises(OptionError, match=r"app\.for_tenant\('other'\)"):
        await acme.enqueue("double", {"n": 1}, tenant="other")
    assert (await app.jobs()).items == []


async def test_another_tenants_job_is_not_found(app: Rota) -> None:
    theirs = await app.for_tenant("other").enqueue("double", {"n": 1})
    acme = app.for_tenant("acme")
    for call in (acme.job, acme.cancel, acme.retry, acme.why, acme.wait):
        with pytest.raises(NotFound, match=f"there is no job {theirs.id}"):
            await call(theirs.id)
    assert (await acme.jobs()).items == []
    assert (await acme.jobs(parent=theirs.id)).items == []
    with pytest.raises(OptionError, match="has no such job"):
        await acme.enqueue("double", {"n": 1}, parent=theirs.id)
    assert (await app.job(theirs.id)).state == "queued"


async def test_a_chosen_id_never_shows_another_tenants_job(app: Rota) -> None:
    id = app.ids.new(app.clock.now())
    await app.for_tenant("other").enqueue("double", {"n": 1}, id=id)
    with pytest.raises(OptionError, match="is in use") as error:
        await app.for_tenant("acme").enqueue("double", {"n": 1}, id=id)
    assert "'other'" not in str(error.value)


def test_a_handle_of_a_chosen_id_never_reaches_another_tenants_job(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    app = Rota(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as connection:
        theirs = app.for_tenant("other").enqueue_sync("secret", {"n": 42})
        acme = app.for_tenant("acme")
        handle = acme.enqueue_sync("secret", {"n": 1}, id=theirs.id, connection=connection)
        connection.commit()
        for reach in (handle.refresh_sync, handle.cancel_sync, handle.retry_sync, handle.result_sync):
            with pytest.raises(NotFound):
                reach()
        assert app.job_sync(theirs.id).state == "queued"
    app.close_sync()


async def test_handles_of_a_client_reach_no_further_than_the_client(app: Rota) -> None:
    acme = app.for_tenant("acme")
    await acme.schedules.create(name="s", task="double", every="1h", payload={"n": 1})
    handles = [
        await acme.enqueue("double", {"n": 1}),
        *await acme.enqueue_many("double", [{"n": 2}]),
        await acme.bind(task(app)).enqueue(n=3),
        await acme.schedules.trigger("s"),
    ]
    assert all(handle.access is acme for handle in handles)


async def test_keys_of_tenants_do_not_meet(app: Rota) -> None:
    theirs = await app.for_tenant("other").enqueue("double", {"n": 1}, key="k")
    ours = await app.for_tenant("acme").enqueue("double", {"n": 1}, key="k")
    assert ours.id != theirs.id
    assert [job.id for job in (await app.for_tenant("acme").jobs(key="k")).items] == [ours.id]


async def test_a_client_steers_its_own_jobs(app: Rota) -> None:
    acme = app.for_tenant("acme")
    job = await acme.enqueue("double", {"n": 1})
    assert (await acme.cancel(job.id, "no longer needed")).state == "cancelled"
    again = await acme.retry(job.id)
    assert (await again.refresh()).state == "queued"
    assert (await acme.why(job.id)).job == job.id
    with pytest.raises(IllegalMove):
        await acme.retry(job.id)


async def test_a_pause_is_of_the_tenant_alone_and_only_its_own_is_ended(app: Rota) -> None:
    acme = app.for_tenant("acme")
    ours = await acme.enqueue("double", {"n": 1})
    theirs = await app.for_tenant("other").enqueue("double", {"n": 1})
    await acme.pause(reason="moving")
    await drain(app)
    assert ((await acme.job(ours.id)).state, (await app.job(theirs.id)).state) == ("queued", "succeeded")
    assert await acme.resume()
    assert not await acme.resume()
    await drain(app)
    assert (await acme.job(ours.id)).state == "succeeded"
    await app.pause(tenant="acme")
    with pytest.raises(Forbidden, match="paused by another"):
        await acme.resume()


async def test_schedules_of_a_client_are_its_tenants(app: Rota) -> None:
    acme, other = app.for_tenant("acme"), app.for_tenant("other")
    await acme.schedules.create(name="nightly", task="double", every="1d", payload={"n": 1})
    with pytest.raises(NotFound):
        await other.schedules.get("nightly")
    assert (await other.schedules.list()).items == []
    assert [one.tenant for one in (await acme.schedules.list()).items] == ["acme"]
    assert (await acme.schedules.update("nightly", every="2d")).every == 172_800.0
    assert (await acme.schedules.trigger("nightly")).tenant == "acme"
    assert [run.tenant for run in (await acme.schedules.runs()).items] == ["acme"]
    for call in (other.schedules.delete, other.schedules.disable, other.schedules.trigger):
        with pytest.raises(NotFound):
            await call("nightly")
    with pytest.raises(OptionError, match="this client is for tenant 'acme'"):
        await acme.schedules.create(name="x", task="double", every=9, tenant="other")  # type: ignore[call-arg]
    await acme.schedules.delete("nightly")


async def test_usage_and_limit_are_the_tenants_own(app: Rota) -> None:
    acme = app.for_tenant("acme")
    assert await acme.limit() is None
    assert (await acme.usage()).waiting == 0  # it need not have anything yet
    await app.limits.set("tenant:acme", running=3)
    await app.tenants.set("acme", waiting=1, budget="5/day")
    await acme.enqueue("double", {"n": 1})
    limit, usage = await acme.limit(), await acme.usage()
    assert limit is not None and (limit.running, limit.most) == (0, 3)
    assert (usage.waiting, usage.quotas[0].most, usage.share) == (1, 1, None)
    with pytest.raises(QuotaExceeded):
        await acme.enqueue("double", {"n": 1})


async def test_a_client_does_not_lift_the_limits_of_the_one_who_acts(app: Rota) -> None:
    actor = Actor(name="ann", role="viewer", tenant="other")
    with acting_as(actor), pytest.raises(Forbidden, match="belongs to tenant 'other'"):
        await app.for_tenant("acme").usage()


def test_no_method_of_a_client_takes_a_tenant() -> None:
    for name, method in inspect.getmembers(TenantClient, inspect.isfunction):
        if not name.startswith("_"):
            assert "tenant" not in inspect.signature(method).parameters, name


def test_sync_code_has_clients_too(store_url: str) -> None:
    app = Rota(store_url)

    @app.task
    def work(n: int = 0) -> None: ...

    acme = app.for_tenant("acme")
    job = acme.enqueue_sync("work", {"n": 1})
    bound = acme.bind(work).enqueue_sync(2)
    assert {one.id for one in acme.jobs_sync().items} == {job.id, bound.id}
    assert acme.job_sync(job.id).tenant == "acme"
    acme.schedules.create_sync(name="n", task="work", every=60)
    assert acme.usage_sync().schedules == 1
    with pytest.raises(OptionError, match="tenant=''"):
        app.for_tenant("")
    app.close_sync()
