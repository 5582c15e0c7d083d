"""Quotas of tenants at enqueue, and what else a tenant's rule does to its jobs: on every store."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from rota import Context, JobHandle, QuotaExceeded, Rota
from rota.model import TenantsInUse
from rota.runtime import tenant_watch
from rota.runtime.tenant_watch import TenantWatch
from rota.testing import FakeClock, drain


@pytest.fixture
async def app(store_url: str) -> AsyncIterator[Rota]:
    app = Rota(store_url, clock=FakeClock())

    @app.task
    async def work(n: int = 0, text: str = "") -> None: ...

    yield app
    await app.close()


async def enqueue(app: Rota, tenant: str = "acme", **options: object) -> JobHandle:
    return await app.enqueue("work", {"n": 1}, tenant=tenant, **options)  # type: ignore[arg-type]


async def count(app: Rota, tenant: str = "acme") -> int:
    return len((await app.jobs(tenant=tenant)).items)


async def test_more_waiting_jobs_than_the_quota_are_refused_and_others_are_not(app: Rota) -> None:
    await app.tenants.set("acme", waiting=2)
    await enqueue(app)
    await enqueue(app, delay=60)
    with pytest.raises(QuotaExceeded, match="tenant 'acme' may have 2 waiting jobs, has 2") as error:
        await enqueue(app)
    assert (error.value.tenant, error.value.quota) == ("acme", "waiting")
    await enqueue(app, "other")
    await enqueue(app, "default")
    assert await count(app) == 2
    await app.tenants.set("acme", waiting=3)
    await enqueue(app)


async def test_a_bulk_call_that_exceeds_a_quota_stores_nothing(app: Rota) -> None:
    await app.tenants.set("acme", waiting=3)
    await enqueue(app)
    with pytest.raises(QuotaExceeded, match="this would add 3"):
        await app.enqueue_many("work", [{"n": n} for n in range(3)], tenant="acme")
    assert await count(app) == 1
    await app.enqueue_many("work", [{"n": n} for n in range(2)], tenant="acme")
    assert await count(app) == 3


async def test_jobs_that_have_run_no_longer_count(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    await app.tenants.set("acme", waiting=1)
    await enqueue(app)
    await drain(app)
    monkeypatch.setattr(tenant_watch, "FRESH_S", 0.0)
    app.runtime.tenants._counts.clear()  # as a second later
    await enqueue(app)
    assert await count(app) == 2


async def test_between_two_counts_a_process_counts_what_it_adds(app: Rota) -> None:
    await app.tenants.set("acme", waiting=5)
    stored = 0
    for _ in range(8):
        try:
            await enqueue(app)
        except QuotaExceeded:
            continue
        stored += 1
    assert stored == await count(app) == 5


async def test_a_count_is_of_the_tenant_alone_however_many_others_there_are(app: Rota) -> None:
    await app.enqueue_many("work", [{"n": n} for n in range(20)], tenant="other")
    await app.enqueue_many("work", [{"n": n} for n in range(3)], tenant="acme", delay=60)
    await enqueue(app)
    store = await app.stores.get()
    (acme, other) = await store.survey(TenantsInUse(app.clock.now(), ("acme", "other"), 10))
    assert (acme.waiting, other.waiting) == (4, 10)


async def test_bytes_of_payloads_count_by_day(app: Rota) -> None:
    clock = app.clock
    assert isinstance(clock, FakeClock)
    await app.tenants.set("acme", bytes_per_day=100)
    for _ in range(2):
        await app.enqueue("work", {"text": "x" * 30}, tenant="acme")
    used = (await app.tenants.get("acme")).quotas[2].used
    assert 60 < used < 100
    with pytest.raises(QuotaExceeded, match="wait until midnight UTC"):
        await app.enqueue("work", {"text": "x" * 30}, tenant="acme")
    other = Rota(app.settings.url, clock=clock)  # another process reads what the first has written
    if "memory" not in app.settings.url:
        with pytest.raises(QuotaExceeded):
            await other.enqueue("work", {"text": "x" * 30}, tenant="acme")
    await other.close()
    clock.advance(86_400)
    await app.enqueue("work", {"text": "x" * 30}, tenant="acme")


async def test_a_tenant_has_no_more_schedules_than_its_quota(app: Rota) -> None:
    await app.tenants.set("acme", schedules=1)
    await app.schedules.create(name="one", task="work", every=60, tenant="acme")
    with pytest.raises(QuotaExceeded, match="tenant 'acme' may have 1 schedules, has 1"):
        await app.schedules.create(name="two", task="work", every=60, tenant="acme")
    await app.schedules.create(name="two", task="work", every=60, tenant="other")
    await app.schedules.create(name="one", task="work", every=90, tenant="acme", on_conflict="update")
    with pytest.raises(QuotaExceeded):
        await app.schedules.create(name="two", task="work", every=9, tenant="acme", on_conflict="update")


async def test_priority_is_capped_and_retention_filled_in(app: Rota) -> None:
    await app.tenants.set("acme", max_priority=5, retention_days=2)
    job = await enqueue(app, priority=9)
    own = await enqueue(app, priority=3, keep="1h")
    (bulk,) = await app.enqueue_many("work", [{"n": 1}], tenant="acme", priority=7)
    other = await enqueue(app, "other", priority=9)
    found = {one.id: one for one in (await app.jobs()).items}
    assert [(found[one.id].priority, found[one.id].keep) for one in (job, own, bulk, other)] == [
        (5, 172_800.0), (3, 3600.0), (5, 172_800.0), (9, None),
    ]  # fmt: skip


async def test_jobs_of_schedules_keep_to_the_rule_too(app: Rota) -> None:
    await app.tenants.set("acme", max_priority=1, retention_days=1, waiting=0)
    await app.schedules.create(name="one", task="work", every=60, tenant="acme", priority=9)
    await drain(app, advance=timedelta(seconds=61))
    (job,) = (await app.jobs(tenant="acme")).items
    assert (job.priority, job.keep, job.state) == (1, 86_400.0, "succeeded")
    with pytest.raises(QuotaExceeded):
        await app.schedules.trigger("one", tenant="acme")


async def test_a_rule_set_elsewhere_is_noticed(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    if "memory" in app.settings.url:
        pytest.skip("no other process can reach it")
    await enqueue(app)
    other = Rota(app.settings.url, clock=app.clock)
    await other.tenants.set("acme", waiting=1)
    await other.close()
    assert app.runtime.tenants.has_nothing
    monkeypatch.setattr(tenant_watch, "monotonic", lambda: 1e12)  # as some seconds later
    with pytest.raises(QuotaExceeded):
        await enqueue(app)


async def test_without_rules_nothing_is_read_but_now_and_then(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    await enqueue(app)
    monkeypatch.setattr(TenantWatch, "admitted", None)  # may not be called
    await enqueue(app)
    await app.enqueue_many("work", [{"n": 1}])
    assert await count(app) == 2


async def test_follow_up_jobs_keep_to_the_rule_in_a_worker_that_has_enqueued_nothing(tmp_path: Path) -> None:
    app, worker = (Rota(f"sqlite:///{tmp_path}/rota.db") for _ in range(2))

    @worker.task
    async def first(ctx: Context) -> None:
        ctx.enqueue("first", {}, priority=50, delay=60)

    await app.tenants.set("acme", max_priority=2)
    await app.enqueue("first", {}, tenant="acme")
    await worker.published.publish(await worker.stores.get())  # as every worker does when it starts
    await worker.serve(burst=True)
    assert [job.priority for job in (await app.jobs(tenant="acme", state="queued")).items] == [2]
    await app.close()
    await worker.close()


def test_a_quota_holds_in_the_callers_own_transaction(tmp_path: Path) -> None:
    path = tmp_path / "rota.db"
    app = Rota(f"sqlite:///{path}")

    @app.task
    def work(n: int = 0) -> None: ...

    app.migrate_sync()
    app.tenants.set_sync("acme", waiting=2, max_priority=1)
    app.close_sync()
    other = Rota(f"sqlite:///{path}")  # a process that has read nothing yet
    connection = sqlite3.connect(path)
    with connection:
        given = {"tenant": "acme", "priority": 9, "connection": connection}
        job = other.enqueue_sync("work", {"n": 1}, **given)  # type: ignore[arg-type]
        assert job.priority == 1
        other.enqueue_many_sync("work", [{"n": 1}], **given)  # type: ignore[arg-type]
        with pytest.raises(QuotaExceeded):
            other.enqueue_sync("work", {"n": 1}, **given)  # type: ignore[arg-type]
    connection.close()
    assert len(other.jobs_sync(tenant="acme").items) == 2
    other.close_sync()


async def test_bytes_in_the_callers_own_transactions_are_those_of_one_day(tmp_path: Path) -> None:
    path, clock = tmp_path / "rota.db", FakeClock()
    app = Rota(f"sqlite:///{path}", clock=clock)
    await app.tenants.set("acme", bytes_per_day=60)
    with closing(sqlite3.connect(path)) as connection:
        for _ in range(3):
            await app.enqueue("work", {"text": "x" * 30}, tenant="acme", connection=connection)
            with pytest.raises(QuotaExceeded, match="bytes_per_day"):
                await app.enqueue("work", {"text": "x" * 30}, tenant="acme", connection=connection)
            connection.commit()
            clock.advance(86_400)
    await app.close()


async def test_a_quota_holds_in_a_transaction_on_postgres(migrated_postgres_url: str) -> None:
    import psycopg

    app = Rota(migrated_postgres_url)
    await app.tenants.set("acme", waiting=1)
    await app.tenants.set("default", waiting=1)
    other = Rota(migrated_postgres_url)
    async with await psycopg.AsyncConnection.connect(migrated_postgres_url) as connection:
        for tenant in ("acme", "default"):
            await other.enqueue("work", {}, tenant=tenant, connection=connection)
            with pytest.raises(QuotaExceeded):
                await other.enqueue("work", {}, tenant=tenant, connection=connection)
    assert len((await app.jobs()).items) == 2
    await app.close()
    await other.close()
