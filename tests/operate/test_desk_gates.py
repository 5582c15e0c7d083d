"""Gates at the desk: what is paused, by whom, until when; and who may."""

from __future__ import annotations

from datetime import timedelta
from shlex import quote

import pytest
from desks import desk_of

from rota import Rota
from rota.errors import Forbidden, NotFound, OptionError
from rota.model import Scope
from rota.operate import Desk
from rota.operate.asks import AuditAsk, EnqueueAsk, GateAsk, PauseAsk, ScheduleMake, SchedulesAsk
from rota.testing import FakeClock


async def test_a_queue_is_paused_with_reason_and_end_and_resumed(desk: Desk, app: Rota) -> None:
    gate = await desk.gates.pause_queue("mail", PauseAsk(reason="provider down", for_s=60))
    assert (gate.id, gate.actor, gate.reason) == ("queue:mail", "ann", "provider down")
    assert gate.until_at == app.clock.now() + timedelta(seconds=60)
    assert [one.id for one in (await desk.gates.list()).items] == ["queue:mail"]
    (queue,) = (await desk.house.queues()).items
    assert queue.gate == gate
    await desk.gates.resume_queue("mail")
    assert not (await desk.gates.list()).items
    told = [entry.action for entry in (await desk.house.audit(AuditAsk(object="queue:mail"))).items]
    assert told == ["queue.resume", "queue.pause"]


async def test_a_gate_is_gone_when_its_end_has_come(desk: Desk, app: Rota) -> None:
    await desk.gates.pause(GateAsk(scope="all", for_s=60))
    assert (await desk.house.stats()).paused
    assert isinstance(app.clock, FakeClock)
    app.clock.advance(61)
    assert not (await desk.gates.list()).items
    assert not (await desk.house.stats()).paused


