"""``rota runs``: what schedules have run, and how it went."""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from ...model import Page
from ...operate import Operations
from ...operate.requests import MOST, RunsRequest
from ...schedules.runs import RunSummary, ScheduleRun, summary_of
from ...terminal import table
from ...terminal.text import json_text, relative_time, safe, short_duration, utc_time
from ..parts.paging import echo_next_page
from ..parts.request_parsing import parse_request
from ..parts.schedule_detail import outcome, summed_up
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

SUMMARISED = 1000
COLUMNS = (
    table.Column("SCHEDULE", yields=6),
    table.Column("SCHEDULED FOR", yields=4),
    table.Column("STATE"),
    table.Column("BY", yields=2),
    table.Column("TOOK", yields=3, right=True),
    table.Column("JOB", yields=5),
    table.Column("MESSAGE", yields=1),
)


@click.group()
def runs() -> None:
    """What schedules have run, and how it went."""


@runs.command("list")
@watchable
@click.option("--schedule", metavar="NAME", help="Only those of this schedule.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--failed", is_flag=True, help="Only those that failed.")
@click.option("--days", type=click.FloatRange(0, 36_500, min_open=True), default=7.0, show_default=True,
              help="With --schedule: sum up so many days.")  # fmt: skip
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", help="Go on where a page ended.")
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": cursor or null}.')
@target_options
@pass_target
@click.pass_context
def list_(
    ctx: click.Context,
    target: Target,
    schedule: str | None,
    tenant: str | None,
    failed: bool,
    days: float,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Runs of schedules, newest first."""
    ask = parse_request(
        RunsRequest, schedule=schedule, tenant=tenant, failed=failed, limit=limit, cursor=cursor
    )

    async def look(operations: Operations) -> tuple[Page[ScheduleRun], RunSummary | None, datetime]:
        told = None if schedule is None else await _summed(operations, schedule, tenant or "default", days)
        return await operations.schedules.runs(ask), told, await store_time(operations)

    page, summary, now = target.operations(look)
    if as_json:
        click.echo(json_text(_plain(page, summary)))
        return
    if page.items:
        table.print_table(COLUMNS, [_row(run, now) for run in page.items])
    else:
        click.echo(_nothing(schedule, failed))
    if summary is not None:
        click.echo(f"\n{summed_up(summary, days)}")
    echo_next_page(ctx, target, page.next)


async def _summed(operations: Operations, name: str, tenant: str, days: float) -> RunSummary:
    """The runs of the last days, at most the newest thousand."""
    found: list[ScheduleRun] = []
    ask = RunsRequest(tenant=tenant, limit=MOST)
    while len(found) < SUMMARISED:
        page = await operations.schedules.runs_of(name, ask)
        found += page.items
        if page.next is None:
            break
        ask = msgspec.structs.replace(ask, cursor=page.next)
    since = await store_time(operations) - timedelta(days=days)
    return summary_of([run for run in found if (run.finished_at or run.created_at) >= since])


def _plain(page: Page[ScheduleRun], summary: RunSummary | None) -> dict[str, Any]:
    told = {"items": msgspec.to_builtins(page.items), "next": page.next}
    return told if summary is None else {**told, "summary": msgspec.to_builtins(summary)}


def _row(run: ScheduleRun, now: datetime) -> tuple[str, ...]:
    name = run.schedule if run.tenant == "default" else f"{run.tenant}/{run.schedule}"
    due = (
        f"{utc_time(run.scheduled_for)}, {relative_time(run.scheduled_for, now)}"
        if run.scheduled_for
        else "–"
    )
    took = short_duration(run.duration_ms / 1000) if run.duration_ms is not None else "–"
    return (
        safe(name), due, outcome(run), safe(run.triggered_by), took, run.job, safe(run.message or "")[:200],
    )  # fmt: skip


def _nothing(schedule: str | None, failed: bool) -> str:
    if failed:
        return "No run has failed."
    if schedule is not None:
        name = safe(schedule)
        return f"{name} has not run yet. Run it now: rota schedules trigger {shlex.quote(name)}"
    return "No schedule has run yet. What there is: rota schedules list"
