"""``rota token``: API tokens. The secret of a token is printed once, alone on stdout."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import click

from ...core.plurals import plural
from ...errors import NotFound
from ...model import Page, Role
from ...operate import Operations
from ...operate.requests import CreateTokenRequest, RotateTokenRequest
from ...operate.views import NewToken, TokenView
from ...terminal.text import json_text, relative_time, safe, style, utc_time
from ..parts.access_options import access_columns, access_options, describe_access, scope_options
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
    ListColumn("FROM", lambda token, now: safe(token.last_used_from or "–"), yields=5),
)


@click.group()
def token() -> None:
    """Create, list, rotate and revoke API tokens."""


@token.command()
@access_options
@click.option("--expires", type=parse_duration, metavar="DURATION",
              help="Expire after this long: 30d.  [default: never]")  # fmt: skip
@click.option("--name", default="", help="Purpose, shown in lists and in the audit log.")
@scope_options
@click.option("--outlives", is_flag=True,
              help="Keep it when the token that creates it (ROTA_TOKEN) is revoked.")  # fmt: skip
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
    tasks: tuple[str, ...],
    queues: tuple[str, ...],
    outlives: bool,
    as_json: bool,
) -> None:
    """Create an API token and print it. It is shown only once."""
    request = parse_request(
        CreateTokenRequest,
        role=role,
        tenant=tenant,
        expires_s=expires,
        name=name,
        payloads=payloads,
        tasks=tasks,
        queues=queues,
        outlives=outlives,
    )
    created = target.operations(lambda operations: operations.access.create_token(request))
    until = "never expires" if created.expires_at is None else f"expires {utc_time(created.expires_at)}"
    bound = f" It is revoked with token {safe(created.ends_with)}." if created.ends_with else ""
    click.echo(
        f"Created token {safe(created.id)}: {describe_access(created)}, {until}.{bound}\n"
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
@click.argument("name", metavar="NAME")
@click.option("--overlap", type=parse_duration, metavar="DURATION", default="1h", show_default=True,
              help="How long the old secret stays valid; 0s ends it at once.")  # fmt: skip
@click.option("--expires", type=parse_duration, metavar="DURATION",
              help="Let the token expire after this long: 90d.  [default: its end stays]")  # fmt: skip
@json_option(what="the token with its details")
@target_options
@pass_target
def rotate(target: Target, name: str, overlap: float, expires: float | None, as_json: bool) -> None:
    """Give an API token, by id or name, a new secret and print the token. It is shown only once."""
    request = parse_request(RotateTokenRequest, overlap_s=overlap, expires_s=expires)

    async def act(operations: Operations) -> NewToken:
        found = _find((await operations.access.tokens()).items, name)
        return await operations.access.rotate_token(found.id, request)

    rotated = target.operations(act)
    until = rotated.previous_until
    old = (
        "The old secret is no longer valid"
        if until is None
        else f"The old secret is valid until {utc_time(until)}"
    )
    click.echo(f"Rotated token {safe(rotated.id)}. {old}. Save the new token now:", err=True)
    click.echo(json_text(rotated) if as_json else rotated.token)


@token.command()
@click.argument("ids", metavar="ID…", nargs=-1, required=True)
@yes_option
@target_options
@pass_target
def revoke(target: Target, ids: tuple[str, ...], yes: bool) -> None:
    """Revoke API tokens by id, with those that end with them. Requests with a revoked token are denied."""

    async def find(operations: Operations) -> tuple[Page[TokenView], datetime]:
        return await operations.access.tokens(), await store_time(operations)

    page, now = target.operations(find)
    known = {token.id: token for token in page.items}
    unknown = [token_id for token_id in ids if token_id not in known]
    if unknown:
        raise NotFound(f"no token {', '.join(unknown)}; nothing was changed. See rota token list")
    effect = "\n".join(
        line for token_id in dict.fromkeys(ids) for line in _effects(known[token_id], page.items, now)
    )
    confirm(effect, f"Revoke {plural(len(set(ids)), 'token')}?", yes=yes)

    bound = {found.id for token_id in ids for found in bound_to(token_id, page.items)}

    async def act(operations: Operations) -> int:
        async def one(token_id: str) -> str:
            with suppress(*([NotFound] if token_id in bound else [])):  # revoked with another of these
                await operations.access.revoke_token(token_id)
            return f"{safe(token_id)}  revoked"

        return await act_on_each(ids, one)

    exit_if_failed(target.operations(act))


def _find(tokens: Sequence[TokenView], name: str) -> TokenView:
    """By id, or by a name that only one token has."""
    found = [one for one in tokens if one.id == name] or [one for one in tokens if one.name == name]
    if not found:
        raise NotFound(f"no token {name!r}. See rota token list")
    if len(found) > 1:
        ids = ", ".join(one.id for one in found)
        raise click.UsageError(f"{len(found)} tokens have the name {safe(name)}: give the id, one of {ids}.")
    return found[0]


def _effects(token: TokenView, tokens: Sequence[TokenView], now: datetime) -> list[str]:
    lines = [_effect(token, now)]
    lines += [f"  with it: {_effect(one, now)}" for one in bound_to(token.id, tokens)]
    author = f"token:{token.name}#{token.id}" if token.name else f"token:{token.id}"
    kept = [one for one in tokens if one.created_by == author and one.ends_with is None]
    if kept:
        lines.append(f"  created by it, and kept: {', '.join(safe(one.name or one.id) for one in kept)}")
    return lines


def bound_to(id: str, tokens: Sequence[TokenView]) -> list[TokenView]:
    """The tokens that are revoked with this one."""
    direct = [one for one in tokens if one.ends_with == id]
    return [found for one in direct for found in (one, *bound_to(one.id, tokens))]


def _effect(token: TokenView, now: datetime) -> str:
    used = (
        "never used" if token.last_used_at is None else f"last used {relative_time(token.last_used_at, now)}"
    )
    name = f" ({safe(token.name)})" if token.name else ""
    return f"{safe(token.id)}{name}, {describe_access(token)}, {used}: requests with it will be denied."
