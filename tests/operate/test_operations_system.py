"""Reads across the installation: counts, queues, tenants, activity, audit, doctor; limited to the actor."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from actors import operations_of

from rota import Rota
from rota.core.payload.masking import HIDDEN
from rota.errors import Forbidden
from rota.operate import Operations
from rota.operate.requests import (
    ActivityRequest,
    AuditRequest,
    CancelRequest,
    CreateScheduleRequest,
    EnqueueRequest,
    RunsRequest,
    TenantRequest,
    TenantsRequest,
    UpdateScheduleRequest,
)
from rota.runtime.service_records import ServiceStatus
from rota.testing import FakeClock, drain


async def test_stats_count_by_state_and_queue(operations: Operations) -> None:
    first = await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, queue="mail"))
    await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, queue="sms", delay=60))
    await operations.jobs.cancel(first.id, CancelRequest())
    stats = await operations.system.stats()
    assert (stats.queued, stats.cancelled, stats.running) == (1, 1, 0)
    assert stats.queues["sms"].due_later == 1
    assert not stats.paused


async def test_a_tenant_sees_its_own_counts_only(operations: Operations, app: Rota) -> None:
    for tenant in ("acme", "acme", "other"):
        await operations.jobs.enqueue(
            EnqueueRequest(task="send", payload={"to": "x"}, tenant=tenant, queue=f"q-{tenant}")
        )
    own = operations_of(app, "viewer", "acme")
    assert (await own.system.stats()).queued == 2
    assert [queue.name for queue in (await own.system.queues()).items] == ["q-acme"]
    assert [tenant.name for tenant in (await own.tenants.list(TenantsRequest())).items] == ["acme"]
    assert {tenant.name for tenant in (await operations.tenants.list(TenantsRequest())).items} == {
        "acme",
        "other",
    }
    for action in (
        own.system.workers(),
        own.system.tasks(),
        own.system.activity(ActivityRequest()),
        own.system.doctor(),
    ):
        with pytest.raises(Forbidden):
            await action


async def test_activity_counts_finished_jobs_by_time_queue_and_task(
    operations: Operations, app: Rota
) -> None:
    for _ in range(3):
        await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    await drain(app)
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(60)
    (step,) = (await operations.system.activity(ActivityRequest(hours=1))).items
    assert (step.succeeded, step.failed, step.name) == (3, 0, None)
    (by_task,) = (await operations.system.activity(ActivityRequest(hours=1, by="task"))).items
    assert (by_task.name, by_task.succeeded) == ("send", 3)
    (task,) = (await operations.system.tasks()).items
    assert (task.name, task.per_minute) == ("send", pytest.approx(0.3))
    assert task.p50_ms is not None


async def test_audit_log_is_filtered_and_limited_to_the_tenant(operations: Operations, app: Rota) -> None:
    own = operations_of(app, "operator", "acme")
    await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, tenant="other"))
    assert len((await operations.system.audit(AuditRequest(action="job."))).items) == 2
    assert len((await operations.system.audit(AuditRequest(actor="ann"))).items) == 1
    (only,) = (await own.system.audit(AuditRequest())).items
    assert only.tenant == "acme"
    later = app.clock.now() + timedelta(hours=1)
    assert not (await operations.system.audit(AuditRequest(since=later))).items
    with pytest.raises(Forbidden):
        await operations_of(app, "viewer").system.audit(AuditRequest())


async def test_the_history_of_a_schedule_is_kept_in_the_audit_log(operations: Operations) -> None:
    """R8: every version of an object, who changed it, and what it was before."""
    await operations.schedules.create(
        CreateScheduleRequest(name="n", task="send", cron="0 3 * * *", payload={"to": "x"})
    )
    await operations.schedules.update("n", UpdateScheduleRequest(cron="0 4 * * *"))
    await operations.schedules.delete("n", TenantRequest())
    page = await operations.system.audit(AuditRequest(object="schedule:default/n"))
    history = [
        (one.action, one.actor, (one.before or {}).get("cron"), (one.after or {}).get("cron"))
        for one in page.items
    ]
    assert history == [
        ("schedule.delete", "ann", "0 4 * * *", None),
        ("schedule.update", "ann", "0 3 * * *", "0 4 * * *"),
        ("schedule.create", "ann", None, "0 3 * * *"),
    ]


async def test_doctor_finds_due_jobs_without_a_worker(operations: Operations) -> None:
    report = await operations.system.doctor()
    assert report.worst in ("ok", "warning")
    await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    report = await operations.system.doctor()
    assert report.worst == "problem"
    assert any(finding.check == "workers" and finding.remedy for finding in report.findings)
    assert report.findings[0].level == "problem"


async def test_me_shows_the_actor_and_its_permissions(operations: Operations, app: Rota) -> None:
    assert (await operations.system.me()).store == app.stores.root().url
    viewer = await operations_of(app, "viewer", "acme").system.me()
    assert (viewer.permissions, viewer.store) == (("me", "read"), None)


async def test_settings_are_shown_with_their_source(operations: Operations) -> None:
    settings = {setting.name: setting for setting in (await operations.system.settings()).items}
    assert settings["worker_concurrency"].value == 32
    assert settings["worker_concurrency"].source == "default"
    assert settings["worker_concurrency"].range == (1, 4096)


async def test_schedule_payload_in_the_audit_log_requires_payload_permission(
    operations: Operations, app: Rota
) -> None:
    await operations.schedules.create(
        CreateScheduleRequest(name="n", task="send", every=60.0, payload={"to": "x"})
    )
    blind = operations_of(app, "operator")
    (seen,) = (await operations.system.audit(AuditRequest(action="schedule.create"))).items
    (hidden,) = (await blind.system.audit(AuditRequest(action="schedule.create"))).items
    assert seen.after["payload"] == {"to": "x", "password": ""} or seen.after["payload"] == {"to": "x"}
    assert "hidden" in hidden.after["payload"]


async def test_run_details_are_masked_and_require_payload_permission(
    operations: Operations, app: Rota
) -> None:
    @app.task
    async def report() -> dict[str, object]:
        return {"success": True, "message": "m", "details": {"password": "geheim", "n": 1}}

    await operations.schedules.create(CreateScheduleRequest(name="t", task="report", every=60.0))
    await operations.schedules.trigger("t", TenantRequest())
    await drain(app)
    (run,) = (await operations.schedules.runs(RunsRequest())).items
    assert run.details == {"password": "•••", "n": 1}
    (blind,) = (await operations_of(app, "viewer").schedules.runs(RunsRequest())).items
    assert (blind.details, blind.message) == (HIDDEN, HIDDEN)


async def test_services_of_a_worker_are_listed_and_examined(operations: Operations, app: Rota) -> None:
    now = app.clock.now()
    late = ServiceStatus(
        name="rescue", state="late", succeeded_at=now - timedelta(seconds=95), error="the server is on fire"
    )
    fine = ServiceStatus(name="gates", state="ok", succeeded_at=now)
    body = {"host": "h", "services": [late, fine]}
    store = await app.stores.get()
    await store.put_document("worker", "w1", msgspec.json.encode(body).decode(), None, now)
    await store.put_document("worker", "w2", '{"host": "h", "services": [{"name": 7}]}', None, now)
    await store.put_document("worker", "w3", '{"host": "h"}', None, now)
    first, second, third = (await operations.system.workers()).items
    assert [(one.name, one.state) for one in first.services] == [("rescue", "late"), ("gates", "ok")]
    assert first.services[1].succeeded_at == now
    assert second.services == third.services == ()
    (found,) = [one for one in (await operations.system.doctor()).findings if one.check == "services"]
    assert (found.level, found.text) == (
        "problem",
        "rescue of worker w1 last succeeded 95 s ago: the server is on fire",
    )
