"""``rota runs``: what schedules have run, and how it went."""

from __future__ import annotations

import shlex
from datetime import datetime
from typing import Any

import click
import msgspec

from ..app import Rota
from ..model import Page
from ..runs import Run, Summary
from . import table
from .paging import say_more
from .schedule_page import outcome, summed_up
from .target import Target, pass_target, target_options
from .text import exact, json_text, safe, span, when

MOST = 1000
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
@click.option("--schedule", metavar="NAME", help="Only those of this schedule.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--failed", is_flag=True, help="Only those that failed.")
@click.option("--days", type=click.FloatRange(0, min_open=True), default=7.0, show_default=True,
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

    async def ask(app: Rota) -> tuple[Page[Run], Summary | None, datetime]:
        told = None
        if schedule is not None:
            await app.schedules.get(schedule, tenant=tenant or "default")
            told = await app.schedules.summary(schedule, tenant=tenant or "default", days=days)
        page = await app.schedules.runs(schedule, tenant=tenant, failed=failed, limit=limit, cursor=cursor)
        return page, told, app.clock.now()

    page, summary, now = target.ask(ask)
    if as_json:
        click.echo(json_text(_plain(page, summary)))
        return
    if page.items:
        table.show(COLUMNS, [_row(run, now) for run in page.items])
    else:
        click.echo(_nothing(schedule, failed))
    if summary is not None:
        click.echo(f"\n{summed_up(summary, days)}")
    say_more(ctx, target, page.next)


def _plain(page: Page[Run], summary: Summary | None) -> dict[str, Any]:
    told = {"items": msgspec.to_builtins(page.items), "next": page.next}
    return told if summary is None else {**told, "summary": msgspec.to_builtins(summary)}


def _row(run: Run, now: datetime) -> tuple[str, ...]:
    name = run.schedule if run.tenant == "default" else f"{run.tenant}/{run.schedule}"
    due = f"{exact(run.scheduled_for)}, {when(run.scheduled_for, now)}" if run.scheduled_for else "–"
    took = span(run.duration_ms / 1000) if run.duration_ms is not None else "–"
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
