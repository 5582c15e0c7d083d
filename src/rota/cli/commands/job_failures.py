"""``rota jobs failures``: failed jobs by what went wrong."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from ...operate import Operations
from ...operate.requests import MOST, FailuresRequest
from ...operate.views import FailureGroup, FailureGroups
from ...terminal import table
from ...terminal.text import json_text, plural, relative_time, safe
from ..parts.job_filters import selector_fields, time_filter
from ..parts.request_parsing import parse_request
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

COLUMNS = (
    table.Column("JOBS", right=True),
    table.Column("TASK", yields=4),
    table.Column("ERROR", yields=3),
    table.Column("FIRST", yields=1),
    table.Column("LAST", yields=2),
    table.Column("NEWEST JOB"),
)


@click.command()
@watchable
@click.option("--task", help="Only this task.")
@click.option("--queue", help="Only this queue.")
@click.option("--tenant", help="Only this tenant.")
@time_filter("since", "Made since")
@time_filter("until", "Made before")
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=20, show_default=True, help="At most so many kinds."
)
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "groups": …, "of": …}.')
@target_options
@pass_target
def failures(target: Target, /, as_json: bool, **given: Any) -> None:
    """Failed jobs by what went wrong: errors that differ in numbers and quoted names alone are one."""
    said = {name: value for name, value in given.items() if value is not None}

    async def look(operations: Operations) -> tuple[FailureGroups, datetime]:
        ask = parse_request(FailuresRequest, **await selector_fields(operations, said))
        return await operations.jobs.failures(ask), await store_time(operations)

    found, now = target.operations(look)
    if as_json:
        click.echo(json_text(found))
    elif not found.items:
        click.echo("No job has failed for good.")
    else:
        table.print_table(COLUMNS, [_row(one, now) for one in found.items])
        click.echo(f"\n{_whole(found)}", err=True)


def _row(one: FailureGroup, now: datetime) -> tuple[str, ...]:
    error = safe(": ".join(filter(None, (one.type, one.pattern))))[:200] or "no error was stored"
    return (
        f"{one.count:,}",
        safe(one.task),
        error,
        relative_time(one.first_at, now),
        relative_time(one.last_at, now),
        one.newest,
    )


def _whole(found: FailureGroups) -> str:
    """Of how many jobs this is told, and what was left out."""
    jobs = f"the newest {found.of:,} failed jobs" if found.more else plural(found.of, "failed job")
    left = found.groups - len(found.items)
    more = f" {plural(left, 'more kind')} of failure: --limit shows them." if left else ""
    return f"Of {jobs}.{more} One of them: rota jobs show ID"
