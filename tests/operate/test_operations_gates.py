"""Actions on gates: what is paused, by whom, until when; and who may do it."""

from __future__ import annotations

import warnings
from datetime import timedelta
from shlex import quote

import pytest
from actors import operations_of

from rota import Rota
from rota.errors import Forbidden, NotFound, OptionError
from rota.model import Scope
from rota.operate import Operations
from rota.operate.requests import (
    AuditRequest,
    CreateScheduleRequest,
    EnqueueRequest,
    GateRequest,
    PauseRequest,
    SchedulesRequest,
)
from rota.testing import FakeClock


async def test_queue_pauses_with_reason_and_end_and_resumes(operations: Operations, app: Rota) -> None:
    await app.enqueue("send", {"to": "x"}, queue="mail")
    gate = await operations.gates.pause_queue("mail", PauseRequest(reason="provider down", for_s=60))
    assert (gate.id, gate.actor, gate.reason) == ("queue:mail", "ann", "provider down")
    assert gate.until_at == app.clock.now() + timedelta(seconds=60)
    assert [one.id for one in (await operations.gates.list()).items] == ["queue:mail"]
    (queue,) = (await operations.system.queues()).items
    assert queue.gate == gate
    await operations.gates.resume_queue("mail")
    assert not (await operations.gates.list()).items
    told = [
        entry.action for entry in (await operations.system.audit(AuditRequest(object="queue:mail"))).items
    ]
    assert told == ["queue.resume", "queue.pause"]


async def test_pause_ends_at_its_end_time(operations: Operations, app: Rota) -> None:
    await operations.gates.pause(GateRequest(scope="all", for_s=60))
    assert (await operations.system.stats()).paused
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(61)
    assert not (await operations.gates.list()).items
    assert not (await operations.system.stats()).paused


async def test_pausing_again_replaces_the_reason_and_the_end(operations: Operations) -> None:
    await operations.gates.pause(GateRequest(scope="task", name="send", reason="first", for_s=60))
    await operations.gates.pause(GateRequest(scope="task", name="send", reason="second"))
    (gate,) = (await operations.gates.list()).items
    assert (gate.reason, gate.until_at) == ("second", None)


