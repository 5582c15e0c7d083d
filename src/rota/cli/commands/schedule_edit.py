"""``rota schedules create``, ``update`` and ``backfill``: options are checked before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from shlex import quote
from typing import Any, get_args

import click
import msgspec

from ...core.plurals import plural
from ...core.schedules.names import DEFAULT
from ...errors import NotFound
from ...model import OnScheduleConflict
from ...operate import Operations
from ...operate.requests import BackfillRequest, CreateScheduleRequest, TenantRequest, UpdateScheduleRequest
from ...operate.views import ScheduleView
from ...terminal.schedules import local_time, next_run
from ...terminal.text import json_text, qualified_name, safe
from ..parts.confirm import confirm
from ..parts.job_options import note_unknown_task
from ..parts.options import json_option, yes_option
from ..parts.schedule_options import (
    CLEARABLE,
    given_fields,
    naming_flags,
    new_tenant_option,
    one_rule,
    schedule_options,
    tenant_option,
)
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_time

SHOWN = 10
ANY_RULE = {"every": 1.0}  # in place of the stored rule while options are checked; valid with any start_at


@click.command()
@click.option("--name", required=True, help="Name, unique per tenant.")
@click.option("--task", required=True, help="Task of its jobs, by name; its code need not be installed here.")
@schedule_options
@new_tenant_option
@click.option("--on-conflict", type=click.Choice(get_args(OnScheduleConflict)), default="raise",
              show_default=True, help="If the name is in use: fail, or update that schedule.")  # fmt: skip
@json_option(what="the schedule")
@target_options
@pass_target
def create(
    target: Target, /, name: str, tenant: str, on_conflict: OnScheduleConflict, as_json: bool, **given: Any
) -> None:
    """Create a schedule, with exactly one of --cron, --every and --at. It starts from now."""
    one_rule(given, needed=True)
    fields = given_fields(given)
    checked = _fields(target, name, tenant, fields, fields)
    request = CreateScheduleRequest(name=name, tenant=tenant, on_conflict=on_conflict, **checked)

    async def act(operations: Operations) -> tuple[ScheduleView, datetime]:
        with _naming_store_errors():
            return await operations.schedules.create(request), await store_time(operations)

    schedule, now = target.operations(act)
    _echo(schedule, now, "created" if schedule.version == 1 else "updated", as_json)


@click.command()
@click.argument("name")
@click.option("--task", help="Task of its jobs.")
@schedule_options
@click.option("--clear", "cleared", multiple=True, type=click.Choice(CLEARABLE),
              help="Unset this option (repeatable).")  # fmt: skip
@tenant_option
@json_option(what="the schedule")
@target_options
@pass_target
def update(
    target: Target, /, name: str, tenant: str | None, cleared: Sequence[str], as_json: bool, **given: Any
) -> None:
    """Change the given options of a schedule and keep the rest. A new rule starts from now."""
    one_rule(given, needed=False)
    fields = {**given_fields(given), **_cleared(cleared, given)}
    if not fields:
        raise click.UsageError("nothing to change: pass at least one option.")
    checked = _fields(target, name, tenant or DEFAULT, fields, _whole(fields))
    request = UpdateScheduleRequest(tenant=tenant, **checked)

    async def act(operations: Operations) -> tuple[ScheduleView, datetime]:
        schedule = await operations.schedules.show(name, TenantRequest(tenant=tenant))
        with _naming_store_errors():
            return await operations.schedules.update(schedule.id, request), await store_time(operations)

    _echo(*target.operations(act), "updated", as_json)


def _fields(
    target: Target, name: str, tenant: str, given: Mapping[str, Any], whole: Mapping[str, Any]
) -> dict[str, Any]:
    """The given options as values instead of strings, all checked before anything is sent."""
    app = target.offline()
    with naming_flags():
        built = app.schedules.build(name, tenant, whole)
    if "task" in given:
        note_unknown_task(app, given["task"])
    return {field: given[field] if field in ("payload", "task") else getattr(built, field) for field in given}


def _cleared(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, None]:
    fields = [name.replace("-", "_") for name in names]
    for field in fields:
        if given.get(field) is not None:
            raise click.UsageError(f"--{field.replace('_', '-')} cannot be given and cleared at once.")
    return dict.fromkeys(fields)


def _whole(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The change as a complete schedule, so that it can be checked before the stored one is read."""
    rule = {} if {"cron", "every", "at"} & fields.keys() else ANY_RULE
    return {**rule, **fields, "task": "any"}


