"""``rota stats``: counts by state and queue, and tasks that no worker has."""

from __future__ import annotations

from collections.abc import Mapping

import click
import msgspec

from ...model import QueueDepth, State
from ...operate import Operations
from ...operate.views import Stats
from ...terminal import table
from ...terminal.text import json_text, safe, short_duration, state, style
from ..parts.options import json_option
from ..parts.target import Target, pass_target, target_options
from ..parts.unserved import unserved_lines, unserved_tasks
from ..parts.watch_option import watchable

QUEUES = (
    table.Column("QUEUE", yields=1),
    table.Column("DUE", right=True),
    table.Column("LATER", right=True),
    table.Column("RUNNING", right=True),
    table.Column("OLDEST DUE", right=True),
)


@click.command()
@watchable
@json_option(what="the counts and the unserved tasks")
@target_options
@pass_target
def stats(target: Target, as_json: bool) -> None:
    """Show counts by state, the oldest due job and the depth of each queue."""
    counts, unserved = target.operations(_fetch)
    if as_json:
        click.echo(json_text({**msgspec.to_builtins(counts), "unserved": unserved}))
        return
    _echo_counts(counts)
    _echo_queues(counts.queues)
    for line in unserved_lines(unserved):
        click.echo(f"\n{style(f'! {line}', 'yellow')}")


async def _fetch(operations: Operations) -> tuple[Stats, Mapping[str, int]]:
    return await operations.system.stats(), await unserved_tasks(operations)


def _echo_counts(stats: Stats) -> None:
    if stats.paused:
        click.echo(f"{style('Everything is paused: no job starts until rota resume.', 'yellow')}\n")
    for name in State:
        label = state(name)
        count = f"{'≈' if name in stats.estimated else ''}{getattr(stats, name)}"
        click.echo(f"{label}{' ' * (12 - table.width(label))}{count:>10}")
    oldest = stats.oldest_due_s
    click.echo(f"\noldest due job: {'none' if oldest is None else short_duration(oldest)}")


def _echo_queues(queues: Mapping[str, QueueDepth]) -> None:
    if not queues:
        return
    click.echo()
    table.print_table(QUEUES, [_queue(name, depth) for name, depth in sorted(queues.items())])


def _queue(name: str, depth: QueueDepth) -> tuple[str, ...]:
    counts = (depth.due, depth.due_later, depth.running)
    return (safe(name), *map(str, counts), short_duration(depth.oldest_due_s))