async def test_pausing_again_replaces_the_reason_and_the_end(desk: Desk) -> None:
    await desk.gates.pause(GateAsk(scope="task", name="send", reason="first", for_s=60))
    await desk.gates.pause(GateAsk(scope="task", name="send", reason="second"))
    (gate,) = (await desk.gates.list()).items
    assert (gate.reason, gate.until_at) == ("second", None)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (GateAsk(scope="queue"), "which queue"),
        (GateAsk(scope="all", name="x"), "has no name"),
        (GateAsk(scope="queue", name="q", for_s=1, until=FakeClock().now()), "not both"),
        (GateAsk(scope="queue", name="q", until=FakeClock().now() - timedelta(days=9999)), "in the past"),
    ],
)
async def test_a_gate_that_makes_no_sense_is_refused(desk: Desk, ask: GateAsk, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        await desk.gates.pause(ask)
    assert not (await desk.gates.list()).items


async def test_what_is_not_paused_cannot_be_resumed(desk: Desk, app: Rota) -> None:
    with pytest.raises(NotFound, match="nothing is paused under 'queue:mail'"):
        await desk.gates.resume("queue:mail")
    assert not await app.resume(queue="mail")


async def test_the_app_pauses_by_the_names_of_the_interface(app: Rota, desk: Desk) -> None:
    await app.pause()
    await app.pause(queue="mail", reason="x")
    await app.pause(task="send")
    await app.pause(tenant="acme")
    ids = {gate.id for gate in (await desk.gates.list()).items}
    assert ids == {"all", "queue:mail", "task:send", "tenant:acme"}
    for given in ({}, {"queue": "mail"}, {"task": "send"}, {"tenant": "acme"}):
        assert await app.resume(**given)
    assert not (await desk.gates.list()).items
    with pytest.raises(OptionError, match="one thing"):
        await app.pause(queue="mail", task="send")


async def test_a_schedule_is_paused_by_tenant_and_name(app: Rota, desk: Desk) -> None:
    with pytest.raises(NotFound):
        await desk.gates.pause(GateAsk(scope="schedule", name="nightly"))
    await desk.schedules.create(
        ScheduleMake(name="nightly", task="send", every=60.0, payload={"to": "x"}, tenant="acme")
    )
    await app.pause(schedule="nightly", tenant="acme", reason="audit week")
    (shown,) = (await desk.schedules.list(SchedulesAsk())).items
    assert shown.gate is not None
    assert shown.gate.id == "schedule:acme/nightly"
    assert await app.resume(schedule="nightly", tenant="acme")


async def test_a_tenants_operator_pauses_its_own_and_nothing_that_others_share(app: Rota, desk: Desk) -> None:
    own = desk_of(app, "operator", "acme")
    await own.gates.pause(GateAsk(scope="tenant", name="acme", reason="our release"))
    await own.gates.resume("tenant:acme")
    for ask in (
        GateAsk(scope="all"),
        GateAsk(scope="queue", name="q"),
        GateAsk(scope="tenant", name="other"),
    ):
        with pytest.raises(Forbidden):
            await own.gates.pause(ask)
    await desk.gates.pause(GateAsk(scope="tenant", name="other"))
    await desk.gates.pause(GateAsk(scope="queue", name="mail"))
    assert [gate.id for gate in (await own.gates.list()).items] == ["queue:mail"]
    with pytest.raises(NotFound):
        await own.gates.resume("tenant:other")
    with pytest.raises(Forbidden):
        await own.gates.resume("queue:mail")


async def test_why_names_the_gate(desk: Desk) -> None:
    job = await desk.jobs.enqueue(EnqueueAsk(task="send", payload={"to": "x"}))
    await desk.gates.pause(GateAsk(scope="queue", name=job.queue, reason="provider down"))
    told = await desk.jobs.why(job.id)
    assert told.reasons[0].code == "paused"
    assert "by ann: provider down" in told.summary


async def test_what_was_closed_over_a_tenants_head_it_cannot_open(app: Rota, desk: Desk) -> None:
    own = desk_of(app, "admin", "acme")
    await desk.gates.pause(GateAsk(scope="tenant", name="acme", reason="unpaid"))
    with pytest.raises(Forbidden, match="bound to no tenant"):
        await own.gates.resume("tenant:acme")
    with pytest.raises(Forbidden, match="bound to no tenant"):
        await own.gates.pause(GateAsk(scope="tenant", name="acme", for_s=1))
    assert [gate.reason for gate in (await own.gates.list()).items] == ["unpaid"]
    await desk.gates.resume("tenant:acme")
    await own.gates.pause(GateAsk(scope="tenant", name="acme"))
    await desk.gates.resume("tenant:acme")


async def test_names_with_slashes_are_never_taken_for_another_tenants(app: Rota, desk: Desk) -> None:
    for tenant, name in (("a", "b/c"), ("a/b", "c")):
        make = ScheduleMake(name=name, task="send", every=60.0, payload={"to": "x"}, tenant=tenant)
        await desk.schedules.create(make)
    await desk_of(app, "operator", "a").gates.pause(GateAsk(scope="schedule", name="b/c", reason="ours"))
    (shown,) = (await desk_of(app, "viewer", "a/b").schedules.list(SchedulesAsk())).items
    assert shown.gate is None
    assert not (await desk_of(app, "viewer", "a/b").gates.list()).items


@pytest.mark.parametrize(
    ("scope", "command"),
    [("queue", "rota queues resume"), ("tenant", "rota tenants resume"), ("task", "rota resume --task")],
)
async def test_a_command_to_paste_holds_a_name_together(desk: Desk, scope: Scope, command: str) -> None:
    name = "it's; rm -rf $HOME"
    job = await desk.jobs.enqueue(EnqueueAsk(**{"task": "elsewhere", scope: name}))  # type: ignore[arg-type]
    await desk.gates.pause(GateAsk(scope=scope, name=name))
    why = await desk.jobs.why(job.id)
    assert why.reasons[0].remedy == f"Lift it: {command} {quote(name)}"