@contextmanager
def _naming_store_errors() -> Iterator[None]:
    """Errors that only the store or the current time reveals also name their option."""
    try:
        with naming_flags():
            yield
    except NotFound as error:
        raise click.BadParameter(str(error), param_hint="'--calendar'") from error


def _echo(schedule: ScheduleView, now: datetime, done: str, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(schedule))
        return
    label = qualified_name(schedule.tenant, schedule.name)
    click.echo(f"{label}  {done}: {safe(schedule.rule_summary)}")
    if schedule.enabled:
        click.echo(f"  next run {next_run(schedule, now)}")
    else:
        click.echo(f"  disabled; enable it with rota schedules enable {quote(label)}")
    if schedule.source == "code":
        owner = safe(schedule.owner)
        click.echo(f"  declared by the code of {owner}: your change is kept when that code is deployed")


# --- backfill ------------------------------------------------------------------------------------


@click.command()
@click.argument("name")
@click.option("--since", type=parse_time, required=True, metavar="TIME",
              help="Start of the range: 2030-01-31T00:00Z.")  # fmt: skip
@click.option("--until", type=parse_time, required=True, metavar="TIME",
              help="End of the range, not in the future.")  # fmt: skip
@click.option("--apply", is_flag=True, help="Create the jobs. Without it, only list the fire times.")
@yes_option
@tenant_option
@json_option("count", "fires", "applied", "made")
@target_options
@pass_target
def backfill(
    target: Target,
    name: str,
    since: datetime,
    until: datetime,
    apply: bool,
    yes: bool,
    tenant: str | None,
    as_json: bool,
) -> None:
    """Create jobs for past fire times that have none. A dry run unless --apply is given."""
    if until < since:
        raise click.BadParameter(f"{until.isoformat()} is before --since", param_hint="'--until'")

    async def find(operations: Operations) -> tuple[ScheduleView, Sequence[datetime]]:
        schedule = await operations.schedules.show(name, TenantRequest(tenant=tenant))
        with naming_flags():
            return schedule, (await operations.schedules.backfill(name, request)).fires

    request = BackfillRequest(tenant=tenant, since=since, until=until, dry_run=True)
    schedule, fires = target.operations(find)
    created: Sequence[datetime] = ()
    if apply and fires:
        confirm(_effect(schedule, fires), f"Create {plural(len(fires), 'job')}?", yes=yes)
        real = msgspec.structs.replace(request, dry_run=False)
        created = target.operations(lambda operations: operations.schedules.backfill(name, real)).fires
    if as_json:
        click.echo(json_text({"count": len(fires), "fires": fires, "applied": apply, "made": created}))
    else:
        click.echo(_result(schedule, fires, created, apply))


def _effect(schedule: ScheduleView, fires: Sequence[datetime]) -> str:
    task = safe(schedule.task)
    return f"{_listed(schedule, fires)}\nEach becomes a job of task {task}, origin catchup, due now."


def _result(
    schedule: ScheduleView, fires: Sequence[datetime], created: Sequence[datetime], applied: bool
) -> str:
    if not fires:
        return f"{safe(schedule.name)} has no fire time without a job in that range."
    if applied:
        return f"{plural(len(created), 'job')} created. See rota runs list --schedule {safe(schedule.name)}"
    return f"{_listed(schedule, fires)}\nDry run: nothing was created. Add --apply to create these jobs."


def _listed(schedule: ScheduleView, fires: Sequence[datetime]) -> str:
    shown = [f"  {local_time(at, schedule.timezone)}" for at in fires[:SHOWN]]
    if len(fires) > SHOWN:
        shown += ["  …", f"  {local_time(fires[-1], schedule.timezone)}"]
    count = plural(len(fires), "fire time")
    return "\n".join((f"{safe(schedule.name)} has {count} without a job in that range:", *shown))
