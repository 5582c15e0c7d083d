"""What a credential that is limited to one tenant learns of others, and of those who act for all tenants."""

from __future__ import annotations

import msgspec
import pytest
from actors import operations_of

from rota import Rota
from rota.errors import OptionError
from rota.model import Actor, ClaimRequest
from rota.operate import Operations
from rota.operate.credentials import actor_of, by_token
from rota.operate.requests import (
    AuditRequest,
    BulkRequest,
    CancelRequest,
    CreateScheduleRequest,
    CreateTokenRequest,
    EnqueueRequest,
    GateRequest,
    PutCalendarRequest,
    RotateTokenRequest,
    UpdateJobRequest,
)
from rota.store.calls import claim


async def test_a_tenant_sees_pauses_of_its_own_jobs_without_author_and_reason(
    app: Rota, operations: Operations
) -> None:
    own = operations_of(app, "operator", "acme")
    job = await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    for request in (
        GateRequest(scope="queue", name=job.queue, reason="globex asked"),
        GateRequest(scope="queue", name="merger", reason="globex asked"),
        GateRequest(scope="task", name="send", reason="globex asked"),
        GateRequest(scope="task", name="merge", reason="globex asked"),
    ):
        await operations.gates.pause(request)
    seen = (await own.gates.list()).items
    assert {gate.id for gate in seen} == {f"queue:{job.queue}", "task:send"}
    everything = [seen, await own.jobs.why(job.id), await own.system.queues(), await own.jobs.show(job.id)]
    told = msgspec.json.encode(everything).decode()
    assert not [word for word in ("ann", "globex", "merge") if word in told], told
    assert "is paused by an operator for all tenants" in told
    assert {gate.reason for gate in (await operations.gates.list()).items} == {"globex asked"}


async def test_a_tenant_learns_nothing_of_how_much_others_have_to_do(
    app: Rota, operations: Operations
) -> None:
    for n in range(3):
        await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": f"{n}"}, tenant="globex"))
    own = operations_of(app, "operator", "acme")
    job = await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, queue="mail"))
    store = await app.stores.get()
    record = {"id": "w", "tasks": ["send"], "queues": None, "concurrency": 1, "running": 1}
    await store.put_document("worker", "w", msgspec.json.encode(record).decode(), None, app.clock.now())
    ours, all_of_them = await own.jobs.why(job.id), await operations.jobs.why(job.id)
    assert "3 due jobs come before it" in all_of_them.summary
    assert "1 or more due jobs come first" in ours.summary


async def test_an_operator_of_a_tenant_raises_no_job_above_its_max_priority(
    app: Rota, operations: Operations
) -> None:
    await app.tenants.set("acme", max_priority=5)
    own = operations_of(app, "operator", "acme")
    ids = [(await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))).id for _ in range(2)]
    assert (await own.jobs.move(ids[0], UpdateJobRequest(priority=90))).priority == 5
    await own.jobs.bulk(BulkRequest(action="move", ids=tuple(ids), move=UpdateJobRequest(priority=90)))
    assert (await own.jobs.show(ids[1])).priority == 5
    assert (await operations.jobs.move(ids[0], UpdateJobRequest(priority=90))).priority == 90


async def test_a_tenant_does_not_learn_which_job_of_another_fills_a_limit(
    app: Rota, operations: Operations
) -> None:
    theirs = await operations.jobs.enqueue(
        EnqueueRequest(task="send", payload={"to": "x"}, tenant="globex", concurrency_key="globex-crm")
    )
    for name in ("queue:default", "key:globex*", "task:send"):
        await app.limits.set(name, running=1)
    wanted = ClaimRequest(worker="w-7", limit=1, lease_s=60, tasks=("send",))
    assert await claim(await app.stores.get(), wanted, app.clock.now())
    own = operations_of(app, "operator", "acme")
    for key in (None, "globex-crm"):
        job = await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, concurrency_key=key))
        told = msgspec.json.encode([await own.jobs.why(job.id), await own.jobs.show(job.id)]).decode()
        assert theirs.id not in told and "w-7" not in told
        assert "is full" in told, told


async def test_a_parent_is_a_job_of_the_same_tenant(app: Rota, operations: Operations) -> None:
    theirs = await operations.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, tenant="globex"))
    own = operations_of(app, "operator", "acme")
    mine = await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    for parent in (theirs.id, "01890000-0000-7000-8000-000000000000"):
        with pytest.raises(OptionError, match="has no such job"):
            await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, parent=parent))
    child = await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}, parent=mine.id))
    assert child.parent == mine.id


async def test_a_tenant_sees_the_calendars_that_its_schedules_use(app: Rota, operations: Operations) -> None:
    own = operations_of(app, "operator", "acme")
    for name in ("holidays", "globex-closing"):
        await operations.schedules.put_calendar(name, PutCalendarRequest(dates=("2030-12-25",)))
    assert not (await own.schedules.calendars()).items
    await own.schedules.create(
        CreateScheduleRequest(name="s", task="send", every=60.0, payload={"to": "x"}, calendar="holidays")
    )
    assert [one.name for one in (await own.schedules.calendars()).items] == ["holidays"]
    assert len((await operations.schedules.calendars()).items) == 2


async def test_a_tenant_does_not_learn_who_acts_for_all_tenants(app: Rota, operations: Operations) -> None:
    platform = app.operations(
        Actor(
            name="token:ops#77", role="admin", payloads=True, via="http", address="10.9.8.7", request_id="r-9"
        )
    )
    own = operations_of(app, "operator", "acme", payloads=True)
    job = await own.jobs.enqueue(EnqueueRequest(task="send", payload={"to": "x"}))
    await platform.jobs.cancel(job.id, CancelRequest(reason="globex complained"))
    await platform.gates.pause(GateRequest(scope="tenant", name="acme", reason="globex complained"))
    seen = (await own.system.audit(AuditRequest())).items
    assert [one.action for one in seen] == ["tenant.pause", "job.cancel", "job.enqueue"]
    told = msgspec.json.encode(seen).decode()
    assert not [word for word in ("ops#77", "10.9.8.7", "r-9", "globex") if word in told], told
    assert [one.actor for one in seen] == [*["an operator for all tenants"] * 2, "operator-acme"]
    assert not (await own.system.audit(AuditRequest(actor="token:ops#77"))).items
    assert len((await operations.system.audit(AuditRequest(actor="token:ops#77"))).items) == 2


async def test_a_tenant_does_not_learn_who_made_its_tokens(app: Rota, operations: Operations) -> None:
    own = operations_of(app, "admin", "acme", payloads=True)
    top = await operations.access.create_token(CreateTokenRequest(role="admin", name="ops"))
    found = await by_token(await app.stores.get(), app.clock, top.token)
    assert found is not None
    platform = app.operations(actor_of(found))
    made = await platform.access.create_token(CreateTokenRequest(role="viewer", tenant="acme"))
    assert made.created_by == f"token:ops#{top.id}" and made.ends_with == top.id
    mine = await own.access.create_token(CreateTokenRequest(role="viewer"))
    listed = {one.id: one.created_by for one in (await own.access.tokens()).items}
    assert listed == {made.id: "an operator for all tenants", mine.id: "admin-acme"}
    rotated = await own.access.rotate_token(made.id, RotateTokenRequest())
    await own.access.revoke_token(made.id)
    seen = [rotated, *(await own.access.tokens()).items, *(await own.system.audit(AuditRequest())).items]
    assert top.id not in msgspec.json.encode(seen).decode()
