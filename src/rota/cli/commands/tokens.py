"""``rota token``: who may come in by HTTP. The text of a token is shown once, alone on stdout."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, get_args

import click

from ...errors import NotFound
from ...model import Page, Role
from ...operate.requests import CreateTokenRequest
from ...operate.views import TokenView, UserView
from ...terminal import table
from ...terminal.text import json_text, plural, relative_time, safe, style, utc_time
from ..parts.confirm import confirm
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_duration
from ..parts.watch_option import watchable

if TYPE_CHECKING:
    from ...operate import Operations

ROLES = get_args(Role)
COLUMNS = (
    table.Column("ID"),
    table.Column("NAME", yields=2),
    table.Column("ROLE"),
    table.Column("TENANT"),
    table.Column("PAYLOADS", yields=3),
    table.Column("MADE", yields=4),
    table.Column("BY", yields=1),
    table.Column("EXPIRES"),
    table.Column("LAST USED"),
)


@click.group()
def token() -> None:
    """Tokens for the HTTP interface and the dashboard."""


@token.command()
@click.option("--role", type=click.Choice(ROLES), required=True, help="What it may do.")
@click.option("--tenant", metavar="NAME", help="Only what is this tenant's.  [default: all tenants]")
@click.option(
    "--expires", type=parse_duration, metavar="LENGTH", help="Good for so long: 30d.  [default: for ever]"
)
@click.option("--name", default="", help="What it is for: shown in lists and in the audit log.")
@click.option(
    "--payloads/--no-payloads", default=None, help="Whether it sees payloads.  [default: unless a viewer]"
)
@click.option("--json", "as_json", is_flag=True, help="The token with all that is known of it as one object.")
@target_options
@pass_target
def create(
    target: Target,
    role: Role,
    tenant: str | None,
    expires: float | None,
    name: str,
    payloads: bool | None,
    as_json: bool,
) -> None:
    """Make a token. Its text alone goes to stdout, this once."""
    ask = parse_request(
        CreateTokenRequest, role=role, tenant=tenant, expires_s=expires, name=name, payloads=payloads
    )
    made = target.operations(lambda operations: operations.access.create_token(ask))
    until = "for ever" if made.expires_at is None else f"until {utc_time(made.expires_at)}"
    click.echo(
        f"Token {safe(made.id)}: {grant(made)}, good {until}. Only its hash is kept: store it now.\n"
        "Use it: ROTA_TOKEN, or the header Authorization: Bearer TOKEN. "
        f"End it: rota token revoke {safe(made.id)}",
        err=True,
    )
    click.echo(json_text(made) if as_json else made.token)


def grant(one: TokenView | UserView) -> str:
    """``operator of tenant acme, without payloads``."""
    of = "all tenants" if one.tenant is None else f"tenant {safe(one.tenant)}"
    return f"{safe(one.role)} of {of}, {'with' if one.payloads else 'without'} payloads"


@token.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """All tokens, without their secrets."""
    page, now = target.operations(_tokens)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(one, now) for one in page.items])
    else:
        click.echo("There is no token. Make one: rota token create --role admin")


async def _tokens(operations: Operations) -> tuple[Page[TokenView], datetime]:
    return await operations.access.tokens(), await store_time(operations)


def _row(one: TokenView, now: datetime) -> tuple[str, ...]:
    return (
        safe(one.id),
        safe(one.name or "–"),
        safe(one.role),
        safe(one.tenant or "all"),
        "yes" if one.payloads else "no",
        relative_time(one.created_at, now),
        safe(one.created_by),
        _expiry(one, now),
        "never" if one.last_used_at is None else relative_time(one.last_used_at, now),
    )


def _expiry(one: TokenView, now: datetime) -> str:
    if one.expires_at is None:
        return "never"
    if one.expires_at <= now:
        return style(f"expired {relative_time(one.expires_at, now)}", "yellow")
    return relative_time(one.expires_at, now)


@token.command()
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@target_options
@pass_target
def revoke(target: Target, ids: tuple[str, ...], yes: bool) -> None:
    """End tokens, by their ids: the next request with one is refused."""
    page, now = target.operations(_tokens)
    known = {one.id: one for one in page.items}
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise NotFound(f"there is no token {', '.join(unknown)}: see rota token list; nothing was done")
    effect = "\n".join(_effect(known[one], now) for one in dict.fromkeys(ids))
    confirm(effect, f"Revoke {plural(len(set(ids)), 'token')}?", yes=yes)

    async def go(operations: Operations) -> None:
        for one in dict.fromkeys(ids):
            await operations.access.revoke_token(one)
            click.echo(f"{safe(one)}  revoked")

    target.operations(go)


def _effect(one: TokenView, now: datetime) -> str:
    used = (
        "was never used"
        if one.last_used_at is None
        else f"was last used {relative_time(one.last_used_at, now)}"
    )
    name = f" ({safe(one.name)})" if one.name else ""
    return f"{safe(one.id)}{name}, {grant(one)}, {used}: the next request with it is refused."
