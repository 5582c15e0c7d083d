"""``rota tenants``: whose jobs wait and run."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ...model import Page
from ...operate.views import TenantView
from ...terminal import table
from ...terminal.text import json_text, safe, short_duration
from ..parts.pause_options import add_pausing, paused_cell
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

if TYPE_CHECKING:
    from ...operate import Operations

COLUMNS = (
    table.Column("TENANT", yields=2),
    table.Column("DUE", right=True),
    table.Column("LATER", right=True),
    table.Column("RUNNING", right=True),
    table.Column("OLDEST DUE", right=True),
    table.Column("SCHEDULES", right=True),
    table.Column("COST", right=True),
    table.Column("PAUSED", yields=1),
)


@click.group()
def tenants() -> None:
    """Whose jobs wait and run, and what is paused."""


@tenants.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """Each tenant with jobs, schedules or a pause, by name; the cost is that of the newest jobs, in cents."""

    async def ask(operations: Operations) -> tuple[Page[TenantView], datetime]:
        return await operations.system.tenants(), await store_time(operations)

    page, now = target.operations(ask)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(tenant, now) for tenant in page.items])
    else:
        click.echo("No tenant has jobs, schedules or a pause.")


def _row(tenant: TenantView, now: datetime) -> tuple[str, ...]:
    about = "≈" if tenant.estimated else ""
    return (
        safe(tenant.name),
        *(f"{about}{count}" for count in (tenant.queued, tenant.scheduled, tenant.running)),
        "–" if tenant.oldest_due_s is None else short_duration(tenant.oldest_due_s),
        str(tenant.schedules),
        f"{tenant.cost_cents:,.2f}",
        paused_cell(tenant.gate, now),
    )


add_pausing(tenants, "tenant")
