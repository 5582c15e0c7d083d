"""``rota tasks``: throughput, durations and pauses of each task."""

from __future__ import annotations

import click

from ...model import Page
from ...operate import Operations
from ...operate.views import TaskView
from ...terminal.text import rate, safe, short_duration
from ..parts.lists import Columns, ListColumn, listing
from ..parts.pause_options import add_pause_commands, paused_column


def _ms(value: float | None) -> str:
    return short_duration(None if value is None else value / 1000)


COLUMNS: Columns[TaskView] = (
    ListColumn("TASK", lambda task, now: safe(task.name), yields=2),
    ListColumn("PER MIN", lambda task, now: rate(task.per_minute), right=True),
    ListColumn("FAILED", lambda task, now: rate(task.failed_per_minute), right=True),
    ListColumn("P50", lambda task, now: _ms(task.p50_ms), right=True),
    ListColumn("P95", lambda task, now: _ms(task.p95_ms), right=True),
    ListColumn("P99", lambda task, now: _ms(task.p99_ms), right=True),
    ListColumn("WORKERS", lambda task, now: str(task.workers), right=True),
    paused_column(),
)


@click.group()
def tasks() -> None:
    """List, pause and resume tasks."""


@listing(tasks, COLUMNS, empty="No running worker has a task. Start one: rota worker --app MODULE:APP")
async def list_tasks(operations: Operations) -> Page[TaskView]:
    """List tasks that a running worker has or that ran recently, by name.

    PER MIN and FAILED count jobs finished and failed per minute, over the last ten minutes. P50, P95 and
    P99 are durations of the newest jobs that succeeded.
    """
    return await operations.system.tasks()


add_pause_commands(tasks, "task")
