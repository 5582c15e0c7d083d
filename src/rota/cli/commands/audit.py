"""``rota audit``: who did what to which object, and how it ended."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from ...model import Page
from ...operate.requests import MOST, AuditRequest
from ...operate.views import AuditView
from ...terminal import table
from ...terminal.text import json_text, plural, relative_time, safe, style, utc_time
from ..parts.paging import echo_next_page
from ..parts.private_file import private_file
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, target_options
from ..parts.time_parsing import parse_when
from ..parts.watch_option import watchable

if TYPE_CHECKING:
    from ...operate import Operations

COLOURS = {"refused": "yellow", "failed": "red"}
COLUMNS = (
    table.Column("AT"),
    table.Column("", yields=5),
    table.Column("WHO", yields=4),
    table.Column("ACTION"),
    table.Column("OBJECT", yields=3),
    table.Column("RESULT"),
    table.Column("VIA", yields=2),
    table.Column("MESSAGE", yields=1),
)


def _checked(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """What is no moment is told at once; the text stays, as the store's time is not known yet."""
    if value is not None:
        parse_when(value)
    return value


@click.group()
def audit() -> None:
    """Who did what, and how it ended."""


@audit.command("list")
@watchable
@click.option("--actor", metavar="NAME", help="Only what this one did.")
@click.option("--action", metavar="NAME", help="Only this action; job. means all that begin so.")
@click.option("--object", "object_", metavar="ID", help="Only what was done to this: job:ID, queue:mail.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--result", type=click.Choice(("done", "refused", "failed")), help="Only what ended so.")
@click.option("--since", callback=_checked, metavar="WHEN", help="Not older: 2h, or 2030-01-31T08:00Z.")
@click.option("--until", callback=_checked, metavar="WHEN", help="Only older: 2h, or 2030-01-31T08:00Z.")
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="At most so many.")
@click.option("--cursor", help="Go on where a page ended.")
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": cursor or null}.')
@target_options
@pass_target
@click.pass_context
def list_(ctx: click.Context, target: Target, /, object_: str | None, as_json: bool, **given: Any) -> None:
    """Lines of the audit log, the newest first."""

    async def ask(operations: Operations) -> tuple[Page[AuditView], datetime]:
        now = (await operations.system.stats()).now
        return await operations.system.audit(_ask(given, now, object=object_)), now

    page, now = target.operations(ask)
    if as_json:
        click.echo(json_text(page))
        return
    if page.items:
        table.print_table(COLUMNS, [_row(line, now) for line in page.items])
    else:
        click.echo("No line of the audit log matches.")
    echo_next_page(ctx, target, page.next)


def _ask(given: dict[str, Any], now: datetime, **more: Any) -> AuditRequest:
    times = {name: _at(given[name], now) for name in ("since", "until")}
    return parse_request(AuditRequest, **{**given, **times, **more})


def _at(said: str | None, now: datetime) -> datetime | None:
    found = None if said is None else parse_when(said)
    try:
        return now - found if isinstance(found, timedelta) else found
    except OverflowError:
        raise click.UsageError(f"{said!r} is longer ago than time goes back.") from None


def _row(line: AuditView, now: datetime) -> tuple[str, ...]:
    return (
        utc_time(line.at),
        relative_time(line.at, now),
        safe(line.actor),
        safe(line.action),
        safe(line.object or "–"),
        style(safe(line.result), COLOURS.get(line.result)),
        safe(line.via),
        safe(line.message or "")[:200],
    )


@audit.command()
@click.option("--since", callback=_checked, metavar="WHEN", help="Not older: 30d, or 2030-01-31T08:00Z.")
@click.option("--until", callback=_checked, metavar="WHEN", help="Only older: 2h, or 2030-01-31T08:00Z.")
@click.option("--output", "-o", metavar="FILE", default="-", help="For your eyes only.  [default: stdout]")
@target_options
@pass_target
def export(target: Target, since: str | None, until: str | None, output: str) -> None:
    """All lines as JSON, one object each, the newest first."""
    told = _Counter() if output != "-" and sys.stderr.isatty() else None
    if output == "-":
        target.operations(_exporting(since, until, click.echo, told))
        return
    with private_file(output) as file:
        count = target.operations(_exporting(since, until, lambda line: file.write(f"{line}\n"), told))
    if told is not None:
        told.clear()
    click.echo(f"{plural(count, 'line')} in {safe(output)}", err=True)


def _exporting(
    since: str | None, until: str | None, write: Callable[[str], object], told: _Counter | None
) -> Callable[[Operations], Awaitable[int]]:
    """Writes page after page; how many lines they were."""

    async def go(operations: Operations) -> int:
        now = (await operations.system.stats()).now
        count, cursor = 0, None
        while True:
            ask = _ask({"since": since, "until": until}, now, limit=MOST, cursor=cursor)
            page = await operations.system.audit(ask)
            for line in page.items:
                write(json_text(line))
            count += len(page.items)
            if told is not None and page.items:
                told.show(count, page.items[-1].at)
            if (cursor := page.next) is None:
                return count

    return go


class _Counter:
    """How far an export has come, on one line of the terminal: how much is left nobody knows."""

    def show(self, count: int, back_to: datetime) -> None:
        click.echo(f"\r{plural(count, 'line')}, back to {utc_time(back_to)}\x1b[K", err=True, nl=False)

    def clear(self) -> None:
        click.echo("\r\x1b[K", err=True, nl=False)
