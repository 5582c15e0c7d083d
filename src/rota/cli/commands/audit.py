"""``rota audit``: who did what to which object, and with which result."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import click
from msgspec.structs import replace

from ...core.plurals import plural
from ...model import AuditResult, Page
from ...operate import Operations
from ...operate.requests import MOST, AuditRequest, VerifyAuditRequest
from ...operate.views import AuditVerification, AuditView
from ...terminal.text import json_text, relative_time, safe, style, utc_time
from ..parts.atomic_file import atomic_file
from ..parts.exit_codes import FAILED
from ..parts.lists import Columns, ListColumn, listing
from ..parts.options import json_option
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.time_parsing import resolve_when, when_option

COLOURS = {"denied": "yellow", "failed": "red"}
COLUMNS: Columns[AuditView] = (
    ListColumn("AT", lambda entry, now: utc_time(entry.at)),
    ListColumn("", lambda entry, now: relative_time(entry.at, now), yields=5),
    ListColumn("ACTOR", lambda entry, now: safe(entry.actor), yields=4),
    ListColumn("ACTION", lambda entry, now: safe(entry.action)),
    ListColumn("OBJECT", lambda entry, now: safe(entry.object or "–"), yields=3),
    ListColumn("RESULT", lambda entry, now: style(safe(entry.result), COLOURS.get(entry.result))),
    ListColumn("VIA", lambda entry, now: safe(entry.via), yields=2),
    ListColumn("MESSAGE", lambda entry, now: safe(entry.message or "")[:200], yields=1),
)
since_option = when_option("since", "Not older than")
until_option = when_option("until", "Only older than")


@click.group()
def audit() -> None:
    """List, export and verify the audit log."""


@listing(audit, COLUMNS, paged=True, empty="No audit entries yet.", no_match="No audit entry matches.")
@click.option("--actor", metavar="NAME", help="Only entries of this actor.")
@click.option(
    "--action", metavar="NAME", help="Only this action (job.cancel), or a prefix ending in a dot (job.)."
)
@click.option("--object", "object_", metavar="ID", help="Only this object: job:ID, queue:mail.")
@click.option("--tenant", help="Only this tenant.")
@click.option("--result", type=click.Choice(get_args(AuditResult)), help="Only this result.")
@since_option
@until_option
async def list_entries(operations: Operations, /, object_: str | None, **given: Any) -> Page[AuditView]:
    """List audit entries, newest first."""
    return await operations.system.audit(_request(given, await store_time(operations), object=object_))


def _request(given: dict[str, Any], now: datetime, **more: Any) -> AuditRequest:
    times = {name: resolve_when(given[name], now) for name in ("since", "until") if given[name] is not None}
    return parse_request(AuditRequest, **{**given, **times, **more})


@audit.command()
@click.option(
    "--expect-head", metavar="NUMBER:DIGEST", help="A head that was noted earlier: the log must contain it."
)
@json_option(
    "ok", "head", "seals", "entries", "late", "pruned_until", "unsealed", "oldest_unsealed_at", "problems"
)
@target_options
@pass_target
def verify(target: Target, expect_head: str | None, as_json: bool) -> None:
    """Check the hash chain of the audit log for changed, removed or forged entries.

    Note the head it prints in another place, and compare with it later: --expect-head. Exit codes: 0 the log
    is intact, 1 it is not.
    """
    result = target.operations(lambda operations: _verify(operations, expect_head))
    click.echo(json_text(result) if as_json else _verification(result))
    raise SystemExit(0 if result.ok else FAILED)


async def _verify(operations: Operations, expect_head: str | None) -> AuditVerification:
    """All seals, some at a time."""
    request = parse_request(VerifyAuditRequest, expect_head=expect_head)
    total = result = await operations.system.verify_audit(request)
    while result.next is not None:
        result = await operations.system.verify_audit(replace(request, after=result.next))
        total = replace(
            result,
            seals=total.seals + result.seals,
            entries=total.entries + result.entries,
            late=total.late + result.late,
            problems=total.problems + result.problems,
            ok=total.ok and result.ok,
        )
    return total


def _verification(result: AuditVerification) -> str:
    lines = [style(f"✗ seal {one.seal}: {safe(one.text)}", "red") for one in result.problems]
    intact = f"{_entries(result.entries)} under {plural(result.seals, 'seal')}"
    lines.append(f"{style('✓', 'green')} {intact} are intact" if result.ok else f"{intact} were checked")
    if result.pruned_until is not None:
        lines.append(f"Entries up to seal {result.pruned_until} were deleted by age.")
    if result.late:
        lines.append(
            f"{_entries(result.late)} got their seal long after their time: backdated, or slow to commit."
        )
    if result.unsealed and result.oldest_unsealed_at is not None:
        oldest = utc_time(result.oldest_unsealed_at)
        lines.append(f"Not sealed yet: {_entries(result.unsealed)}, the oldest of {oldest}.")
    lines.append(f"Head: {result.head or 'none yet'}")
    return "\n".join(lines)


def _entries(count: int) -> str:
    return f"{count:,} {'entry' if count == 1 else 'entries'}"


@audit.command()
@since_option
@until_option
@click.option("--output", "-o", metavar="FILE", default="-",
              help="File to write, readable only by you.  [default: stdout]")  # fmt: skip
@target_options
@pass_target
def export(target: Target, since: str | None, until: str | None, output: str) -> None:
    """Export all audit entries, newest first: one JSON object per line."""
    if output == "-":
        target.operations(_exporter(since, until, click.echo, lambda count, back_to: None))
        return
    has_counter = sys.stderr.isatty()
    with atomic_file(Path(output)) as file:
        count = target.operations(
            _exporter(
                since,
                until,
                lambda line: file.write(f"{line}\n"),
                _show_count if has_counter else lambda count, back_to: None,
            )
        )
    if has_counter:
        click.echo("\r\x1b[K", err=True, nl=False)
    click.echo(f"{_entries(count)} in {safe(output)}", err=True)


def _exporter(
    since: str | None,
    until: str | None,
    write: Callable[[str], object],
    progress: Callable[[int, datetime], object],
) -> Callable[[Operations], Awaitable[int]]:
    """Writes page after page; returns the number of entries."""

    async def run(operations: Operations) -> int:
        now = await store_time(operations)
        count, cursor = 0, None
        while True:
            request = _request({"since": since, "until": until}, now, limit=MOST, cursor=cursor)
            page = await operations.system.audit(request)
            for entry in page.items:
                write(json_text(entry))
            count += len(page.items)
            if page.items:
                progress(count, page.items[-1].at)
            if (cursor := page.next) is None:
                return count

    return run


def _show_count(count: int, back_to: datetime) -> None:
    """Progress on one line of the terminal; the total is unknown."""
    click.echo(f"\r{count:,} entries, back to {utc_time(back_to)}\x1b[K", err=True, nl=False)
