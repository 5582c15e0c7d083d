"""Runs of schedules: the newest run of each schedule in one store call, and only if requested."""

from __future__ import annotations

import msgspec
from actors import operations_of
from call_counter import counted_calls

from rota import Rota
from rota.core.payload.masking import HIDDEN
from rota.model import State
from rota.operate import Operations
from rota.operate.requests import (
    CreateScheduleRequest,
    RunsRequest,
    SchedulesRequest,
    SummaryRequest,
    TenantRequest,
)
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
    assert hidden is not None and (hidden.details, hidden.message) == (HIDDEN, HIDDEN)


async def test_a_run_that_reports_failure_has_failed_everywhere(operations: Operations, app: Rota) -> None:
    heard = []
    app.on("job.failed")(lambda event: heard.append((event.job.id, event.error["message"])))

    @app.task(max_attempts=5)
    async def report(success: bool) -> dict[str, object]:
        return {"success": success, "message": "3 of 5 rows", "details": {"rows": 3}}

    for name, success in (("good", True), ("bad", False)):
        await operations.schedules.create(
            CreateScheduleRequest(name=name, task="report", every=3600.0, payload={"success": success})
        )
    job = await operations.schedules.trigger("bad", TenantRequest())
    await operations.schedules.trigger("good", TenantRequest())
    by_hand = await app.enqueue("report", {"success": False})
    await drain(app)
    (run,) = (await operations.schedules.runs(RunsRequest(failed=True))).items
    assert (run.job, run.state, run.success, run.message) == (job.id, State.FAILED, False, "3 of 5 rows")
    assert run.details == {"rows": 3}
    failed = await operations.jobs.show(job.id)
    assert (failed.error["type"], failed.attempt) == ("ReportedFailure", 1)
    assert heard == [(job.id, "3 of 5 rows")]
    summary = await operations.schedules.summary("bad", SummaryRequest())
    assert (summary.failed, summary.success_rate_percent) == (1, 0.0)
    assert (await app.stats())["failed"] == 1
    assert await by_hand.result(timeout=10) == {
        "success": False, "message": "3 of 5 rows", "details": {"rows": 3},
    }  # fmt: skip


async def test_a_cancelled_run_is_neither_a_success_nor_a_failure(operations: Operations, app: Rota) -> None:
    await create(operations, "s")
    job = await operations.schedules.trigger("s", TenantRequest())
    await (await app.job(job.id)).cancel()
    await operations.schedules.trigger("s", TenantRequest())
    await drain(app)
    summary = await operations.schedules.summary("s", SummaryRequest())
    assert (summary.runs, summary.succeeded, summary.failed, summary.success_rate_percent) == (2, 1, 0, 100.0)
    assert summary.cancelled == 1
    (view,) = (await operations.schedules.list(SchedulesRequest(summary=True))).items
    assert view.summary == summary
