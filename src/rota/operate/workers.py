"""The workers, read from what they say of themselves."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ..core.jobs.why import WorkerFacts
from ..model import Document
from ..runtime.clock import Clock
from ..store.protocol import Store
from ..worker.maintenance import is_live
from .views import WorkerView


async def live_workers(store: Store, clock: Clock, lease_s: float) -> list[WorkerFacts]:
    """Those that may run a job now: alive, and not about to stop."""
    return [
        WorkerFacts(
            id=view.id,
            tasks=view.tasks,
            queues=view.queues,
            exclude_queues=view.exclude_queues,
            concurrency=view.concurrency,
            running=view.running,
        )
        for view in await worker_views(store, clock, lease_s)
        if view.state not in ("lost", "draining")
    ]


async def worker_views(store: Store, clock: Clock, lease_s: float) -> list[WorkerView]:
    """Workers heard of lately, the live ones first."""
    views = [_view(document, is_live(document, clock, lease_s)) for document in await store.find("worker")]
    return sorted(views, key=lambda view: (view.state == "lost", view.id))


def said(document: Document) -> dict[str, Any]:
    """What a worker wrote; a document that somebody spoiled is empty, not fatal."""
    try:
        found = msgspec.json.decode(document.body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _view(document: Document, alive: bool) -> WorkerView:
    told = said(document)
    return WorkerView(
        id=document.key,
        name=told.get("name"),
        host=str(told.get("host", "?")),
        pid=int(told.get("pid", 0)),
        state=str(told.get("state", "running")) if alive else "lost",
        queues=tuple(told["queues"]) if told.get("queues") is not None else None,
        exclude_queues=tuple(told.get("exclude_queues", ())),
        tasks=tuple(told.get("tasks", ())),
        concurrency=int(told.get("concurrency", 1)),
        running=int(told.get("running", 0)),
        finished=int(told.get("finished", 0)),
        started_at=_instant(told.get("started_at")),
        seen_at=document.updated_at,
        version=told.get("version"),
    )


def _instant(text: Any) -> datetime | None:
    try:
        return msgspec.convert(text, datetime | None)
    except msgspec.ValidationError:
        return None
