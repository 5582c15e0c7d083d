"""``rota tasks``: what the live workers know how to do, and how long it takes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ...model import Page
from ...operate.views import TaskView
from ...terminal import table
from ...terminal.text import json_text, safe, short_duration
from ..parts.pause_options import add_pausing, paused_cell
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable
from .queues import rate

if TYPE_CHECKING:
    from ...operate import Operations

COLUMNS = (
    table.Column("TASK", yields=2),
    table.Column("PER MIN", right=True),
    table.Column("FAILED", right=True),
    table.Column("P50", right=True),
    table.Column("P95", right=True),
    table.Column("P99", right=True),
    table.Column("WORKERS", right=True),
    table.Column("PAUSED", yields=1),
)


@click.group()
def tasks() -> None:
    """What live workers know how to do: pace, durations, pauses."""


@tasks.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """Each task that a live worker knows or that ran lately, by name.

    Ended and failed per minute over the last ten; durations of the newest runs that succeeded.
    """

    async def ask(operations: Operations) -> tuple[Page[TaskView], datetime]:
        return await operations.system.tasks(), await store_time(operations)

    page, now = target.operations(ask)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(task, now) for task in page.items])
    else:
        click.echo("No live worker knows a task. Start one: rota worker --app MODULE:APP")


def _row(task: TaskView, now: datetime) -> tuple[str, ...]:
    return (
        safe(task.name),
        rate(task.per_minute),
        rate(task.failed_per_minute),
        *("–" if ms is None else short_duration(ms / 1000) for ms in (task.p50_ms, task.p95_ms, task.p99_ms)),
        str(task.workers),
        paused_cell(task.gate, now),
    )


add_pausing(tasks, "task")
