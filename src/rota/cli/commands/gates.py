"""``rota pause``, ``rota resume``, ``rota gates``: the pause switches, for everything or one thing."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

import click

from ...model import Page, Scope, gate_id
from ...operate.views import GateView
from ...terminal import table
from ...terminal.text import json_text, plural, relative_time, safe, utc_time
from ..parts.confirm import confirm
from ..parts.pause_options import echo_paused, gate_request, pause_options, resume_command, subject
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

if TYPE_CHECKING:
    from ...operate import Operations

COLUMNS = (
    table.Column("PAUSED"),
    table.Column("SINCE", yields=3),
    table.Column("UNTIL"),
    table.Column("BY", yields=2),
    table.Column("REASON", yields=1),
    table.Column("TO LIFT IT", yields=4),
)


def _which(
    queue: str | None, task: str | None, tenant: str | None, schedule: str | None
) -> tuple[Scope, str | None, str | None]:
    """Scope, name and, of a schedule, its tenant; nothing named: everything."""
    said: dict[Scope, str | None] = {
        "queue": queue,
        "task": task,
        "schedule": schedule,
        "tenant": tenant if schedule is None else None,
    }
    named = [(scope, name) for scope, name in said.items() if name is not None]
    if len(named) > 1:
        flags = " and ".join(f"--{scope}" for scope, _ in named)
        raise click.UsageError(f"{flags} were given: name one thing at a time.")
    if not named:
        return "all", None, None
    scope, name = named[0]
    return scope, name, tenant if scope == "schedule" else None


@click.command()
@click.option("--queue", metavar="NAME", help="Only this queue.")
@click.option("--task", metavar="NAME", help="Only this task.")
@click.option("--tenant", metavar="NAME", help="Only this tenant; with --schedule, whose schedule it is.")
@click.option("--schedule", metavar="NAME", help="Only this schedule.")
@pause_options
@click.option("--yes", is_flag=True, help="Do not ask, even on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="The pause as one object.")
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
    """Begin no new jobs: none at all, or none of what is named. Running jobs finish.

    Workers hear of it within a poll interval. Schedules go on making jobs unless they are paused
    themselves; these wait.
    """
    scope, name, of = _which(queue, task, tenant, schedule)
    ask = gate_request(scope, name, tenant=of, reason=reason, until=until, for_s=for_s)
    if scope == "all" and not yes and sys.stdin.isatty():
        confirm(target.operations(effect_of_pausing), "Pause everything?", yes=False)
    echo_paused(target.operations(lambda operations: operations.gates.pause(ask)), as_json)


async def effect_of_pausing(operations: Operations) -> str:
    """What will happen if everything is paused."""
    stats = await operations.system.stats()
    live = sum(worker.state != "lost" for worker in (await operations.system.workers()).items)
    due = sum(depth.queued for depth in stats.queues.values())
    return (
        f"{plural(live, 'live worker')} will claim nothing. {plural(stats.running, 'running job')} will "
        f"finish, {plural(due, 'due job')} will wait, and schedules go on making jobs that wait too."
    )


@click.command()
@click.option("--queue", metavar="NAME", help="This queue.")
@click.option("--task", metavar="NAME", help="This task.")
@click.option("--tenant", metavar="NAME", help="This tenant; with --schedule, whose schedule it is.")
@click.option("--schedule", metavar="NAME", help="This schedule.")
@target_options
@pass_target
def resume(
    target: Target, queue: str | None, task: str | None, tenant: str | None, schedule: str | None
) -> None:
    """Lift the pause of everything, or of what is named. Other pauses stay."""
    scope, name, of = _which(queue, task, tenant, schedule)

    async def go(operations: Operations) -> Page[GateView]:
        whose = of or (await operations.system.me()).tenant if scope == "schedule" else None
        await operations.gates.resume(gate_id(scope, name, whose))
        return await operations.gates.list()

    left = target.operations(go).items
    click.echo(f"{subject(scope, name, of)} goes on.")
    if left and scope == "all":
        click.echo(f"Still paused: {', '.join(subject(one.scope, one.name, one.tenant) for one in left)}.")


@click.group()
def gates() -> None:
    """What is paused now."""


@gates.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """Every pause that stands, by whom and why."""

    async def ask(operations: Operations) -> tuple[Page[GateView], datetime]:
        return await operations.gates.list(), await store_time(operations)

    page, now = target.operations(ask)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(gate, now) for gate in page.items])
    else:
        click.echo("Nothing is paused.")


def _row(gate: GateView, now: datetime) -> tuple[str, ...]:
    until = (
        "it is resumed"
        if gate.until_at is None
        else f"{utc_time(gate.until_at)}, {relative_time(gate.until_at, now)}"
    )
    return (
        subject(gate.scope, gate.name, gate.tenant),
        relative_time(gate.since_at, now),
        until,
        safe(gate.actor),
        safe(gate.reason or "–"),
        resume_command(gate),
    )
