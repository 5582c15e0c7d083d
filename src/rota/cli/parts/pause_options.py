"""Pausing and resuming: options, sentences, and the two commands that queues, tasks and tenants share."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from ...model import Scope, gate_id
from ...operate.requests import GateRequest
from ...operate.views import GateView
from ...terminal.text import json_text, qualified_name, relative_time, safe, style, utc_time
from .lists import ListColumn
from .options import apply_options, json_option
from .request_parsing import parse_request
from .target import Target, pass_target, target_options
from .time_parsing import parse_duration, parse_time

C = TypeVar("C", bound=Callable[..., Any])

_PAUSE = (
    click.option("--reason", default="", help="Reason, shown wherever the pause appears."),
    click.option("--until", type=parse_time, metavar="TIME",
                 help="End the pause at this time: 2030-01-31T08:00Z.  [default: when resumed]"),
    click.option("--for", "for_s", type=parse_duration, metavar="DURATION",
                 help="End the pause after this long: 30m, 2h."),
)  # fmt: skip
_SCOPE = (
    click.option("--queue", metavar="NAME", help="Only this queue."),
    click.option("--task", metavar="NAME", help="Only this task."),
    click.option(
        "--tenant", metavar="NAME", help="Only this tenant; with --schedule, the schedule's tenant."
    ),
    click.option("--schedule", metavar="NAME", help="Only this schedule."),
)
pause_json_option = json_option(what="the pause")


def pause_options(command: C) -> C:
    """Give a command ``--reason``, ``--until`` and ``--for``."""
    return apply_options(command, _PAUSE)


def scope_options(command: C) -> C:
    """Give a command ``--queue``, ``--task``, ``--tenant`` and ``--schedule``."""
    return apply_options(command, _SCOPE)


def gate_request(
    scope: Scope,
    name: str | None,
    *,
    tenant: str | None = None,
    reason: str,
    until: datetime | None,
    for_s: float | None,
) -> GateRequest:
    if until is not None and for_s is not None:
        raise click.UsageError("--until and --for cannot be combined.")
    return parse_request(
        GateRequest, scope=scope, name=name, tenant=tenant, reason=reason, until=until, for_s=for_s
    )


def subject(scope: str, name: str | None, tenant: str | None = None) -> str:
    """``everything``, ``queue mail``, ``schedule acme/nightly``."""
    if scope == "all":
        return "everything"
    return f"{scope} {qualified_name(tenant, name or '') if scope == 'schedule' else safe(name)}"


def pause_summary(gate: GateView, now: datetime) -> str:
    """End, actor and reason: ``until … (in 2 h), by anna: provider down``."""
    until = "until resumed"
    if gate.until_at is not None:
        until = f"until {utc_time(gate.until_at)} ({relative_time(gate.until_at, now)})"
    return f"{until}, by {safe(gate.actor)}" + (f": {safe(gate.reason)}" if gate.reason else "")


def paused_column() -> ListColumn[Any]:
    """The pause of an item that has a gate."""
    return ListColumn(
        "PAUSED", lambda item, now: "" if item.gate is None else pause_summary(item.gate, now), yields=1
    )


def echo_paused(gate: GateView, as_json: bool) -> None:
    if gate.warning is not None:
        click.echo(f"{style('!', 'yellow')} {safe(gate.warning)}", err=True)
    if as_json:
        click.echo(json_text(gate))
        return
    running = "" if gate.scope == "schedule" else " Running jobs continue."
    summary = pause_summary(gate, gate.since_at)
    click.echo(f"Paused {subject(gate.scope, gate.name, gate.tenant)} {summary}.{running}")


def add_pause_commands(group: click.Group, scope: Scope) -> None:
    """Give a group ``pause NAME`` and ``resume NAME``."""

    @group.command(help=f"Pause a {scope}: start none of its jobs. Running jobs continue.")
    @click.argument("name")
    @pause_options
    @pause_json_option
    @target_options
    @pass_target
    def pause(
        target: Target, name: str, reason: str, until: datetime | None, for_s: float | None, as_json: bool
    ) -> None:
        request = gate_request(scope, name, reason=reason, until=until, for_s=for_s)
        echo_paused(target.operations(lambda operations: operations.gates.pause(request)), as_json)

    @group.command(help=f"Resume a paused {scope}.")
    @click.argument("name")
    @target_options
    @pass_target
    def resume(target: Target, name: str) -> None:
        target.operations(lambda operations: operations.gates.resume(gate_id(scope, name)))
        click.echo(f"Resumed {subject(scope, name)}.")


def resume_command(gate: GateView) -> str:
    """The command that ends the pause."""
    if gate.scope == "all":
        return "rota resume"
    tenant = f" --tenant {shlex.quote(safe(gate.tenant))}" if gate.tenant not in (None, "default") else ""
    return f"rota resume --{gate.scope} {shlex.quote(safe(gate.name))}{tenant}"
