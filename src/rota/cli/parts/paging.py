"""The command that shows the next page of a list."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from ...terminal.text import safe
from .target import Target


def next_page_command(ctx: click.Context, target: Target, cursor: str | None) -> str:
    """``More: rota jobs list --cursor …``; empty on the last page."""
    if cursor is None:
        return ""
    return f"More: {_same_command(ctx, target)} --cursor {shlex.quote(safe(cursor))}"


def _same_command(ctx: click.Context, target: Target) -> str:
    """This command without its cursor, a token, or a URL that may hold a password."""
    url = target.url if "@" not in (target.url or "") else None
    flags = [("--api", target.api)] if target.is_remote else [("--app", target.app), ("--url", url)]
    options = [f"{flag} {shlex.quote(safe(value))}" for flag, value in flags if value]
    program = ctx.find_root().command_path  # rota, or manage.py rota
    command = ctx.command_path.removeprefix(program).strip()
    return " ".join((program if program.endswith(" rota") else "rota", command, *options, *_given(ctx)))


def _given(ctx: click.Context) -> Iterator[str]:
    for option in ctx.command.params:
        typed = (
            option.name and ctx.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
        )
        if not typed or not isinstance(option, click.Option) or option.name not in ctx.params:
            continue
        value = ctx.params[option.name]
        if option.is_flag:
            yield option.opts[0] if value else option.secondary_opts[0]
        elif option.name not in ("cursor", "watch"):
            values = value if isinstance(value, tuple) else (value,)
            yield from (f"{option.opts[0]} {shlex.quote(safe(each))}" for each in values)
