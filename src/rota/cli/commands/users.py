"""``rota users``: users who sign in to the dashboard with a password. A password is never an argument."""

from __future__ import annotations

import sys

import click

from ...core.password_rules import SHORTEST as SHORTEST_PASSWORD
from ...core.password_rules import weakness
from ...core.plurals import plural
from ...model import Page, Role
from ...operate import Operations
from ...operate.requests import EndSessionsRequest, PutUserRequest, SetPasswordRequest
from ...operate.views import UserView
from ...terminal.text import relative_time, safe
from ..parts.access_options import access_columns, access_options, describe_access
from ..parts.confirm import confirm
from ..parts.files import read_text
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import yes_option
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, target_options

COLUMNS: Columns[UserView] = (
    ListColumn("NAME", lambda user, now: safe(user.name)),
    *access_columns(payloads_yield=1),
    ListColumn("SET", lambda user, now: relative_time(user.created_at, now), yields=2),
)


@click.group()
def users() -> None:
    """Manage users who sign in with a password."""


@users.command("set")
@click.argument("name")
@access_options
@click.option(
    "--password-file", metavar="FILE",
    help="File with the password in its first line, or - for stdin.  [default: prompt]",
)  # fmt: skip
@click.option("--must-change", is_flag=True, help="Let the user choose another one at the next sign-in.")
@target_options
@pass_target
def set_(
    target: Target,
    name: str,
    role: Role,
    tenant: str | None,
    payloads: bool | None,
    password_file: str | None,
    must_change: bool,
) -> None:
    """Create a user, or replace their role and password.

    Replacing them signs the user out everywhere.
    """
    password = _password(name, password_file)
    request = parse_request(
        PutUserRequest,
        password=password,
        role=role,
        tenant=tenant,
        payloads=payloads,
        must_change=must_change,
    )
    user = target.operations(lambda operations: operations.access.put_user(name, request))
    click.echo(f"{safe(user.name)} can sign in: {describe_access(user)}.")


def _password(name: str, file: str | None) -> str:
    if file is not None:
        text = read_text(file)
        password = text.splitlines()[0] if text else ""
        source = f"the password in {file}" if file != "-" else "the password"
    elif sys.stdin.isatty():
        label = f"Password for {safe(name)} (at least {SHORTEST_PASSWORD} characters)"
        password = click.prompt(label, hide_input=True, confirmation_prompt="Repeat the password", err=True)
        source = "the password"
    else:
        raise click.UsageError(
            "no terminal to prompt for a password; pass --password-file FILE, or - for stdin."
        )
    if (reason := weakness(str(password), name)) is not None:
        raise click.UsageError(f"{source} {reason}.")
    return str(password)


@users.command("password")
@click.argument("name")
@click.option(
    "--password-file", metavar="FILE",
    help="File with the password in its first line, or - for stdin.  [default: prompt]",
)  # fmt: skip
@click.option("--must-change", is_flag=True, help="Let the user choose another one at the next sign-in.")
@target_options
@pass_target
def set_password(target: Target, name: str, password_file: str | None, must_change: bool) -> None:
    """Change the password of a user; role and tenant stay.

    This signs the user out everywhere. Users change their own in the dashboard, under Settings.
    """
    request = parse_request(
        SetPasswordRequest, password=_password(name, password_file), must_change=must_change
    )
    user = target.operations(lambda operations: operations.access.set_password(name, request))
    then = " and chooses another one at the next sign-in" if must_change else ""
    click.echo(f"{safe(user.name)} has a new password{then}.")


@listing(users, COLUMNS, empty="No password users yet. API tokens also work: rota token list")
async def list_users(operations: Operations) -> Page[UserView]:
    """List users who sign in with a password."""
    return await operations.access.users()


@users.command()
@click.argument("name")
@yes_option
@target_options
@pass_target
def remove(target: Target, name: str, yes: bool) -> None:
    """Delete a user."""
    confirm(
        f"{safe(name)} can no longer sign in and is signed out everywhere.", f"Delete {safe(name)}?", yes=yes
    )
    target.operations(lambda operations: operations.access.delete_user(name))
    click.echo(f"{safe(name)}  deleted")


@users.command("sign-out")
@click.argument("name")
@yes_option
@target_options
@pass_target
def sign_out(target: Target, name: str, yes: bool) -> None:
    """End all sessions of a user; the password stays."""
    confirm(f"{safe(name)} must sign in again everywhere.", f"Sign {safe(name)} out?", yes=yes)
    request = parse_request(EndSessionsRequest, name=f"user:{name}")
    ended = target.operations(lambda operations: operations.access.end_sessions(request))
    click.echo(f"{safe(name)}  {plural(ended.count, 'session')} ended")
