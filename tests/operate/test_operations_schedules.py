"""Which schedule is meant: by id, by name, by the full name that lists print."""

from __future__ import annotations

import pytest
from actors import operations_of

from rota import Rota
from rota.errors import InvalidSchedule, NotFound
from rota.model import AuditFilter, PageRequest
from rota.operate import Operations
from rota.operate.requests import GateRequest, RunsRequest, TenantRequest

ANY = TenantRequest()
EXACT = {("acme", "eu/nightly"), ("acme/eu", "nightly"), ("default", "acme/eu"), ("globex", "eu")}


@pytest.fixture
async def four(app: Rota) -> Rota:
    for tenant, name in EXACT:
        await app.schedules.create(name=name, tenant=tenant, task="other", every="1h")
    return app


async def test_a_full_name_finds_the_schedule_that_it_was_printed_for(
    four: Rota, operations: Operations
) -> None:
    names = {
        "acme/eu/nightly": ("acme", "eu/nightly"),
        "acme%2Feu/nightly": ("acme/eu", "nightly"),
        "default/acme/eu": ("default", "acme/eu"),
        "acme/eu": ("default", "acme/eu"),  # tenant acme has none named eu
        "nightly": ("acme/eu", "nightly"),
    }
    for text, expected in names.items():
        found = await operations.schedules.show(text, ANY)
        assert (found.tenant, found.name) == expected
        assert (await operations.schedules.show(found.id, ANY)).id == found.id


async def test_a_full_name_is_no_way_into_another_tenant(four: Rota) -> None:
    globex = operations_of(four, "viewer", "globex")
    assert (await globex.schedules.show("globex/eu", ANY)).name == "eu"
    for text in ("acme/eu/nightly", "acme%2Feu/nightly", "nightly"):
        with pytest.raises(NotFound, match="tenant 'globex' has no schedule") as caught:
            await globex.schedules.show(text, ANY)
        assert "did you mean" not in str(caught.value)


async def test_a_name_that_only_another_tenant_has_is_pointed_out_to_those_who_see_it(
    four: Rota, operations: Operations
) -> None:
    with pytest.raises(NotFound, match=r"'acme' has no schedule 'nightly'; did you mean acme%2Feu/nightly\?"):
        await operations.schedules.show("nightly", TenantRequest(tenant="acme"))
    await four.schedules.create(name="nightly", tenant="globex", task="other", every="1h")
    with pytest.raises(InvalidSchedule, match=r"give the tenant \(acme%2Feu/nightly, globex/nightly\)"):
        await operations.schedules.show("nightly", ANY)


async def test_runs_and_pauses_take_a_full_name(four: Rota, operations: Operations) -> None:
    for tenant, name in EXACT:
        await four.schedules.trigger(name, tenant=tenant)
    runs = (await operations.schedules.runs(RunsRequest(schedule="acme%2Feu/nightly"))).items
    assert [(run.tenant, run.schedule) for run in runs] == [("acme/eu", "nightly")]
    gate = await operations.gates.pause(GateRequest(scope="schedule", name="acme/eu/nightly"))
    assert (gate.tenant, gate.name) == ("acme", "eu/nightly")


async def test_the_audit_log_keeps_schedules_apart(four: Rota) -> None:
    store = await four.stores.get()
    for tenant, name in EXACT:
        await four.schedules.disable(name, tenant=tenant)
    page = await store.audit(AuditFilter(object="schedule:acme%2Feu/nightly"), PageRequest(limit=10))
    assert {entry.tenant for entry in page.items} == {"acme/eu"}
    assert len(page.items) == 2
