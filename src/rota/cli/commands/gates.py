"""``rota pause``, ``rota resume`` and ``rota gates``: pause everything or one thing, and list the pauses."""

from __future__ import annotations

import sys
from datetime import datetime

import click

from ...core.plurals import plural
from ...core.schedules.names import DEFAULT, full_name
from ...model import Page, Scope, gate_id
from ...operate import Operations
from ...operate.views import GateView
from ...terminal.text import relative_time, safe, utc_time
from ..parts.confirm import confirm
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import yes_option
from ..parts.pause_options import (
    echo_paused,
    gate_request,
    pause_json_option,
    pause_options,
    resume_command,
    scope_options,
    subject,
)
from ..parts.target import Target, pass_target, target_options


def _until(gate: GateView, now: datetime) -> str:
    if gate.until_at is None:
        return "resumed"
    return f"{utc_time(gate.until_at)}, {relative_time(gate.until_at, now)}"


COLUMNS: Columns[GateView] = (
    ListColumn("PAUSED", lambda gate, now: subject(gate.scope, gate.name, gate.tenant)),
    ListColumn("SINCE", lambda gate, now: relative_time(gate.since_at, now), yields=3),
    ListColumn("UNTIL", _until),
    ListColumn("BY", lambda gate, now: safe(gate.actor), yields=2),
    ListColumn("REASON", lambda gate, now: safe(gate.reason or "–"), yields=1),
    ListColumn("RESUME WITH", lambda gate, now: resume_command(gate), yields=4),
)


def _scope(
    queue: str | None, task: str | None, tenant: str | None, schedule: str | None
) -> tuple[Scope, str | None, str | None]:
    """Scope, name and, for a schedule, its tenant; without options: everything."""
    options: dict[Scope, str | None] = {
        "queue": queue,
        "task": task,
        "schedule": schedule,
        "tenant": tenant if schedule is None else None,
    }
    given = [(scope, name) for scope, name in options.items() if name is not None]
    if len(given) > 1:
        flags = " and ".join(f"--{scope}" for scope, _ in given)
        raise click.UsageError(f"{flags} cannot be combined: name one thing at a time.")
    if not given:
        return "all", None, None
    scope, name = given[0]
    return scope, name, tenant if scope == "schedule" else None


@click.command()
@scope_options
@pause_options
@yes_option
@pause_json_option
@target_options
@pass_target
def pause(
    target: Target,
    queue: str | None,
    task: str | None,
    tenant: str | None,
    schedule: str | None,
    reason: str,
    until: datetime | None,
    for_s: float | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Stop starting jobs, everywhere or for one queue, task or tenant; or stop one schedule.

    Running jobs finish. Workers notice within a poll interval. Schedules continue to create jobs unless
    they are paused themselves; these jobs start after rota resume.
    """
    scope, name, schedule_tenant = _scope(queue, task, tenant, schedule)
    request = gate_request(scope, name, tenant=schedule_tenant, reason=reason, until=until, for_s=for_s)
    if scope == "all" and not yes and sys.stdin.isatty():
        confirm(target.operations(_effect), "Pause everything?", yes=False)
    echo_paused(target.operations(lambda operations: operations.gates.pause(request)), as_json)


async def _effect(operations: Operations) -> str:
    """The effect of pausing everything."""
    stats = await operations.system.stats()
    workers = sum(worker.state != "lost" for worker in (await operations.system.workers()).items)
    due = sum(depth.due for depth in stats.queues.values())
    return (
        f"{plural(workers, 'running worker')} will start no jobs. {plural(stats.running, 'running job')} "
        f"will finish, {plural(due, 'due job')} will stay queued, and schedules continue to create jobs."
    )


@click.command()
@scope_options
@target_options
@pass_target
def resume(
    target: Target, queue: str | None, task: str | None, tenant: str | None, schedule: str | None
) -> None:
    """Resume everything, or only what you name. Other pauses stay in force."""
    scope, name, schedule_tenant = _scope(queue, task, tenant, schedule)

    async def act(operations: Operations) -> Page[GateView]:
        await operations.gates.resume(await _gate_id(operations, scope, name, schedule_tenant))
        return await operations.gates.list()

    left = target.operations(act).items
    click.echo(f"Resumed {subject(scope, name, schedule_tenant)}.")
    if left and scope == "all":
        click.echo(f"Still paused: {', '.join(subject(one.scope, one.name, one.tenant) for one in left)}.")


async def _gate_id(operations: Operations, scope: str, name: str | None, tenant: str | None) -> str:
    """A schedule may also be given by its full name, as lists print it."""
    if scope != "schedule" or tenant is not None:
        return gate_id(scope, name, tenant)
    for gate in (await operations.gates.list()).items:
        if gate.scope == "schedule" and full_name(gate.tenant or DEFAULT, gate.name or "") == name:
            return gate.id
    return gate_id(scope, name, (await operations.system.me()).tenant)


@click.group()
def gates() -> None:
    """List what is paused."""


@listing(gates, COLUMNS, empty="Nothing is paused.")
async def list_gates(operations: Operations) -> Page[GateView]:
    """List active pauses: who set them, and why."""
    return await operations.gates.list()
