"""``rota tenants``: jobs, shares, quotas and budgets of each tenant, and changing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ...core.tenants import money
from ...model import Page
from ...operate import Operations
from ...operate.requests import PutLimitRequest, PutTenantRequest, TenantsRequest
from ...operate.views import TenantView
from ...terminal.text import json_text, safe, short_duration
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import json_option
from ..parts.pause_options import add_pause_commands, paused_column
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.tenant_detail import budget_text, tenant_text

Parse = Callable[[str], Any]
tenant_json_option = json_option(what="the tenant")


def _count(tenant: TenantView, count: int) -> str:
    return f"{'≈' if tenant.estimated else ''}{count}"


COLUMNS: Columns[TenantView] = (
    ListColumn("TENANT", lambda tenant, now: safe(tenant.name), yields=2),
    ListColumn("DUE", lambda tenant, now: _count(tenant, tenant.due), right=True),
    ListColumn("LATER", lambda tenant, now: _count(tenant, tenant.due_later), right=True),
    ListColumn("RUNNING", lambda tenant, now: _count(tenant, tenant.running), right=True),
    ListColumn("OLDEST DUE", lambda tenant, now: short_duration(tenant.oldest_due_s), right=True),
    ListColumn(
        "SHARE", lambda tenant, now: "–" if tenant.share is None else f"{tenant.share:.0%}", right=True
    ),
    ListColumn("SCHEDULES", lambda tenant, now: str(tenant.schedules), right=True),
    ListColumn("COST", lambda tenant, now: money(tenant.cost_cents), right=True),
    ListColumn("SPENT", lambda tenant, now: budget_text(tenant.budget), right=True),
    paused_column(),
)


class Clearable(click.ParamType[Any]):
    """A value of another kind, or ``none``, which clears it."""

    def __init__(self, name: str, parse: Parse) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value is ...:  # not given
            return value
        if str(value).lower() == "none":
            return None
        try:
            return self._parse(value)
        except ValueError:
            self.fail(f"{value!r} is neither a {self.name.lower()} nor none", param, ctx)


NUMBER = Clearable("NUMBER", float)
WHOLE = Clearable("NUMBER", int)
BUDGET = Clearable("AMOUNT/PERIOD", str)


@click.group()
def tenants() -> None:
    """List tenants, pause them, and set what they may: weight, quotas, budget.

    Where a value is set, none clears it.
    """


@listing(tenants, COLUMNS, empty="No tenant has jobs, schedules, a rule or a pause.")
async def list_tenants(operations: Operations) -> Page[TenantView]:
    """List tenants with jobs, schedules, a rule or a pause, by name.

    SHARE is their part of the work now, among those with due jobs. COST is the cost of the newest jobs; SPENT
    what they have spent of their budget.
    """
    return await operations.tenants.list(TenantsRequest())


@tenants.command()
@click.argument("name")
@tenant_json_option
@target_options
@pass_target
def show(target: Target, name: str, as_json: bool) -> None:
    """Show one tenant: jobs, share, limit, quotas and budget."""

    async def ask(operations: Operations) -> Any:
        return await operations.tenants.show(name), await store_time(operations)

    tenant, now = target.operations(ask)
    click.echo(json_text(tenant) if as_json else tenant_text(tenant, now))


def _option(flag: str, kind: Clearable, help: str, field: str | None = None) -> Any:
    names = (flag,) if field is None else (flag, field)
    return click.option(*names, type=kind, metavar=kind.name, default=..., help=help)


WEIGHT = _option("--weight", NUMBER, "Share of a queue beside that of others.  [default: 1]")
PRIORITY = _option("--max-priority", WHOLE, "Store jobs with a higher priority with this one.")
WAITING = _option("--waiting", WHOLE, "Jobs that may wait.")
SCHEDULES = _option("--schedules", WHOLE, "Schedules that it may have.")
BYTES = _option("--bytes-per-day", WHOLE, "Bytes of payloads that it may enqueue in a UTC day.")
SPENDING = _option("--budget", BUDGET, "What it may spend per hour, day, week or month: 50.00/day.")
ALERT = _option("--budget-alert", NUMBER, "Raise an alert at this part of the budget: 0.8.")
RETENTION = _option("--retention-days", NUMBER, "Keep its finished jobs for this many days.")


def _command(name: str, help: str, *options: Any) -> None:
    """A command that changes the fields that its options give."""

    def run(target: Target, name: str, as_json: bool, **given: Any) -> None:
        _put(target, name, as_json, given)

    command: Any = pass_target(run)
    for option in reversed((click.argument("name"), *options, tenant_json_option, target_options)):
        command = option(command)
    tenants.command(name, help=help)(command)


def _put(target: Target, name: str, as_json: bool, given: dict[str, Any]) -> None:
    fields = {field: value for field, value in given.items() if value is not ...}
    if not fields:
        raise click.UsageError("nothing to change: give at least one option.")
    request = PutTenantRequest(**fields)

    async def put(operations: Operations) -> Any:
        return await operations.tenants.put(name, request), await store_time(operations)

    tenant, now = target.operations(put)
    click.echo(json_text(tenant) if as_json else tenant_text(tenant, now))


_command(
    "set", "Change what a tenant may: what is not given stays, none clears it.",
    WEIGHT, PRIORITY, WAITING, SCHEDULES, BYTES, SPENDING, ALERT, RETENTION,
)  # fmt: skip
_command("quota", "Change how much a tenant may enqueue; none removes a quota.", WAITING, SCHEDULES, BYTES)


@tenants.command()
@click.argument("name")
@click.argument("weight", type=NUMBER)
@tenant_json_option
@target_options
@pass_target
def weight(target: Target, name: str, weight: float | None, as_json: bool) -> None:
    """Change a tenant's share of queues: one with WEIGHT 3 gets three times the work of one with 1."""
    _put(target, name, as_json, {"weight": weight})


