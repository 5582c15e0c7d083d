"""``rota schedules create``, ``update`` and ``backfill``: every flag is checked before anything is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import click
import msgspec

from ...errors import NotFound
from ...operate import Operations
from ...operate.requests import BackfillRequest, CreateScheduleRequest, TenantRequest, UpdateScheduleRequest
from ...operate.views import ScheduleView
from ...terminal.text import json_text, plural, safe
from ..parts.confirm import confirm
from ..parts.schedule_detail import local, next_run
from ..parts.schedule_options import (
    CLEARABLE,
    chosen,
    naming_flags,
    one_rule,
    schedule_options,
    tenant_option,
)
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_time
from .enqueue import note_unknown

SHOWN = 10
ANY_RULE = {"every": 1.0}  # stands for the stored one while flags are checked; fires at any start_at


@click.command()
@click.option("--name", required=True, help="Unique per tenant.")
@click.option("--task", required=True, help="What its jobs run; the code need not be here.")
@schedule_options
@tenant_option
@click.option("--json", "as_json", is_flag=True, help="Print the schedule as one object.")
@target_options
@pass_target
def create(target: Target, /, name: str, tenant: str, as_json: bool, **given: Any) -> None:
    """Store a schedule: exactly one of --cron, --every and --at. Its first fire is counted from now."""
    one_rule(given, needed=True)
    said = chosen(given)
    ask = CreateScheduleRequest(name=name, tenant=tenant, **_fields(target, name, tenant, said, said))

    async def go(operations: Operations) -> tuple[ScheduleView, datetime]:
        with _sending():
            return await operations.schedules.create(ask), await store_time(operations)

    _tell(*target.operations(go), "created", as_json)


@click.command()
@click.argument("name")
@click.option("--task", help="What its jobs run.")
@schedule_options
@click.option(
    "--clear", "cleared", multiple=True, type=click.Choice(CLEARABLE), help="Unset this; again for each."
)
@tenant_option
@click.option("--json", "as_json", is_flag=True, help="Print the schedule as one object.")
@target_options
@pass_target
def update(
    target: Target, /, name: str, tenant: str, cleared: Sequence[str], as_json: bool, **given: Any
) -> None:
    """Change what is given, keep the rest. A new rule is counted from now."""
    one_rule(given, needed=False)
    said = {**chosen(given), **_cleared(cleared, given)}
    if not said:
        raise click.UsageError("nothing to change was given: name at least one flag.")

    ask = UpdateScheduleRequest(tenant=tenant, **_fields(target, name, tenant, said, _whole(said)))

    async def go(operations: Operations) -> tuple[ScheduleView, datetime]:
        await operations.schedules.show(name, TenantRequest(tenant=tenant))
        with _sending():
            return await operations.schedules.update(name, ask), await store_time(operations)

    _tell(*target.operations(go), "updated", as_json)


def _fields(
    target: Target, name: str, tenant: str, said: Mapping[str, Any], whole: Mapping[str, Any]
) -> dict[str, Any]:
    """What was said, as values instead of texts; all of it checked before anything is sent."""
    app = target.offline()
    with naming_flags():
        built = app.schedules.build(name, tenant, whole)
    if "task" in said:
        note_unknown(app, said["task"])
    return {field: said[field] if field in ("payload", "task") else getattr(built, field) for field in said}


def _cleared(names: Sequence[str], given: Mapping[str, Any]) -> dict[str, None]:
    fields = [name.replace("-", "_") for name in names]
    for field in fields:
        if given.get(field) is not None:
            raise click.UsageError(f"--{field.replace('_', '-')} is both given and cleared: keep one.")
    return dict.fromkeys(fields)


def _whole(said: Mapping[str, Any]) -> dict[str, Any]:
    """The change as a schedule of its own, so that all of it is checked before the stored one is read."""
    rule = {} if {"cron", "every", "at"} & said.keys() else ANY_RULE
    return {**rule, **said, "task": "any"}


@contextmanager
def _sending() -> Iterator[None]:
    """What only the store can tell, and the present time, is named by its flag too."""
    try:
        with naming_flags():
            yield
    except NotFound as error:
        raise click.BadParameter(str(error), param_hint="'--calendar'") from error


def _tell(schedule: ScheduleView, now: datetime, done: str, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(schedule))
        return
    click.echo(f"{safe(schedule.name)}  {done}: {safe(schedule.words)}")
    if schedule.enabled:
        click.echo(f"  next run {next_run(schedule, now)}")
    else:
        click.echo(f"  off: fires after rota schedules enable {safe(schedule.name)}")
    if schedule.source == "code":
        owner = safe(schedule.owner)
        click.echo(f"  declared by the code of {owner}: your change stands, also when that code is deployed")


# --- backfill ------------------------------------------------------------------------------------


@click.command()
@click.argument("name")
@click.option(
    "--since", type=parse_time, required=True, metavar="INSTANT", help="From here: 2030-01-31T00:00Z."
)
@click.option(
    "--until", type=parse_time, required=True, metavar="INSTANT", help="To here; not in the future."
)
@click.option("--apply", is_flag=True, help="Make the jobs. Without it: only tell which.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@tenant_option
@click.option("--json", "as_json", is_flag=True, help="The fires as one object.")
@target_options
@pass_target
def backfill(
    target: Target,
    name: str,
    since: datetime,
    until: datetime,
    apply: bool,
    yes: bool,
    tenant: str,
    as_json: bool,
) -> None:
    """Make the jobs of fires in the past that were never made. A dry run unless --apply is given."""
    if until < since:
        raise click.BadParameter(f"{until.isoformat()} is before --since: swap them", param_hint="'--until'")

    async def look(operations: Operations) -> tuple[ScheduleView, Sequence[datetime]]:
        schedule = await operations.schedules.show(name, TenantRequest(tenant=tenant))
        with naming_flags():
            return schedule, (await operations.schedules.backfill(name, ask)).fires

    ask = BackfillRequest(tenant=tenant, since=since, until=until, dry_run=True)
    schedule, fires = target.operations(look)
    made: Sequence[datetime] = ()
    if apply and fires:
        confirm(_effect(schedule, fires), f"Make {plural(len(fires), 'job')}?", yes=yes)
        order = msgspec.structs.replace(ask, dry_run=False)
        made = target.operations(lambda operations: operations.schedules.backfill(name, order)).fires
    if as_json:
        click.echo(json_text({"count": len(fires), "fires": fires, "applied": apply, "made": made}))
    else:
        click.echo(_told(schedule, fires, made, apply))


def _effect(schedule: ScheduleView, fires: Sequence[datetime]) -> str:
    task = safe(schedule.task)
    return f"{_listed(schedule, fires)}\nEach becomes a job of task {task}, origin catchup, due at once."


def _told(schedule: ScheduleView, fires: Sequence[datetime], made: Sequence[datetime], applied: bool) -> str:
    if not fires:
        return f"{safe(schedule.name)} has no fire in that range that is without a job."
    if applied:
        return f"{plural(len(made), 'job')} made. See rota runs list --schedule {safe(schedule.name)}"
    return f"{_listed(schedule, fires)}\nDry run: nothing was made. To make these jobs: add --apply"


def _listed(schedule: ScheduleView, fires: Sequence[datetime]) -> str:
    shown = [f"  {local(at, schedule.timezone)}" for at in fires[:SHOWN]]
    if len(fires) > SHOWN:
        shown += ["  …", f"  {local(fires[-1], schedule.timezone)}"]
    count = plural(len(fires), "fire")
    return "\n".join((f"{safe(schedule.name)} has {count} without a job in that range:", *shown))
