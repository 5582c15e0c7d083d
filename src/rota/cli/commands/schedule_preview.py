"""Coming fires: ``rota schedules preview`` of a stored schedule, ``validate`` of a rule not stored yet."""

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
from ...terminal.text import json_text, relative_time, safe
from ..parts.exit_codes import USAGE
from ..parts.schedule_detail import local
from ..parts.schedule_options import by_flag, chosen, column_of, one_rule, rule_options, tenant_option
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
            local(fire.at, timezone),
            local(fire.at, "UTC"),
            relative_time(fire.at, now),
            safe(fire.note or ""),
        )
        for number, fire in enumerate(fires, 1)
    ]
    if rows:
        table.print_table(COLUMNS, rows)
    else:
        click.echo("It never fires again.")


@click.command()
@watchable
@click.argument("name")
@click.option("-n", "count", type=click.IntRange(1, MOST), default=10, show_default=True, help="So many.")
@tenant_option
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def preview(target: Target, name: str, count: int, tenant: str, as_json: bool) -> None:
    """The next fires from now, and what a change of the clocks does to them."""

    async def ask(operations: Operations) -> tuple[ScheduleView, Preview, datetime]:
        schedule = await operations.schedules.show(name, TenantRequest(tenant=tenant))
        found = await operations.schedules.preview(name, PreviewRequest(tenant=tenant, n=count))
        return schedule, found, await store_time(operations)

    schedule, found, now = target.operations(ask)
    if as_json:
        click.echo(json_text({"items": found.fires, "next": None}))
        return
    click.echo(f"{safe(found.words)}{'' if schedule.enabled else ' (off: it does not fire now)'}")
    show_fires(found.fires, schedule.timezone, now)


@click.command()
@rule_options
@click.option(
    "-n", "count", type=click.IntRange(0, MOST), default=5, show_default=True, help="So many fires."
)
@click.option("--json", "as_json", is_flag=True, help='One object: {"valid": …, "words": …, "fires": […]}.')
@target_options
@pass_target
def validate(target: Target, /, count: int, as_json: bool, **given: Any) -> None:
    """What a rule means in words, and its next fires; or what is wrong, and where. Stores nothing."""
    one_rule(given, needed=True)
    app = target.offline()
    now = app.clock.now()
    anchored = {**given, "anchor_at": now} if given["every"] is not None else given
    try:
        words, fires = app.schedules.validate(count, **chosen(anchored))
    except InvalidSchedule as error:
        if not as_json:
            raise by_flag(error) from error
        click.echo(json_text({"valid": False, "error": str(error), "column": column_of(error)}))
        raise SystemExit(USAGE) from error
    if as_json:
        click.echo(json_text({"valid": True, "words": words, "fires": fires}))
    else:
        click.echo(safe(words))
        show_fires(fires, given["timezone"] or "UTC", now)
