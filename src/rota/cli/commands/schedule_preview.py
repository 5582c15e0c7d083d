"""Next runs: ``rota schedules preview`` of a stored schedule, ``validate`` of a rule not stored yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from ...core.schedules.describe import FirePreview
from ...errors import InvalidSchedule
from ...operate import Operations
from ...operate.requests import PreviewRequest, TenantRequest
from ...operate.views import FireView, Preview, ScheduleView
from ...terminal import table
from ...terminal.schedules import local_time
from ...terminal.text import json_text, relative_time, safe
from ..parts.exit_codes import USAGE
from ..parts.options import json_option
from ..parts.schedule_options import by_flag, column_of, given_fields, one_rule, rule_options, tenant_option
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

MOST = 1000
COLUMNS = (
    table.Column("", right=True),
    table.Column("LOCAL TIME"),
    table.Column("UTC", yields=2),
    table.Column("DUE", yields=3),
    table.Column("NOTE", yields=1),
)


def show_fires(fires: Sequence[FirePreview | FireView], timezone: str, now: datetime) -> None:
    rows = [
        (
            str(number),
            local_time(fire.at, timezone),
            local_time(fire.at, "UTC"),
            relative_time(fire.at, now),
            safe(fire.note or ""),
        )
        for number, fire in enumerate(fires, 1)
    ]
    if rows:
        table.print_table(COLUMNS, rows)
    else:
        click.echo("No more runs.")


@click.command()
@watchable
@click.argument("name")
@click.option(
    "-n", "count", type=click.IntRange(1, MOST), default=10, show_default=True, help="Number of runs."
)
@tenant_option
@json_option("items", "next")
@target_options
@pass_target
def preview(target: Target, name: str, count: int, tenant: str | None, as_json: bool) -> None:
    """Show the next runs of a schedule, with notes on clock changes."""

    async def fetch(operations: Operations) -> tuple[ScheduleView, Preview, datetime]:
        schedule = await operations.schedules.show(name, TenantRequest(tenant=tenant))
        found = await operations.schedules.preview(name, PreviewRequest(tenant=tenant, n=count))
        return schedule, found, await store_time(operations)

    schedule, found, now = target.operations(fetch)
    if as_json:
        click.echo(json_text({"items": found.fires, "next": None}))
        return
    click.echo(f"{safe(found.rule_summary)}{'' if schedule.enabled else ' (disabled: it creates no jobs)'}")
    show_fires(found.fires, schedule.timezone, now)


@click.command()
@rule_options
@click.option(
    "-n", "count", type=click.IntRange(0, MOST), default=5, show_default=True, help="Number of runs."
)
@json_option("valid", "rule_summary", "fires")
@target_options
@pass_target
def validate(target: Target, /, count: int, as_json: bool, **given: Any) -> None:
    """Check a rule: describe it and show its next runs, or show the error. Stores nothing."""
    one_rule(given, needed=True)
    app = target.offline()
    now = app.clock.now()
    anchored = {**given, "anchor_at": now} if given["every"] is not None else given
    try:
        summary, fires = app.schedules.validate(count, **given_fields(anchored))
    except InvalidSchedule as error:
        if not as_json:
            raise by_flag(error) from error
        click.echo(json_text({"valid": False, "error": str(error), "column": column_of(error)}))
        raise SystemExit(USAGE) from error
    if as_json:
        click.echo(json_text({"valid": True, "rule_summary": summary, "fires": fires}))
    else:
        click.echo(safe(summary))
        show_fires(fires, given["timezone"] or "UTC", now)
