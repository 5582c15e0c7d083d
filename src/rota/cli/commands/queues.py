"""``rota queues``: where jobs wait, how fast they go, what is paused."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from ...model import Page
from ...operate.views import QueueView
from ...terminal import table
from ...terminal.text import json_text, safe, short_duration
from ..parts.pause_options import add_pausing, paused_cell
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

if TYPE_CHECKING:
    from ...operate import Operations

COLUMNS = (
    table.Column("QUEUE", yields=2),
    table.Column("DUE", right=True),
    table.Column("LATER", right=True),
    table.Column("RUNNING", right=True),
    table.Column("OLDEST DUE", right=True),
    table.Column("PER MIN", right=True),
    table.Column("FAILED", right=True),
    table.Column("WORKERS", right=True),
    table.Column("PAUSED", yields=1),
)


@click.group()
def queues() -> None:
    """Where jobs wait: depth, pace, pauses."""


@queues.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """Each queue in use, by name; jobs ended and failed per minute over the last ten."""

    async def ask(operations: Operations) -> tuple[Page[QueueView], datetime]:
        return await operations.system.queues(), await store_time(operations)

    page, now = target.operations(ask)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(queue, now) for queue in page.items])
    else:
        click.echo("No queue is in use: a queue is there as soon as a job names it.")


def _row(queue: QueueView, now: datetime) -> tuple[str, ...]:
    return (
        safe(queue.name),
        *(str(count) for count in (queue.queued, queue.scheduled, queue.running)),
        "–" if queue.oldest_due_s is None else short_duration(queue.oldest_due_s),
        rate(queue.per_minute),
        rate(queue.failed_per_minute),
        str(queue.workers),
        paused_cell(queue.gate, now),
    )


def rate(number: float) -> str:
    """Few digits: 0, <0.1, 0.3, 12, 4,800."""
    if 0 < number < 0.1:
        return "<0.1"
    return f"{number:,.0f}" if number >= 10 or number == 0 else f"{number:.1f}"


add_pausing(queues, "queue")
