"""``rota workers``: who runs jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import click

from .. import operate
from ..app import Rota
from . import table
from .target import Target, pass_target, target_options
from .text import json_text, safe, state, when

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
@click.option("--json", "as_json", is_flag=True, help='One object: {"items": […], "next": null}.')
@target_options
@pass_target
def list_(target: Target, as_json: bool) -> None:
    """Workers heard of lately, the live ones first."""

    async def ask(app: Rota) -> tuple[list[dict[str, Any]], datetime]:
        store = await app.stores.get()
        return await operate.workers(store, app.clock, app.settings.lease_duration_s), app.clock.now()

    rows, now = target.ask(ask)
    if as_json:
        click.echo(json_text({"items": rows, "next": None}))
    elif rows:
        table.show(COLUMNS, [_row(row, now) for row in rows])
    else:
        click.echo("No worker is alive. Start one: rota worker --app MODULE:APP")


def _row(row: Mapping[str, Any], now: datetime) -> tuple[str, ...]:
    since = row.get("started_at")
    return (
        safe(row["id"]),
        state(str(row["state"])),
        f"{row.get('running', 0)}/{row.get('concurrency', '?')}",
        str(row.get("finished", 0)),
        safe(", ".join(row.get("queues") or ()) or "all"),
        safe(", ".join(row.get("tasks") or ())),
        when(datetime.fromisoformat(since), now) if isinstance(since, str) else "–",
        when(row["seen_at"], now),
    )