@tenants.command()
@click.argument("name")
@click.argument("budget", type=BUDGET)
@click.option(
    "--alert", type=NUMBER, metavar=NUMBER.name, default=..., help="Raise an alert at this part: 0.8."
)
@tenant_json_option
@target_options
@pass_target
def budget(target: Target, name: str, budget: str | None, alert: Any, as_json: bool) -> None:
    """Change what a tenant may spend: 50.00/day, or none. Periods are hour, day, week and month, in UTC."""
    _put(target, name, as_json, {"budget": budget, "budget_alert": alert})


@tenants.command()
@click.argument("name")
@click.option("--running", type=int, metavar="NUMBER", help="Jobs that may run at once.")
@click.option("--rate", metavar="UNITS/TIME", help="Units that may begin per time: 10/s, 100/m, 1/10s.")
@click.option("--burst", type=int, metavar="UNITS", help="Units that may begin at once.")
@tenant_json_option
@target_options
@pass_target
def limit(
    target: Target, name: str, running: int | None, rate: str | None, burst: int | None, as_json: bool
) -> None:
    """Replace a tenant's limit: how many of its jobs run at once, and how fast they begin.

    The same as rota limits set tenant:NAME; rota limits drop tenant:NAME removes it.
    """
    request = parse_request(PutLimitRequest, running=running, rate=rate, burst=burst)

    async def put(operations: Operations) -> Any:
        await operations.limits.set(f"tenant:{name}", request)
        return await operations.tenants.show(name), await store_time(operations)

    tenant, now = target.operations(put)
    click.echo(json_text(tenant) if as_json else tenant_text(tenant, now))


@tenants.command()
@click.argument("name")
@target_options
@pass_target
def drop(target: Target, name: str) -> None:
    """Delete a tenant's rule: weight 1, no quotas, no budget. Its jobs stay."""
    target.operations(lambda operations: operations.tenants.drop(name))
    click.echo(f"Tenant {safe(name)} has no rule now.")


add_pause_commands(tenants, "tenant")
