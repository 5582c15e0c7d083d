"""Actions on limits: who may see and change them, what they answer, and what the audit log keeps."""

from __future__ import annotations

import pytest
from actors import operations_of

from rota import Forbidden, Held, Limit, NotFound, OptionError, Rota
from rota.model import AuditFilter, ClaimRequest, LimitRule, PageRequest
from rota.operate import Operations
from rota.operate.requests import PutLimitRequest

BAD = [
    ("queue:mail", {"rate": "fast"}, "rate='fast': is not a rate; write units per time, such as '10/s'"),
    ("queue:mail", {"rate": "0/s"}, "rate='0/s': would let nothing begin; pause it instead"),
    ("queue:mail", {"rate": "5/99d"}, "rate='5/99d': is out of range"),
    ("queue:mail", {"rate": 5}, "rate=5: is not a rate"),
    ("queue:mail", {"running": 0}, "running=0: would let nothing run; pause it instead"),
    ("queue:mail", {"running": -1}, "running=-1: must be a whole number from 1"),
    ("queue:mail", {"running": True}, "running=True: must be a whole number"),
    ("queue:mail", {"burst": 5}, "burst=5: belongs to a rate; give rate="),
    ("queue:mail", {"rate": "5/s", "burst": 0}, "burst=0: must be a whole number from 1"),
    ("queue:mail", {}, "limit: give running=…, rate=…, or both"),
    ("queue:mail", {"running": 1, "strict": True}, "strict=True: holds up the other jobs of a key"),
    ("mail", {"running": 1}, "name='mail': is not the name of a limit; write queue:NAME"),
    ("worker:w1", {"running": 1}, "name='worker:w1': is not the name of a limit"),
    ("queue:", {"running": 1}, "name='queue:': names no queue; write queue:NAME"),
    ("queue:ma*", {"running": 1}, "only a key may end with *"),
    ("key:a*b*", {"running": 1}, "only a key may end with *"),
    ("key:" + "x" * 201, {"running": 1}, "must have 1 to 200 printable characters"),
    ("key:a\nb", {"running": 1}, "must have 1 to 200 printable characters"),
]


async def test_what_makes_no_sense_is_refused_before_anything_is_written(app: Rota) -> None:
    for name, given, said in BAD:
        with pytest.raises(OptionError) as caught:
            await app.limits.set(name, **given)
        assert said in str(caught.value)
    assert await app.limits.list() == []


async def test_a_limit_is_set_replaced_and_dropped_and_each_is_audited(app: Rota) -> None:
    held = await app.limits.set("queue:mail", running=40, rate="10/s")
    assert held == Held(
        name="queue:mail", running=0, most=40, rate="10/s", burst=10, tokens=10.0, rule="queue:mail"
    )
    assert (await app.limits.set("queue:mail", running=2)).rate is None
    assert await app.limits.get("queue:mail") == (await app.limits.list())[0]
    assert await app.limits.drop("queue:mail") is None
    for call in (app.limits.drop, app.limits.get):
        with pytest.raises(NotFound, match="there is no limit 'queue:mail'"):
            await call("queue:mail")
    store = await app.stores.get()
    entries = (await store.audit(AuditFilter(), PageRequest(newest_first=False))).items
    assert [(one.action, one.object, one.result) for one in entries] == [
        ("limit.set", "limit:queue:mail", "done"),
        ("limit.set", "limit:queue:mail", "done"),
        ("limit.drop", "limit:queue:mail", "done"),
        ("limit.drop", "limit:queue:mail", "denied"),
    ]
    assert '"running":40' in (entries[1].before_json or "") and '"running":2' in (entries[1].after_json or "")


async def test_dropping_returns_to_the_limit_of_the_code_which_cannot_be_dropped(app: Rota) -> None:
    store = await app.stores.get()
    await store.put_rules([LimitRule(name="task:send", declared=Limit(running=3))], app.clock.now())
    assert (await app.limits.set("task:send", running=9)).declared == Limit(running=3)
    held = await app.limits.drop("task:send")
    assert held is not None and (held.most, held.source, held.declared) == (3, "code", None)
    with pytest.raises(NotFound, match="the code declares it, so change it there"):
        await app.limits.drop("task:send")


async def test_one_key_of_a_family_is_shown_by_its_own_name(app: Rota, operations: Operations) -> None:
    await app.limits.set("key:account:*", running=1, strict=True)
    view = await operations.limits.show("key:account:42")
    assert (view.name, view.rule, view.most, view.strict) == ("key:account:42", "key:account:*", 1, True)
    with pytest.raises(NotFound):
        await operations.limits.show("key:other")


async def test_the_jobs_that_hold_a_limit_are_shown_with_it(app: Rota, operations: Operations) -> None:
    await operations.limits.set("queue:mail", PutLimitRequest(running=1))
    job = await app.enqueue("send", {"to": "a"})
    store, request = await app.stores.get(), ClaimRequest(worker="w1", limit=1, lease_s=30)
    assert len((await store.turn((), request, app.clock.now())).jobs) == 1
    view = await operations.limits.show("queue:mail")
    assert (view.running, view.is_full) == (1, True)
    assert [(one.id, one.task, one.worker) for one in view.holders] == [(job.id, "send", "w1")]


async def test_a_name_that_nothing_has_is_warned_about(operations: Operations) -> None:
    view = await operations.limits.set("queue:male", PutLimitRequest(running=1))
    assert view.warning is not None and "'male'" in view.warning
    assert (await operations.limits.set("key:any", PutLimitRequest(running=1))).warning is None


async def test_viewers_read_limits_and_operators_change_them(app: Rota) -> None:
    viewer, operator = operations_of(app, "viewer"), operations_of(app, "operator")
    await operator.limits.set("queue:mail", PutLimitRequest(running=1))
    assert [view.name for view in (await viewer.limits.list()).items] == ["queue:mail"]
    for denied in (
        viewer.limits.set("queue:mail", PutLimitRequest(running=2)),
        viewer.limits.drop("queue:mail"),
    ):
        with pytest.raises(Forbidden):
            await denied


async def test_a_tenant_sees_its_own_limit_only_and_cannot_raise_it(app: Rota) -> None:
    for name in ("queue:mail", "tenant:acme", "tenant:other", "key:*"):
        await app.limits.set(name, running=1)
    acme = operations_of(app, "operator", "acme")
    assert [view.name for view in (await acme.limits.list()).items] == ["tenant:acme"]
    assert (await acme.limits.show("tenant:acme")).most == 1
    for hidden in ("queue:mail", "tenant:other", "key:1"):
        with pytest.raises(NotFound):
            await acme.limits.show(hidden)
    with pytest.raises(Forbidden):
        await acme.limits.set("tenant:acme", PutLimitRequest(running=100))
    with pytest.raises(Forbidden):
        await acme.limits.drop("tenant:acme")
    assert (await operations_of(app, "viewer", "none").limits.list()).items == []


async def test_a_declared_limit_that_no_worker_has_stored_yet_is_named_as_such(app: Rota) -> None:
    @app.task(name="call_crm", limit=Limit(running=5))
    async def call_crm() -> None: ...

    with pytest.raises(NotFound, match="no limit 'task:call_crm' in the store yet: the code declares it"):
        await app.limits.get("task:call_crm")
