"""``rota limits``: what may run at once and how fast, what is in use of it, and changing it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from ...errors import NotFound
from ...model import Page
from ...operate import Operations
from ...operate.requests import PutLimitRequest
from ...operate.views import LimitView
from ...terminal.text import json_text, safe, style
from ..parts.limit_detail import fill_text, limit_text, next_text, source_text, tokens_text
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import json_option
from ..parts.target import Target, pass_target, store_time, target_options


def _name(limit: LimitView, now: datetime) -> str:
    return style(safe(limit.name), "yellow") if limit.is_full else safe(limit.name)


COLUMNS: Columns[LimitView] = (
    ListColumn("LIMIT", _name, yields=2),
    ListColumn("RUNNING", lambda limit, now: fill_text(limit)),
    ListColumn("RATE", lambda limit, now: safe(limit.rate or "–")),
    ListColumn("LEFT", lambda limit, now: tokens_text(limit), right=True),
    ListColumn("NEXT", lambda limit, now: next_text(limit, now), yields=3, right=True),
    ListColumn("WAITING", lambda limit, now: f"{limit.waiting_lanes:,}", right=True),
    ListColumn("SET BY", lambda limit, now: source_text(limit), yields=1),
)


@click.group()
def limits() -> None:
    """List limits, show what is in use of them, set and drop them.

    A limit is for queue:NAME, task:NAME, tenant:NAME, key:NAME, or for each key of a family, key:PREFIX*.
    """


@listing(limits, COLUMNS, empty="No limit is set: rota limits set queue:mail --running 40 sets one.")
async def list_limits(operations: Operations) -> Page[LimitView]:
    """List limits and what is in use of each, by name.

    LEFT are the units of the rate that could begin now, NEXT is when the next one can. WAITING counts the
    lanes of jobs that the limit holds up. SET BY is the code, or run time with what the code says.
    """
    return await operations.limits.list()


@limits.command()
@click.argument("name")
@json_option(what="the limit")
@target_options
@pass_target
def show(target: Target, name: str, as_json: bool) -> None:
    """Show one limit, or one key of a family: what is in use, and the jobs that hold it."""

    async def ask(operations: Operations) -> Any:
        return await operations.limits.show(name), await store_time(operations)

    limit, now = target.operations(ask)
    click.echo(json_text(limit) if as_json else limit_text(limit, now))


@limits.command(name="set")
@click.argument("name")
@click.option("--running", type=int, metavar="NUMBER", help="Jobs that may run at once.")
@click.option("--rate", metavar="UNITS/TIME", help="Units that may begin per time: 10/s, 100/m, 1/10s.")
@click.option("--burst", type=int, metavar="UNITS",
              help="Units that may begin at once.  [default: those of a second, at least 1]")  # fmt: skip
@click.option("--strict", is_flag=True,
              help="For keys: a job that waits for its retry holds up the others of its key.")  # fmt: skip
@json_option(what="the limit")
@target_options
@pass_target
def set_limit(
    target: Target, name: str, running: int | None, rate: str | None, burst: int | None, strict: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Set the limit NAME; it replaces the one there is, and is in force at once.

    NAME is queue:NAME, task:NAME, tenant:NAME, key:NAME or key:PREFIX*. Running jobs continue and count.
    """
    if running is None and rate is None:
        raise click.UsageError("nothing to limit: give --running, --rate or both.")
    request = PutLimitRequest(running=running, rate=rate, burst=burst, strict=strict)

    async def put(operations: Operations) -> Any:
        return await operations.limits.set(name, request), await store_time(operations)

    limit, now = target.operations(put)
    if limit.warning is not None:
        click.echo(f"{style('!', 'yellow')} {safe(limit.warning)}", err=True)
    click.echo(json_text(limit) if as_json else limit_text(limit, now))


@limits.command()
@click.argument("name")
@json_option(what="the limit that the code declares, or null")
@target_options
@pass_target
def drop(target: Target, name: str, as_json: bool) -> None:
    """Delete the limit set at run time. The one that the code declares holds again."""

    async def act(operations: Operations) -> LimitView | None:
        await operations.limits.drop(name)
        try:
            left = await operations.limits.show(name)
        except NotFound:
            return None
        return left if left.rule == left.name else None  # not the family of a key

    left = target.operations(act)
    if as_json:
        click.echo(json_text(left))
        return
    code = "" if left is None else " The limit of the code holds again."
    click.echo(f"Dropped limit {safe(name)}.{code}")
