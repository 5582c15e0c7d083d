"""Pausing and resuming: flags, words, and the two subcommands that queues, tasks and tenants share."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

import click

from ...model import Scope, gate_id
from ...operate.requests import GateRequest
from ...operate.views import GateView
from ...terminal.text import json_text, relative_time, safe, utc_time
from .request_parsing import parse_request
from .target import Target, pass_target, target_options
from .time_parsing import parse_duration, parse_time

C = TypeVar("C", bound=Callable[..., Any])


def pause_options(command: C) -> C:
    """Give a command ``--reason``, ``--until`` and ``--for``."""
    for option in (
        click.option("--for", "for_s", type=parse_duration, metavar="LENGTH", help="Until then: 30m, 2h."),
        click.option("--until", type=parse_time, metavar="INSTANT", help="Until 2030-01-31T08:00Z.  [default: "
                     "until it is resumed]"),
        click.option("--reason", default="", help="Why: shown wherever the pause is."),
    ):  # fmt: skip
        command = option(command)
    return command


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
        raise click.UsageError("--until and --for were both given: keep one.")
    return parse_request(
        GateRequest, scope=scope, name=name, tenant=tenant, reason=reason, until=until, for_s=for_s
    )


def subject(scope: str, name: str | None, tenant: str | None = None) -> str:
    """``Everything``, ``Queue mail``, ``Schedule acme/nightly``."""
    if scope == "all":
        return "Everything"
    of = f"{tenant}/" if scope == "schedule" and tenant not in (None, "default") else ""
    return f"{scope.capitalize()} {safe(of)}{safe(name)}"


def pause_summary(gate: GateView, now: datetime) -> str:
    """How long, by whom and why: ``until … (in 2 h), by anna: provider down``."""
    until = "until it is resumed"
    if gate.until_at is not None:
        until = f"until {utc_time(gate.until_at)} ({relative_time(gate.until_at, now)})"
    return f"{until}, by {safe(gate.actor)}" + (f": {safe(gate.reason)}" if gate.reason else "")


def paused_cell(gate: GateView | None, now: datetime) -> str:
    return "" if gate is None else pause_summary(gate, now)


def echo_paused(gate: GateView, as_json: bool) -> None:
    if as_json:
        click.echo(json_text(gate))
        return
    what = subject(gate.scope, gate.name, gate.tenant)
    goes_on = "" if gate.scope == "schedule" else " Jobs already running go on."
    click.echo(f"{what} is paused {pause_summary(gate, gate.since_at)}.{goes_on}")


def add_pausing(group: click.Group, scope: Scope) -> None:
    """Give a group ``pause NAME`` and ``resume NAME``."""

    @group.command(help=f"Begin no job of this {scope} any more. What runs goes on.")
    @click.argument("name")
    @pause_options
    @click.option("--json", "as_json", is_flag=True, help="The pause as one object.")
    @target_options
    @pass_target
    def pause(
        target: Target, name: str, reason: str, until: datetime | None, for_s: float | None, as_json: bool
    ) -> None:
        ask = gate_request(scope, name, reason=reason, until=until, for_s=for_s)
        echo_paused(target.operations(lambda operations: operations.gates.pause(ask)), as_json)

    @group.command(help=f"Let a paused {scope} go on.")
    @click.argument("name")
    @target_options
    @pass_target
    def resume(target: Target, name: str) -> None:
        target.operations(lambda operations: operations.gates.resume(gate_id(scope, name)))
        click.echo(f"{subject(scope, name)} goes on.")


def resume_command(gate: GateView) -> str:
    """What lifts it."""
    if gate.scope == "all":
        return "rota resume"
    of = f" --tenant {shlex.quote(safe(gate.tenant))}" if gate.tenant not in (None, "default") else ""
    return f"rota resume --{gate.scope} {shlex.quote(safe(gate.name))}{of}"
