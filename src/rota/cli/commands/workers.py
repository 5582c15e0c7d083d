"""``rota workers``: who runs jobs."""

from __future__ import annotations

from datetime import datetime

import click

from ...model import Page
from ...operate import Operations
from ...operate.views import WorkerView
from ...terminal import table
from ...terminal.text import json_text, relative_time, safe, state
from ..parts.target import Target, pass_target, store_time, target_options
from ..parts.watch_option import watchable

COLUMNS = (
    table.Column("ID", yields=4),
    table.Column("STATE"),
    table.Column("RUNNING", right=True),
    table.Column("DONE", right=True),
    table.Column("QUEUES", yields=2),
    table.Column("TASKS", yields=1),
    table.Column("UP SINCE", yields=3),
    table.Column("SEEN"),
)


@click.group()
def workers() -> None:
    """The workers that are alive."""


@workers.command("list")
@watchable
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """Workers heard of lately, the live ones first."""

    async def ask(operations: Operations) -> tuple[Page[WorkerView], datetime]:
        return await operations.system.workers(), await store_time(operations)

    page, now = target.operations(ask)
    if as_json:
        click.echo(json_text(page))
    elif page.items:
        table.print_table(COLUMNS, [_row(worker, now) for worker in page.items])
    else:
        click.echo("No worker is alive. Start one: rota worker --app MODULE:APP")


def _row(worker: WorkerView, now: datetime) -> tuple[str, ...]:
    return (
        safe(worker.id),
        state(worker.state),
        f"{worker.running}/{worker.concurrency}",
        str(worker.finished),
        safe(_queues(worker)),
        safe(", ".join(worker.tasks)),
        relative_time(worker.started_at, now),
        relative_time(worker.seen_at, now),
    )


def _queues(worker: WorkerView) -> str:
    served = "all" if worker.queues is None else ", ".join(worker.queues)
    return f"{served} but {', '.join(worker.exclude_queues)}" if worker.exclude_queues else served
