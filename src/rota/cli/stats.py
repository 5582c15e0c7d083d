"""``rota stats``: how much of what there is, and what nobody will take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from .. import operate, upkeep
from ..app import Rota
from ..model import State
from . import table
from .target import Target, pass_target, target_options
from .text import json_text, plural, safe, span, state, style

QUEUES = (
    table.Column("QUEUE", yields=1),
    table.Column("DUE", right=True),
    table.Column("LATER", right=True),
    table.Column("RUNNING", right=True),
    table.Column("OLDEST DUE", right=True),
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="The same as one object.")
@target_options
@pass_target
def stats(target: Target, as_json: bool) -> None:
    """Counts by state, the age of the oldest due job, the depth of each queue."""

    async def ask(app: Rota) -> dict[str, Any]:
        store = await app.stores.get()
        missing = await upkeep.unserved(store, app.clock, app.settings.lease_duration_s)
        return {**await operate.stats(store, app.clock), "unserved": dict(missing)}

    told = target.ask(ask)
    if as_json:
        click.echo(json_text(told))
        return
    _counts(told)
    _queues(told["queues"])
    for line in unserved_lines(told["unserved"]):
        click.echo(f"\n{style(line, 'yellow')}")


def _counts(told: Mapping[str, Any]) -> None:
    for name in State:
        label = state(name)
        count = f"{'≈' if name in told['estimated'] else ''}{told[name]}"
        click.echo(f"{label}{' ' * (12 - table.width(label))}{count:>10}")
    oldest = told["oldest_due_s"]
    click.echo(f"\noldest due job: {'none is due' if oldest is None else span(oldest)}")


def _queues(queues: Mapping[str, Mapping[str, Any]]) -> None:
    if not queues:
        return
    click.echo()
    table.show(QUEUES, [_queue(name, depth) for name, depth in sorted(queues.items())])


def _queue(name: str, depth: Mapping[str, Any]) -> tuple[str, ...]:
    oldest = depth["oldest_due_s"]
    counts = (str(depth[key]) for key in ("queued", "scheduled", "running"))
    return (safe(name), *counts, "–" if oldest is None else span(oldest))


def unserved_lines(unserved: Mapping[str, int]) -> list[str]:
    return [
        f"! no live worker knows task {safe(task)}: {plural(count, 'due job')} or more wait for one that does"
        for task, count in sorted(unserved.items())
    ]
