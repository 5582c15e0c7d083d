"""``rota runs``: the runs of schedules and their outcomes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from ...model import Value
from ...operate import Operations
from ...operate.requests import RunsRequest, SummaryRequest
from ...schedules.runs import MOST_DAYS, WINDOW_DAYS, RunSummary, ScheduleRun
from ...terminal.text import qualified_name, relative_time, safe, state, utc_time
from ..parts.lists import Columns, Filters, ListColumn, listing
from ..parts.request_parsing import parse_request
from ..parts.schedule_detail import run_duration, summary_line


class RunsPage(Value, frozen=True, kw_only=True):
    """A page of runs; of one schedule, with a summary."""

    items: Sequence[ScheduleRun]
    next: str | None
    summary: RunSummary | msgspec.UnsetType = msgspec.UNSET


def _due(run: ScheduleRun, now: datetime) -> str:
    if run.scheduled_for is None:
        return "–"
    return f"{utc_time(run.scheduled_for)}, {relative_time(run.scheduled_for, now)}"


COLUMNS: Columns[ScheduleRun] = (
    ListColumn("SCHEDULE", lambda run, now: qualified_name(run.tenant, run.schedule), yields=6),
    ListColumn("SCHEDULED FOR", _due, yields=4),
    ListColumn("STATE", lambda run, now: state(run.state)),
    ListColumn("BY", lambda run, now: safe(run.triggered_by), yields=2),
    ListColumn("TOOK", lambda run, now: run_duration(run) or "–", yields=3, right=True),
    ListColumn("JOB", lambda run, now: run.job, yields=5),
    ListColumn("MESSAGE", lambda run, now: safe(run.message or "")[:200], yields=1),
)


@click.group()
def runs() -> None:
    """List the runs of schedules."""


def _no_match(filters: Filters) -> str:
    if filters.get("failed"):
        return "No run has failed."
    if "schedule" in filters:
        name = safe(filters["schedule"])
        return f"{name} has not run yet. Run it now: rota schedules trigger {shlex.quote(name)}"
    return "No run matches."


def _footer(page: RunsPage, given: Mapping[str, Any]) -> str:
    return "" if page.summary is msgspec.UNSET else summary_line(page.summary)


@listing(
    runs,
    COLUMNS,
    paged=True,
    empty="No schedule has run yet. List schedules: rota schedules list",
    no_match=_no_match,
    footer=_footer,
)
@click.option("--schedule", metavar="NAME", help="Only this schedule, with a summary.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--failed", is_flag=True, help="Only failed runs.")
@click.option("--days", type=click.IntRange(1, MOST_DAYS), default=WINDOW_DAYS, show_default=True,
              help="Days in the summary of --schedule.")  # fmt: skip
async def list_runs(
    operations: Operations,
    schedule: str | None,
    tenant: str | None,
    failed: bool,
    days: int,
    limit: int,
    cursor: str | None,
) -> RunsPage:
    """List runs of schedules, newest first."""
    request = parse_request(
        RunsRequest, schedule=schedule, tenant=tenant, failed=failed, limit=limit, cursor=cursor
    )
    page = await operations.schedules.runs(request)
    if schedule is None:
        return RunsPage(items=page.items, next=page.next)
    summary = await operations.schedules.summary(schedule, SummaryRequest(tenant=tenant, days=days))
    return RunsPage(items=page.items, next=page.next, summary=summary)
