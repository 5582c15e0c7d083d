"""``rota stats``: how much of what there is, and what nobody will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import click
import msgspec

from ...model import QueueDepth, State
from ...operate import Operations
from ...operate.requests import MOST, JobsRequest
from ...operate.views import Stats
from ...terminal import table
from ...terminal.text import json_text, plural, safe, short_duration, state, style
from ..parts.target import Target, pass_target, store_time, target_options
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
@click.option("--json", "as_json", is_flag=True, help="The same as one object.")
@target_options
@pass_target
def stats(target: Target, as_json: bool) -> None:
    """Counts by state, the age of the oldest due job, the depth of each queue."""

    told, missing = target.operations(_ask)
    if as_json:
        click.echo(json_text({**msgspec.to_builtins(told), "unserved": missing}))
        return
    _counts(told)
    _queues(told.queues)
    for line in unserved_lines(missing):
        click.echo(f"\n{style(line, 'yellow')}")


async def _ask(operations: Operations) -> tuple[Stats, Mapping[str, int]]:
    return await operations.system.stats(), await unserved(operations)


async def unserved(operations: Operations) -> Mapping[str, int]:
    """Tasks that no live worker knows, with how many of the oldest due jobs wait for them."""
    if "read.shared" not in (await operations.system.me()).permissions:  # a tenant's own token
        return {}
    workers = (await operations.system.workers()).items
    known = {task for worker in workers if worker.state != "lost" for task in worker.tasks}
    page = await operations.jobs.list(JobsRequest(state=(State.QUEUED,), order="oldest", limit=MOST))
    now = await store_time(operations)
    return Counter(job.task for job in page.items if job.run_at <= now and job.task not in known)


def _counts(told: Stats) -> None:
    if told.paused:
        click.echo(f"{style('Everything is paused: no job starts. Go on with rota resume.', 'yellow')}\n")
    for name in State:
        label = state(name)
        count = f"{'≈' if name in told.estimated else ''}{getattr(told, name)}"
        click.echo(f"{label}{' ' * (12 - table.width(label))}{count:>10}")
    oldest = told.oldest_due_s
    click.echo(f"\noldest due job: {'none is due' if oldest is None else short_duration(oldest)}")


def _queues(queues: Mapping[str, QueueDepth]) -> None:
    if not queues:
        return
    click.echo()
    table.print_table(QUEUES, [_queue(name, depth) for name, depth in sorted(queues.items())])


def _queue(name: str, depth: QueueDepth) -> tuple[str, ...]:
    oldest = "–" if depth.oldest_due_s is None else short_duration(depth.oldest_due_s)
    return (safe(name), str(depth.queued), str(depth.scheduled), str(depth.running), oldest)


def unserved_lines(unserved: Mapping[str, int]) -> list[str]:
    return [
        f"! no live worker knows task {safe(task)}: {plural(count, 'due job')} or more wait for one that does"
        for task, count in sorted(unserved.items())
    ]
