"""Listings that go on: how to ask for the next page."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click

from ...terminal.text import on_terminal, safe
from .target import Target


def echo_next_page(ctx: click.Context, target: Target, cursor: str | None) -> None:
    """If there is more, tell the command that shows it."""
    if cursor is not None:
        click.echo(
            f"\nMore: {_again(ctx, target)} --cursor {shlex.quote(safe(cursor))}", err=not on_terminal()
        )


def _again(ctx: click.Context, target: Target) -> str:
    """The same command once more, without its cursor; without a URL that may hold a password, or a token."""
    url = target.url if "@" not in (target.url or "") else None
    flags = [("--api", target.api)] if target.is_remote else [("--app", target.app), ("--url", url)]
    where = [(flag, value) for flag, value in flags if value]
    words = [f"{flag} {shlex.quote(safe(value))}" for flag, value in where]
    return " ".join(("rota", ctx.command_path.partition(" ")[2], *words, *_given(ctx)))


def _given(ctx: click.Context) -> Iterator[str]:
    for option in ctx.command.params:
        said = option.name and ctx.get_parameter_source(option.name) is click.core.ParameterSource.COMMANDLINE
        if not said or not isinstance(option, click.Option) or option.name not in ctx.params:
            continue
        value = ctx.params[option.name]
        if option.is_flag:
            yield option.opts[0] if value else option.secondary_opts[0]
        elif option.name not in ("cursor", "watch"):
            values = value if isinstance(value, tuple) else (value,)
            yield from (f"{option.opts[0]} {shlex.quote(safe(each))}" for each in values)
