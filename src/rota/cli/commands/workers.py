"""``rota workers``: the processes that run jobs."""

from __future__ import annotations

import click

from ...model import Page
from ...operate import Operations
from ...operate.views import WorkerView
from ...terminal.text import relative_time, safe, state
from ..parts.lists import Columns, ListColumn, listing


def _queues(worker: WorkerView) -> str:
    served = "all" if worker.queues is None else ", ".join(worker.queues)
    return f"{served} except {', '.join(worker.exclude_queues)}" if worker.exclude_queues else served


def _services(worker: WorkerView) -> str:
    """The services that have not succeeded for too long."""
    if worker.state == "lost" or not worker.services:
        return "–"
    found = [f"{service.name} {service.state}" for service in worker.services if service.state != "ok"]
    return ", ".join(found) or "ok"


COLUMNS: Columns[WorkerView] = (
    ListColumn("ID", lambda worker, now: safe(worker.id), yields=4),
    ListColumn("STATE", lambda worker, now: state(worker.state)),
    ListColumn("RUNNING", lambda worker, now: f"{worker.running}/{worker.concurrency}", right=True),
    ListColumn("DONE", lambda worker, now: str(worker.finished), right=True),
    ListColumn("SERVICES", lambda worker, now: safe(_services(worker)), yields=5),
    ListColumn("QUEUES", lambda worker, now: safe(_queues(worker)), yields=2),
    ListColumn("TASKS", lambda worker, now: safe(", ".join(worker.tasks)), yields=1),
    ListColumn("STARTED", lambda worker, now: relative_time(worker.started_at, now), yields=3),
    ListColumn("LAST SEEN", lambda worker, now: relative_time(worker.seen_at, now)),
)


@click.group()
def workers() -> None:
    """List workers."""


@listing(workers, COLUMNS, empty="No worker is running. Start one: rota worker --app MODULE:APP")
async def list_workers(operations: Operations) -> Page[WorkerView]:
    """List workers seen recently, running ones first."""
    return await operations.system.workers()
