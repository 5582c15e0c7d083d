"""``rota token``: API tokens. The secret of a token is printed once, alone on stdout."""

from __future__ import annotations

from datetime import datetime

import click

from ...errors import NotFound
from ...model import Page, Role
from ...operate import Operations
from ...operate.requests import CreateTokenRequest
from ...operate.views import TokenView
from ...terminal.text import json_text, plural, relative_time, safe, style, utc_time
from ..parts.access_options import access_columns, access_options, describe_access
from ..parts.confirm import confirm
from ..parts.each import act_on_each
from ..parts.exit_codes import exit_if_failed
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import json_option, yes_option
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import parse_duration


def _expiry(token: TokenView, now: datetime) -> str:
    if token.expires_at is None:
        return "never"
    if token.expires_at <= now:
        return style(f"expired {relative_time(token.expires_at, now)}", "yellow")
    return relative_time(token.expires_at, now)


def _last_used(token: TokenView, now: datetime) -> str:
    return "never" if token.last_used_at is None else relative_time(token.last_used_at, now)


COLUMNS: Columns[TokenView] = (
    ListColumn("ID", lambda token, now: safe(token.id)),
    ListColumn("NAME", lambda token, now: safe(token.name or "–"), yields=2),
    *access_columns(payloads_yield=3),
    ListColumn("CREATED", lambda token, now: relative_time(token.created_at, now), yields=4),
    ListColumn("BY", lambda token, now: safe(token.created_by), yields=1),
    ListColumn("EXPIRES", _expiry),
    ListColumn("LAST USED", _last_used),
)


@click.group()
def token() -> None:
    """Create, list and revoke API tokens."""


@token.command()
@access_options
@click.option("--expires", type=parse_duration, metavar="DURATION",
              help="Expire after this long: 30d.  [default: never]")  # fmt: skip
@click.option("--name", default="", help="Purpose, shown in lists and in the audit log.")
@json_option(what="the token with its details")
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
    """Create an API token and print it. It is shown only once."""
    request = parse_request(
        CreateTokenRequest, role=role, tenant=tenant, expires_s=expires, name=name, payloads=payloads
    )
    created = target.operations(lambda operations: operations.access.create_token(request))
    until = "never expires" if created.expires_at is None else f"expires {utc_time(created.expires_at)}"
    click.echo(
        f"Created token {safe(created.id)}: {describe_access(created)}, {until}.\n"
        "rota stores only a hash: save the token now. Use it as ROTA_TOKEN, or in the header\n"
        f"Authorization: Bearer TOKEN. Revoke it with rota token revoke {safe(created.id)}",
        err=True,
    )
    click.echo(json_text(created) if as_json else created.token)


@listing(token, COLUMNS, empty="No API tokens yet. Create one: rota token create --role admin")
async def list_tokens(operations: Operations) -> Page[TokenView]:
    """List API tokens, without their secrets."""
    return await operations.access.tokens()


@token.command()
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@yes_option
@target_options
@pass_target
def revoke(target: Target, ids: tuple[str, ...], yes: bool) -> None:
    """Revoke API tokens by id. Requests with a revoked token are denied."""

    async def find(operations: Operations) -> tuple[Page[TokenView], datetime]:
        return await operations.access.tokens(), await store_time(operations)

    page, now = target.operations(find)
    known = {token.id: token for token in page.items}
    unknown = [token_id for token_id in ids if token_id not in known]
    if unknown:
        raise NotFound(f"no token {', '.join(unknown)}; nothing was changed. See rota token list")
    effect = "\n".join(_effect(known[token_id], now) for token_id in dict.fromkeys(ids))
    confirm(effect, f"Revoke {plural(len(set(ids)), 'token')}?", yes=yes)

    async def act(operations: Operations) -> int:
        async def one(token_id: str) -> str:
            await operations.access.revoke_token(token_id)
            return f"{safe(token_id)}  revoked"

        return await act_on_each(ids, one)

    exit_if_failed(target.operations(act))


def _effect(token: TokenView, now: datetime) -> str:
    used = (
        "never used" if token.last_used_at is None else f"last used {relative_time(token.last_used_at, now)}"
    )
    name = f" ({safe(token.name)})" if token.name else ""
    return f"{safe(token.id)}{name}, {describe_access(token)}, {used}: requests with it will be denied."
