"""``rota schedules``: look at them, switch them, fire one by hand.

Making, backfilling and importing have modules of their own; see the commands added below.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import click
import msgspec

from ...errors import IllegalMove, NotFound
from ...model import Page
from ...operate import Operations
from ...operate.requests import MOST, DisableRequest, RunsRequest, SchedulesRequest, TenantRequest
from ...operate.views import ScheduleView
from ...schedules.runs import ScheduleRun
from ...terminal import table
from ...terminal.text import json_text, safe, state
from ..parts import schedule_detail
from ..parts.confirm import confirm
from ..parts.exit_codes import FAILED
from ..parts.paging import echo_next_page
from ..parts.request_parsing import parse_request
from ..parts.schedule_detail import last_run, next_run, paused
from ..parts.schedule_options import tenant_option
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable
from .crontab import import_
from .schedule_edit import backfill, create, update
from .schedule_preview import preview, validate

COLUMNS = (
    table.Column("NAME"),
    table.Column("STATE", yields=3),
    table.Column("WHEN", yields=4),
    table.Column("NEXT", yields=5),
    table.Column("LAST RUN", yields=2),
    table.Column("TASK", yields=1),
)


@click.group()
def schedules() -> None:
    """List, show, create, change and try out schedules."""


# --- list ----------------------------------------------------------------------------------------


@schedules.command("list")
@watchable
@click.option("--tenant", help="Only this tenant.")
@click.option("--task", help="Only those of this task.")
@click.option("--enabled/--disabled", default=None, help="Only those that fire, or do not.")
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", help="Go on where a page ended.")
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": cursor or null}.')
@target_options
@pass_target
@click.pass_context
def list_(
    ctx: click.Context,
    target: Target,
    tenant: str | None,
    task: str | None,
    enabled: bool | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """Schedules, by tenant and name."""
    ask = parse_request(
        SchedulesRequest, tenant=tenant, task=task, enabled=enabled, limit=limit, cursor=cursor
    )

    async def look(operations: Operations) -> tuple[Page[ScheduleView], list[ScheduleRun | None], datetime]:
        page = await operations.schedules.list(ask)
        return (
            page,
            [await _last(operations, schedule) for schedule in page.items],
            await store_time(operations),
        )

    page, runs, now = target.operations(look)
    both = list(zip(page.items, runs, strict=True))
    if as_json:
        items = [{**msgspec.to_builtins(schedule), "last_run": run} for schedule, run in both]
        click.echo(json_text({"items": items, "next": page.next}))
    elif not both:
        click.echo(_nothing(filtered=any(v is not None for v in (tenant, task, enabled))))
    else:
        several = any(schedule.tenant != "default" for schedule in page.items)
        table.print_table(COLUMNS, [_row(schedule, run, now, several) for schedule, run in both])
        echo_next_page(ctx, target, page.next)


async def _last(operations: Operations, schedule: ScheduleView) -> ScheduleRun | None:
    page = await operations.schedules.runs(
        RunsRequest(schedule=schedule.name, tenant=schedule.tenant, limit=1)
    )
    return page.items[0] if page.items else None


def _row(schedule: ScheduleView, run: ScheduleRun | None, now: datetime, several: bool) -> tuple[str, ...]:
    name = f"{schedule.tenant}/{schedule.name}" if several else schedule.name
    return (
        safe(name), _switch(schedule), safe(schedule.words), _next(schedule, now), last_run(run, now),
        safe(schedule.task),
    )  # fmt: skip


def _switch(schedule: ScheduleView) -> str:
    if schedule.enabled and schedule.gate is not None:
        return state("paused")
    return state("enabled", word="on") if schedule.enabled else state("disabled", word="off")


def _next(schedule: ScheduleView, now: datetime) -> str:
    if not schedule.enabled:
        return safe(f"off: {schedule.reason}" if schedule.reason else "off")[:200]
    return next_run(schedule, now) if schedule.gate is None else safe(paused(schedule.gate))[:200]


def _nothing(*, filtered: bool) -> str:
    if filtered:
        return "No schedule matches. Without filters: rota schedules list"
    return (
        'No schedules yet. Declare one in your program with @app.cron("0 8 * * 1-5") or @app.every("15m"),\n'
        "or make one from here:\n"
        '  rota schedules create --name nightly --task TASK --cron "0 3 * * *" --timezone Europe/Berlin\n'
        "Or bring those you have: rota schedules import crontab FILE"
    )


# --- show ----------------------------------------------------------------------------------------


@schedules.command()
@click.argument("name")
@tenant_option
@click.option("--json", "as_json", is_flag=True, help="The schedule, its fires and runs as one object.")
@target_options
@pass_target
def show(target: Target, name: str, tenant: str, as_json: bool) -> None:
    """Everything about one schedule: rule, next fires, last runs."""
    page = target.operations(lambda operations: schedule_detail.gather(operations, name, tenant))
    click.echo(
        json_text(schedule_detail.as_plain(page), indent=2) if as_json else schedule_detail.as_text(page)
    )


# --- switches and the trigger --------------------------------------------------------------------

Act = Callable[[Operations, str], Awaitable[ScheduleView]]


@schedules.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@tenant_option
@target_options
@pass_target
def enable(target: Target, names: tuple[str, ...], tenant: str) -> None:
    """Let schedules fire again, counted from now: what was missed while off is not caught up."""
    which = TenantRequest(tenant=tenant)
    _each(target, names, lambda operations, name: operations.schedules.enable(name, which))


@schedules.command()
@click.argument("names", metavar="NAME…", nargs=-1, required=True)
@click.option("--reason", help="Kept with the schedule.")
@tenant_option
@target_options
@pass_target
def disable(target: Target, names: tuple[str, ...], reason: str | None, tenant: str) -> None:
    """Let schedules fire no more until they are enabled. Jobs that they have made stay."""
    ask = parse_request(DisableRequest, tenant=tenant, reason=reason)
    _each(target, names, lambda operations, name: operations.schedules.disable(name, ask))


def _each(target: Target, names: Sequence[str], act: Act) -> None:
    """One line per schedule; exit code 1 if any could not be done."""

    async def go(operations: Operations) -> int:
        failed = 0
        for name in dict.fromkeys(names):
            try:
                done = await act(operations, name)
                label = state("enabled" if done.enabled else "disabled")
                coming = f"next run {next_run(done, await store_time(operations))}" if done.enabled else ""
                click.echo(f"{safe(done.name)}  {label}  {coming}".rstrip())
            except (NotFound, IllegalMove) as error:
                failed += 1
                click.echo(f"rota: {safe(error)}", err=True)
        return failed

    if target.operations(go):
        raise SystemExit(FAILED)


@schedules.command()
@click.argument("name")
@tenant_option
@click.option("--json", "as_json", is_flag=True, help="Print the job as one object.")
@target_options
@pass_target
def trigger(target: Target, name: str, tenant: str, as_json: bool) -> None:
    """Run it now, also if it is off. Its next fire stays as it is. Prints the job's id."""
    job = target.operations(
        lambda operations: operations.schedules.trigger(name, TenantRequest(tenant=tenant))
    )
    click.echo(f"{safe(job.task)} stored on queue {safe(job.queue)}, origin manual: {job.id}", err=True)
    click.echo(json_text(job) if as_json else job.id)


