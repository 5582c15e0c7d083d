"""``rota users``: who signs in to the dashboard with a password. A password is never an argument."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import TYPE_CHECKING

import click

from ...model import Page, Role
from ...operate.requests import PutUserRequest
from ...operate.views import UserView
from ...terminal import table
from ...terminal.text import json_text, relative_time, safe
from ..parts.confirm import confirm
from ..parts.files import read_text
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable
from .tokens import ROLES, grant

if TYPE_CHECKING:
    from ...operate import Operations

LEAST = 12  # characters of a password
COLUMNS = (
    table.Column("NAME"),
    table.Column("ROLE"),
    table.Column("TENANT"),
    table.Column("PAYLOADS", yields=1),
    table.Column("SET", yields=2),
)


@click.group()
def users() -> None:
    """People who sign in with a password."""


@users.command("set")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What they may do.")
@click.option("--tenant", metavar="NAME", help="Only what is this tenant's.  [default: all tenants]")
@click.option(
    "--payloads/--no-payloads", default=None, help="Whether they see payloads.  [default: unless a viewer]"
)
@click.option(
    "--password-file", metavar="FILE", help="Its first line, or - for stdin.  [default: asked for, twice]"
)
@target_options
@pass_target
def set_(
    target: Target,
    name: str,
    role: Role,
    tenant: str | None,
    payloads: bool | None,
    password_file: str | None,
) -> None:
    """Let NAME sign in, or change their role or password: their sessions end."""
    password = _password(name, password_file)
    ask = parse_request(PutUserRequest, password=password, role=role, tenant=tenant, payloads=payloads)
    user = target.operations(lambda operations: operations.access.put_user(name, ask))
    click.echo(f"{safe(user.name)} may sign in: {grant(user)}.")


def _password(name: str, file: str | None) -> str:
    if file is not None:
        text = read_text(file)
        password = text.splitlines()[0] if text else ""
        where = f"the password in {file}" if file != "-" else "the password"
    elif sys.stdin.isatty():
        said = f"Password for {safe(name)} ({LEAST} characters or more)"
        password = click.prompt(said, hide_input=True, confirmation_prompt="Once more", err=True)
        where = "the password"
    else:
        raise click.UsageError(
            "there is no terminal to ask for a password: give --password-file FILE, or - for stdin."
        )
    if len(password) < LEAST:
        raise click.UsageError(f"{where} has fewer than {LEAST} characters: choose a longer one.")
    return str(password)


@users.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """The people who sign in with a password."""
    page, now = target.operations(_users)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(user, now) for user in page.items])
    else:
        click.echo("Nobody signs in with a password. Tokens work too: rota token list")


async def _users(operations: Operations) -> tuple[Page[UserView], datetime]:
    return await operations.access.users(), await store_time(operations)


def _row(user: UserView, now: datetime) -> tuple[str, ...]:
    return (
        safe(user.name),
        safe(user.role),
        safe(user.tenant or "all"),
        "yes" if user.payloads else "no",
        relative_time(user.created_at, now),
    )


@users.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@target_options
@pass_target
def remove(target: Target, name: str, yes: bool) -> None:
    """Nobody signs in by this name any more."""
    confirm(f"{safe(name)} can no longer sign in, and their sessions end.", f"Remove {safe(name)}?", yes=yes)
    target.operations(lambda operations: operations.access.delete_user(name))
    click.echo(f"{safe(name)}  removed")