@pytest.mark.parametrize(
    ("invalid", "message"),
    [
        (GateRequest(scope="queue"), "which queue"),
        (GateRequest(scope="all", name="x"), "has no name"),
        (GateRequest(scope="queue", name="q", for_s=1, until=FakeClock().now()), "not both"),
        (GateRequest(scope="queue", name="q", until=FakeClock().now() - timedelta(days=9999)), "in the past"),
    ],
)
async def test_invalid_pause_is_rejected(operations: Operations, invalid: GateRequest, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        await operations.gates.pause(invalid)
    assert not (await operations.gates.list()).items


async def test_resume_without_a_pause_is_not_found(operations: Operations, app: Rota) -> None:
    with pytest.raises(NotFound, match="nothing is paused under 'queue:mail'"):
        await operations.gates.resume("queue:mail")
    assert not await app.resume(queue="mail")


@pytest.mark.filterwarnings("ignore:no worker, schedule or recent job")
async def test_app_pauses_and_resumes_by_keyword(app: Rota, operations: Operations) -> None:
    await app.pause()
    await app.pause(queue="mail", reason="x")
    await app.pause(task="send")
    await app.pause(tenant="acme")
    ids = {gate.id for gate in (await operations.gates.list()).items}
    assert ids == {"all", "queue:mail", "task:send", "tenant:acme"}
    for given in ({}, {"queue": "mail"}, {"task": "send"}, {"tenant": "acme"}):
        assert await app.resume(**given)
    assert not (await operations.gates.list()).items
    with pytest.raises(OptionError, match="one thing"):
        await app.pause(queue="mail", task="send")


async def test_a_schedule_is_paused_by_tenant_and_name(app: Rota, operations: Operations) -> None:
    with pytest.raises(NotFound):
        await operations.gates.pause(GateRequest(scope="schedule", name="nightly"))
    await operations.schedules.create(
        CreateScheduleRequest(name="nightly", task="send", every=60.0, payload={"to": "x"}, tenant="acme")
    )
    await app.pause(schedule="nightly", tenant="acme", reason="audit week")
    (shown,) = (await operations.schedules.list(SchedulesRequest())).items
    assert shown.gate is not None
    assert shown.gate.id == "schedule:acme/nightly"
    assert await app.resume(schedule="nightly", tenant="acme")


async def test_operator_of_a_tenant_pauses_only_that_tenant(app: Rota, operations: Operations) -> None:
    own = operations_of(app, "operator", "acme")
    await own.gates.pause(GateRequest(scope="tenant", name="acme", reason="our release"))
    await own.gates.resume("tenant:acme")
    for request in (
        GateRequest(scope="all"),
        GateRequest(scope="queue", name="q"),
        GateRequest(scope="tenant", name="other"),
    ):
        with pytest.raises(Forbidden):
            await own.gates.pause(request)
    await operations.gates.pause(GateRequest(scope="tenant", name="other"))
    await operations.gates.pause(GateRequest(scope="queue", name="mail"))
    assert not (await own.gates.list()).items
    for id in ("tenant:other", "queue:mail"):
        with pytest.raises(NotFound):
            await own.gates.resume(id)


async def test_why_names_the_gate(operations: Operations) -> None:
    job = await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    await operations.gates.pause(GateRequest(scope="queue", name=job.queue, reason="provider down"))
    why = await operations.jobs.why(job.id)
    assert why.reasons[0].code == "paused"
    assert "by ann: provider down" in why.summary


async def test_tenant_cannot_resume_a_pause_of_an_operator_for_all_tenants(
    app: Rota, operations: Operations
) -> None:
    own = operations_of(app, "admin", "acme")
    await operations.gates.pause(GateRequest(scope="tenant", name="acme", reason="unpaid"))
    with pytest.raises(Forbidden, match="only an operator for all tenants"):
        await own.gates.resume("tenant:acme")
    with pytest.raises(Forbidden, match="only an operator for all tenants"):
        await own.gates.pause(GateRequest(scope="tenant", name="acme", for_s=1))
    assert [gate.reason for gate in (await own.gates.list()).items] == ["unpaid"]
    await operations.gates.resume("tenant:acme")
    await own.gates.pause(GateRequest(scope="tenant", name="acme"))
    await operations.gates.resume("tenant:acme")


async def test_names_with_slashes_are_not_confused_between_tenants(app: Rota, operations: Operations) -> None:
    for tenant, name in (("a", "b/c"), ("a/b", "c")):
        make = CreateScheduleRequest(name=name, task="send", every=60.0, payload={"to": "x"}, tenant=tenant)
        await operations.schedules.create(make)
    await operations_of(app, "operator", "a").gates.pause(
        GateRequest(scope="schedule", name="b/c", reason="ours")
    )
    (shown,) = (await operations_of(app, "viewer", "a/b").schedules.list(SchedulesRequest())).items
    assert shown.gate is None
    assert not (await operations_of(app, "viewer", "a/b").gates.list()).items


@pytest.mark.parametrize(
    ("scope", "command"),
    [("queue", "rota queues resume"), ("tenant", "rota tenants resume"), ("task", "rota resume --task")],
)
async def test_remedy_quotes_the_name_for_the_shell(
    operations: Operations, scope: Scope, command: str
) -> None:
    name = "it's; rm -rf $HOME"
    job = await operations.jobs.enqueue(EnqueueRequest(**{"task": "elsewhere", scope: name}))  # type: ignore[arg-type]
    await operations.gates.pause(GateRequest(scope=scope, name=name))
    why = await operations.jobs.why(job.id)
    assert why.reasons[0].remedy == f"Resume it: {command} {quote(name)}"


@pytest.mark.parametrize(
    ("scope", "name", "meant"), [("queue", "mial", "mail"), ("task", "sendreceipt", "send_receipt"),
                                 ("tenant", "acmee", "acme")]
)  # fmt: skip
async def test_pausing_a_misspelt_name_warns_and_says_what_was_meant(
    operations: Operations, app: Rota, scope: Scope, name: str, meant: str
) -> None:
    await app.enqueue("send_receipt", {}, queue="mail", tenant="acme")
    gate = await operations.gates.pause(GateRequest(scope=scope, name=name))
    assert gate.warning is not None and f"did you mean {meant!r}?" in gate.warning
    assert [one.name for one in (await operations.gates.list()).items] == [name]
    assert (await operations.gates.pause(GateRequest(scope=scope, name=meant))).warning is None


async def test_names_of_schedules_are_known(operations: Operations, app: Rota) -> None:
    await app.schedules.create(name="nightly", task="clean", cron="0 3 * * *", tenant="initech", queue="slow")
    for scope, name in (("queue", "slow"), ("task", "clean"), ("tenant", "initech")):
        assert (await operations.gates.pause(GateRequest(scope=scope, name=name))).warning is None  # type: ignore[arg-type]


async def test_names_that_workers_have_declared_are_known(operations: Operations, app: Rota) -> None:
    assert (await operations.gates.pause(GateRequest(scope="task", name="send"))).warning is not None
    await app.published.publish(await app.stores.get())  # as a worker does when it starts
    for scope, name in (("task", "send"), ("queue", "mail")):
        assert (await operations.gates.pause(GateRequest(scope=scope, name=name))).warning is None  # type: ignore[arg-type]


async def test_an_app_that_pauses_an_unknown_name_is_warned(app: Rota) -> None:
    with pytest.warns(UserWarning, match="queue 'mial'"):
        await app.pause(queue="mial")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await app.pause(queue="mail")
        await app.pause(task="send")
