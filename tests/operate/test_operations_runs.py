"""Runs of schedules: the newest run of each schedule in one store call, and only if requested."""

from __future__ import annotations

import msgspec
from actors import operations_of
from call_counter import counted_calls

from rota import Rota
from rota.model import State
from rota.operate import Operations
from rota.operate.requests import CreateScheduleRequest, RunsRequest, SchedulesRequest, TenantRequest
from rota.schedules.runs import ScheduleRun
from rota.testing import drain


async def create(operations: Operations, name: str, tenant: str = "default") -> None:
    await operations.schedules.create(
        CreateScheduleRequest(name=name, tenant=tenant, task="send", every=3600.0, payload={"to": "x"})
    )


async def last_runs(operations: Operations) -> dict[tuple[str, str], ScheduleRun | None]:
    page = await operations.schedules.list(SchedulesRequest(last_run=True))
    return {(view.tenant, view.name): view.last_run or None for view in page.items}


async def test_list_shows_the_newest_run_of_each_schedule(operations: Operations, app: Rota) -> None:
    for tenant, name in (("acme", "a"), ("default", "a"), ("default", "b"), ("default", "never")):
        await create(operations, name, tenant)
    first = await operations.schedules.trigger("a", TenantRequest(tenant="default"))
    await drain(app)
    live = await operations.schedules.trigger("a", TenantRequest(tenant="acme"))
    await operations.schedules.trigger("b", TenantRequest())
    newest = await operations.schedules.trigger("b", TenantRequest())
    found = await last_runs(operations)
    jobs = {key: None if run is None else (run.job, run.state) for key, run in found.items()}
    assert jobs == {
        ("acme", "a"): (live.id, State.QUEUED),
        ("default", "a"): (first.id, State.SUCCEEDED),
        ("default", "b"): (newest.id, State.QUEUED),
        ("default", "never"): None,
    }
    for (tenant, name), run in found.items():
        page = await operations.schedules.runs(RunsRequest(schedule=name, tenant=tenant, limit=1))
        assert [run] == (list(page.items) or [None])


async def test_list_reads_all_last_runs_in_one_call_and_none_unless_requested(
    operations: Operations, app: Rota
) -> None:
    for number in range(5):
        await create(operations, f"s{number}")
    with counted_calls(app, await app.stores.get()) as calls:
        plain = await operations.schedules.list(SchedulesRequest())
        assert calls["survey"] == calls["jobs"] == 0
        await operations.schedules.list(SchedulesRequest(last_run=True))
        assert (calls["survey"], calls["jobs"]) == (1, 0)
    assert all("last_run" not in msgspec.to_builtins(view) for view in plain.items)


async def test_last_run_hides_details_without_payload_permission(operations: Operations, app: Rota) -> None:
    @app.task
    async def report() -> dict[str, object]:
        return {"success": True, "message": "m", "details": {"password": "geheim", "n": 1}}

    await operations.schedules.create(CreateScheduleRequest(name="r", task="report", every=60.0))
    await operations.schedules.trigger("r", TenantRequest())
    await drain(app)
    (run,) = (await last_runs(operations)).values()
    assert run is not None and run.details == {"password": "•••", "n": 1}
    (hidden,) = (await last_runs(operations_of(app, "viewer"))).values()
    assert hidden is not None and (hidden.details, hidden.message) == (None, None)