# --- delete --------------------------------------------------------------------------------------


@schedules.command()
@click.argument("name")
@tenant_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@target_options
@pass_target
def delete(target: Target, name: str, tenant: str, yes: bool) -> None:
    """Forget a schedule. The jobs it has made stay."""

    which = TenantRequest(tenant=tenant)

    async def look(operations: Operations) -> tuple[ScheduleView, datetime]:
        return await operations.schedules.show(name, which), await store_time(operations)

    schedule, now = target.operations(look)
    confirm(_effect(schedule, now), f"Delete {safe(name)}?", yes=yes)
    target.operations(lambda operations: operations.schedules.delete(name, which))
    click.echo(f"{safe(name)}  deleted")


def _effect(schedule: ScheduleView, now: datetime) -> str:
    back = {
        "code": f"\nThe code of {safe(schedule.owner)} declares it: it comes back when that program starts "
        "next. To keep it off, disable it instead.",
        "registry": "\nA program registered it: it comes back when it does so again.",
    }
    return (
        f"{safe(schedule.name)}: {safe(schedule.words)}; next run {next_run(schedule, now)}.\n"
        f"It will fire no more. The jobs it has made, and so its runs, stay.{back.get(schedule.source, '')}"
    )


for command in (create, update, preview, validate, backfill, import_):
    schedules.add_command(command)
