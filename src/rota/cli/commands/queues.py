"""``rota queues``: depth, throughput and pauses of each queue."""

from __future__ import annotations

import click

from ...model import Page
from ...operate import Operations
from ...operate.views import QueueView
from ...terminal.text import rate, safe, short_duration
from ..parts.lists import Columns, ListColumn, listing
from ..parts.pause_options import add_pause_commands, paused_column

COLUMNS: Columns[QueueView] = (
    ListColumn("QUEUE", lambda queue, now: safe(queue.name), yields=2),
    ListColumn("DUE", lambda queue, now: str(queue.due), right=True),
    ListColumn("LATER", lambda queue, now: str(queue.due_later), right=True),
    ListColumn("RUNNING", lambda queue, now: str(queue.running), right=True),
    ListColumn("OLDEST DUE", lambda queue, now: short_duration(queue.oldest_due_s), right=True),
    ListColumn("PER MIN", lambda queue, now: rate(queue.per_minute), right=True),
    ListColumn("FAILED", lambda queue, now: rate(queue.failed_per_minute), right=True),
    ListColumn("WORKERS", lambda queue, now: str(queue.workers), right=True),
    paused_column(),
)


@click.group()
def queues() -> None:
    """List, pause and resume queues."""


@listing(queues, COLUMNS, empty="No queue is in use: a queue appears as soon as a job names it.")
async def list_queues(operations: Operations) -> Page[QueueView]:
    """List queues in use, by name.

    PER MIN and FAILED count jobs finished and failed per minute, over the last ten minutes.
    """
    return await operations.system.queues()


add_pause_commands(queues, "queue")
