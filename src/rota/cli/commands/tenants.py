"""``rota tenants``: jobs, schedules, cost and pauses of each tenant."""

from __future__ import annotations

import click

from ...model import Page
from ...operate import Operations
from ...operate.views import TenantView
from ...terminal.text import safe, short_duration
from ..parts.lists import Columns, ListColumn, listing
from ..parts.pause_options import add_pause_commands, paused_column


def _count(tenant: TenantView, count: int) -> str:
    return f"{'≈' if tenant.estimated else ''}{count}"


COLUMNS: Columns[TenantView] = (
    ListColumn("TENANT", lambda tenant, now: safe(tenant.name), yields=2),
    ListColumn("DUE", lambda tenant, now: _count(tenant, tenant.due), right=True),
    ListColumn("LATER", lambda tenant, now: _count(tenant, tenant.due_later), right=True),
    ListColumn("RUNNING", lambda tenant, now: _count(tenant, tenant.running), right=True),
    ListColumn("OLDEST DUE", lambda tenant, now: short_duration(tenant.oldest_due_s), right=True),
    ListColumn("SCHEDULES", lambda tenant, now: str(tenant.schedules), right=True),
    ListColumn("COST", lambda tenant, now: f"{tenant.cost_cents:,.2f}", right=True),
    paused_column(),
)


@click.group()
def tenants() -> None:
    """List, pause and resume tenants."""


@listing(tenants, COLUMNS, empty="No tenant has jobs, schedules or a pause.")
async def list_tenants(operations: Operations) -> Page[TenantView]:
    """List tenants with jobs, schedules or a pause, by name.

    COST is the cost of the newest jobs, in cents.
    """
    return await operations.system.tenants()


add_pause_commands(tenants, "tenant")
