"""The whole house: counts, queues, tasks, tenants, activity, audit, doctor; within the caller's bounds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from desks import desk_of

from rota import Rota
from rota.errors import Forbidden
from rota.operate import Desk
from rota.operate.asks import (
    ActivityAsk,
    AuditAsk,
    CancelAsk,
    EnqueueAsk,
    RunsAsk,
    ScheduleEdit,
    ScheduleMake,
    WhichTenant,
)
from rota.testing import FakeClock, drain


async def test_stats_count_by_state_and_queue(desk: Desk) -> None:
    first = await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}, queue="mail"))
    await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}, queue="sms", delay=60))
    await desk.jobs.cancel(first.id, CancelAsk())
    stats = await desk.house.stats()
    assert (stats.queued, stats.cancelled, stats.running) == (1, 1, 0)
    assert stats.queues["sms"].scheduled == 1
    assert not stats.paused


async def test_a_tenant_sees_its_own_counts_only(desk: Desk, app: Rota) -> None:
    for tenant in ("acme", "acme", "other"):
        await desk.jobs.enqueue(
            EnqueueAsk(task="send", payload={"to": "x"}, tenant=tenant, queue=f"q-{tenant}")
        )
    own = desk_of(app, "viewer", "acme")
    assert (await own.house.stats()).queued == 2
    assert [queue.name for queue in (await own.house.queues()).items] == ["q-acme"]
    assert [tenant.name for tenant in (await own.house.tenants()).items] == ["acme"]
    assert {tenant.name for tenant in (await desk.house.tenants()).items} == {"acme", "other"}
    for act in (
        own.house.workers(),
        own.house.tasks(),
        own.house.activity(ActivityAsk()),
        own.house.doctor(),
    ):
        with pytest.raises(Forbidden):
            await act


async def test_what_ended_is_told_by_time_queue_and_task(desk: Desk, app: Rota) -> None:
    for _ in range(3):
        await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}))
    await drain(app)
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(60)
    (step,) = (await desk.house.activity(ActivityAsk(hours=1))).items
    assert (step.succeeded, step.failed, step.name) == (3, 0, None)
    (by_task,) = (await desk.house.activity(ActivityAsk(hours=1, by="task"))).items
    assert (by_task.name, by_task.succeeded) == ("send", 3)
    (task,) = (await desk.house.tasks()).items
    assert (task.name, task.per_minute) == ("send", pytest.approx(0.3))
    assert task.p50_ms is not None


async def test_the_audit_log_is_filtered_and_scoped(desk: Desk, app: Rota) -> None:
    own = desk_of(app, "operator", "acme")
    await own.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}))
    await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}, tenant="other"))
    assert len((await desk.house.audit(AuditAsk(action="job."))).items) == 2
    assert len((await desk.house.audit(AuditAsk(actor="ann"))).items) == 1
    (only,) = (await own.house.audit(AuditAsk())).items
    assert only.tenant == "acme"
    later = app.clock.now() + timedelta(hours=1)
    assert not (await desk.house.audit(AuditAsk(since=later))).items
    with pytest.raises(Forbidden):
        await desk_of(app, "viewer").house.audit(AuditAsk())


async def test_the_history_of_a_schedule_is_kept_in_the_audit_log(desk: Desk) -> None:
    """R8: every version of an object, who made it, and what it was before."""
    await desk.schedules.create(ScheduleMake(name="n", task="send", cron="0 3 * * *", payload={"to": "x"}))
    await desk.schedules.update("n", ScheduleEdit(cron="0 4 * * *"))
    await desk.schedules.delete("n", WhichTenant())
    page = await desk.house.audit(AuditAsk(object="schedule:default/n"))
    told = [
        (one.action, one.actor, (one.before or {}).get("cron"), (one.after or {}).get("cron"))
        for one in page.items
    ]
    assert told == [
        ("schedule.delete", "ann", "0 4 * * *", None),
        ("schedule.update", "ann", "0 3 * * *", "0 4 * * *"),
        ("schedule.create", "ann", None, "0 3 * * *"),
    ]


async def test_the_doctor_finds_a_task_that_nobody_knows(desk: Desk) -> None:
    told = await desk.house.doctor()
    assert told.worst in ("fine", "warning")
    await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}))
    told = await desk.house.doctor()
    assert told.worst == "problem"
    assert any(finding.check == "workers" and finding.remedy for finding in told.findings)
    assert told.findings[0].level == "problem"


async def test_me_tells_who_asks_and_what_they_may(desk: Desk, app: Rota) -> None:
    assert (await desk.house.me()).store == app.stores.root().url
    viewer = await desk_of(app, "viewer", "acme").house.me()
    assert (viewer.permissions, viewer.store) == (("read",), None)


async def test_settings_are_shown_with_their_source(desk: Desk) -> None:
    settings = {setting.name: setting for setting in (await desk.house.settings()).items}
    assert settings["worker_concurrency"].value == 32
    assert settings["worker_concurrency"].source == "default"
    assert settings["worker_concurrency"].range == (1, 4096)


async def test_a_schedules_payload_in_the_log_is_for_who_may_see_payloads(desk: Desk, app: Rota) -> None:
    await desk.schedules.create(ScheduleMake(name="n", task="send", every=60.0, payload={"to": "x"}))
    blind = desk_of(app, "operator")
    (seen,) = (await desk.house.audit(AuditAsk(action="schedule.create"))).items
    (hidden,) = (await blind.house.audit(AuditAsk(action="schedule.create"))).items
    assert seen.after["payload"] == {"to": "x", "password": ""} or seen.after["payload"] == {"to": "x"}
    assert "hidden" in hidden.after["payload"]


async def test_what_a_run_says_is_masked_and_for_who_may_see_it(desk: Desk, app: Rota) -> None:
    @app.task
    async def tell() -> dict[str, object]:
        return {"success": True, "message": "m", "details": {"password": "geheim", "n": 1}}

    await desk.schedules.create(ScheduleMake(name="t", task="tell", every=60.0))
    await desk.schedules.trigger("t", WhichTenant())
    await drain(app)
    (run,) = (await desk.schedules.runs(RunsAsk())).items
    assert run.details == {"password": "•••", "n": 1}
    (blind,) = (await desk_of(app, "viewer").schedules.runs(RunsAsk())).items
    assert (blind.details, blind.message) == (None, None)
