"""``rota schedules``: list, show, enable, disable, trigger and delete schedules.

Creating, updating, backfilling, previewing and importing have their own modules.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import click
import msgspec

from ...model import Page
from ...operate import Operations
from ...operate.requests import DisableRequest, SchedulesRequest, TenantRequest
from ...operate.views import ScheduleView
from ...schedules.runs import WINDOW_DAYS
from ...terminal.schedules import next_run
from ...terminal.text import json_text, qualified_name, safe, state
from ..parts import schedule_detail
from ..parts.confirm import confirm
from ..parts.each import act_on_each
from ..parts.exit_codes import exit_if_failed
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import json_option, yes_option
from ..parts.request_parsing import parse_request
from ..parts.schedule_detail import last_run, paused_by, success_rate
from ..parts.schedule_options import tenant_option
from ..parts.target import Target, pass_target, store_time, target_options
from .schedule_edit import backfill, create, update
from .schedule_import import import_
from .schedule_preview import preview, validate


@click.group()
def schedules() -> None:
    """List, show, create, change and preview schedules."""


# --- list ----------------------------------------------------------------------------------------


def _switch(schedule: ScheduleView) -> str:
    if schedule.enabled and schedule.gate is not None:
        return state("paused")
    return state("enabled", word="on") if schedule.enabled else state("disabled", word="off")


def _next(schedule: ScheduleView, now: datetime) -> str:
    if not schedule.enabled:
        return safe(f"off: {schedule.reason}" if schedule.reason else "off")[:200]
    return next_run(schedule, now) if schedule.gate is None else safe(paused_by(schedule.gate))[:200]


def _rate(schedule: ScheduleView) -> str:
    return "–" if schedule.summary is msgspec.UNSET else success_rate(schedule.summary)


COLUMNS: Columns[ScheduleView] = (
    ListColumn("NAME", lambda schedule, now: qualified_name(schedule.tenant, schedule.name)),
    ListColumn("STATE", lambda schedule, now: _switch(schedule), yields=3),
    ListColumn("WHEN", lambda schedule, now: safe(schedule.rule_summary), yields=4),
    ListColumn("NEXT", _next, yields=5),
    ListColumn("LAST RUN", lambda schedule, now: last_run(schedule.last_run or None, now), yields=2),
    ListColumn(f"SUCCESS {WINDOW_DAYS}D", lambda schedule, now: _rate(schedule), yields=1, right=True),
    ListColumn("TASK", lambda schedule, now: safe(schedule.task), yields=1),
)


@listing(
    schedules,
    COLUMNS,
    paged=True,
    empty='No schedules yet. Declare one in your program with @app.cron("0 8 * * 1-5") or '
    '@app.every("15m"), or create one from here:\n'
    '  rota schedules create --name nightly --task TASK --cron "0 3 * * *" --timezone Europe/Berlin\n'
    "Or import a crontab: rota schedules import crontab FILE",
    no_match="No schedule matches. Without filters: rota schedules list",
)
@click.option("--tenant", help="Only this tenant.")
@click.option("--task", help="Only schedules of this task.")
@click.option("--enabled/--disabled", default=None, help="Only enabled, or only disabled, schedules.")
async def list_schedules(
    operations: Operations,
    tenant: str | None,
    task: str | None,
    enabled: bool | None,
    limit: int,
    cursor: str | None,
) -> Page[ScheduleView]:
    """List schedules, by tenant and name."""
    request = parse_request(
        SchedulesRequest, tenant=tenant, task=task, enabled=enabled, limit=limit, cursor=cursor,
        last_run=True, summary=True,
    )  # fmt: skip
    return await operations.schedules.list(request)


# --- show ----------------------------------------------------------------------------------------


@schedules.command()
@click.argument("name")
@tenant_option
@json_option(what="the schedule with its next and last runs")
@target_options
@pass_target
def show(target: Target, name: str, tenant: str | None, as_json: bool) -> None:
    """Show one schedule: rule, settings, next runs, last runs."""
    detail = target.operations(lambda operations: schedule_detail.gather(operations, name, tenant))
    plain = schedule_detail.as_plain
    click.echo(json_text(plain(detail), indent=2) if as_json else schedule_detail.as_text(detail))


# --- enable, disable, trigger --------------------------------------------------------------------


@schedules.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@tenant_option
@target_options
@pass_target
def enable(target: Target, names: tuple[str, ...], tenant: str | None) -> None:
    """Enable schedules. Runs missed while disabled are not caught up."""
    which = TenantRequest(tenant=tenant)
    _each(target, names, lambda operations, name: operations.schedules.enable(name, which))


@schedules.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@click.option("--reason", help="Reason, stored with the schedule.")
@tenant_option
@target_options
@pass_target
def disable(target: Target, names: tuple[str, ...], reason: str | None, tenant: str | None) -> None:
    """Disable schedules: no runs until they are enabled. Existing jobs stay."""
    request = parse_request(DisableRequest, tenant=tenant, reason=reason)
    _each(target, names, lambda operations, name: operations.schedules.disable(name, request))


def _each(
    target: Target, names: Sequence[str], act: Callable[[Operations, str], Awaitable[ScheduleView]]
) -> None:
    async def act_on_all(operations: Operations) -> int:
        async def one(name: str) -> str:
            schedule = await act(operations, name)
            label = state("enabled" if schedule.enabled else "disabled")
            coming = (
                f"next run {next_run(schedule, await store_time(operations))}" if schedule.enabled else ""
            )
            return f"{qualified_name(schedule.tenant, schedule.name)}  {label}  {coming}"

        return await act_on_each(names, one)

    exit_if_failed(target.operations(act_on_all))


@schedules.command()
@click.argument("name")
@tenant_option
@json_option(what="the job")
@target_options
@pass_target
def trigger(target: Target, name: str, tenant: str | None, as_json: bool) -> None:
    """Run a schedule now, even if it is disabled, and print the job's id.

    Its next run does not change.
    """
    which = TenantRequest(tenant=tenant)
    job = target.operations(lambda operations: operations.schedules.trigger(name, which))
    click.echo(f"{safe(job.task)} enqueued on queue {safe(job.queue)}, origin manual: {job.id}", err=True)
    click.echo(json_text(job) if as_json else job.id)


# --- delete --------------------------------------------------------------------------------------


@schedules.command()
@click.argument("name")
@tenant_option
@yes_option
@target_options
@pass_target
def delete(target: Target, name: str, tenant: str | None, yes: bool) -> None:
    """Delete a schedule. The jobs it has created stay."""
    which = TenantRequest(tenant=tenant)

    async def fetch(operations: Operations) -> tuple[ScheduleView, datetime]:
        return await operations.schedules.show(name, which), await store_time(operations)

    schedule, now = target.operations(fetch)
    label = qualified_name(schedule.tenant, schedule.name)
    confirm(_effect(schedule, now), f"Delete {label}?", yes=yes)
    target.operations(lambda operations: operations.schedules.delete(schedule.id, which))
    click.echo(f"{label}  deleted")


def _effect(schedule: ScheduleView, now: datetime) -> str:
    recreated = {
        "code": f"\nThe code of {safe(schedule.owner)} declares it and creates it again at its next start. "
        "To keep it off, disable it instead.",
        "registry": "\nA program registered it, and creates it again if it registers it again.",
    }
    label = qualified_name(schedule.tenant, schedule.name)
    return (
        f"{label}: {safe(schedule.rule_summary)}; next run {next_run(schedule, now)}.\n"
        "It will create no more jobs. Existing jobs, and so its runs, stay."
        f"{recreated.get(schedule.source, '')}"
    )


for command in (create, update, preview, validate, backfill, import_):
    schedules.add_command(command)
