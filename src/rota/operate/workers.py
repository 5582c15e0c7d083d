"""Workers, read from the documents that they write about themselves. Never writes one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ..core.jobs.why import WorkerFacts
from ..model import Document
from ..runtime.clock import Clock
from ..runtime.service_records import ServiceStatus
from ..store.protocol import Store
from ..worker.unknown_tasks import is_live
from .views import ServiceView, WorkerView


async def live_workers(store: Store, clock: Clock, lease_s: float) -> list[WorkerFacts]:
    """Workers that can start a job now: not lost and not draining."""
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
    """Workers seen recently, running ones first."""
    views = [
        _view(document, is_live(document, clock, lease_s)) for document in await store.documents("worker")
    ]
    return sorted(views, key=lambda view: (view.state == "lost", view.id))


def worker_record(document: Document) -> dict[str, Any]:
    """The document of a worker; an invalid one counts as empty."""
    try:
        found = msgspec.json.decode(document.body)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _view(document: Document, is_seen: bool) -> WorkerView:
    record = worker_record(document)
    return WorkerView(
        id=document.key,
        name=record.get("name"),
        host=str(record.get("host", "?")),
        pid=int(record.get("pid", 0)),
        state=str(record.get("state", "running")) if is_seen else "lost",
        queues=tuple(record["queues"]) if record.get("queues") is not None else None,
        exclude_queues=tuple(record.get("exclude_queues", ())),
        tasks=tuple(record.get("tasks", ())),
        concurrency=int(record.get("concurrency", 1)),
        running=int(record.get("running", 0)),
        finished=int(record.get("finished", 0)),
        started_at=_timestamp(record.get("started_at")),
        seen_at=document.updated_at,
        version=record.get("version"),
        services=tuple(
            ServiceView(name=one.name, state=one.state, succeeded_at=one.succeeded_at)
            for one in service_statuses(record)
        ),
    )


def service_statuses(record: Mapping[str, Any]) -> Sequence[ServiceStatus]:
    """Of a worker's document; none if it is of another version or edited by hand."""
    try:
        return msgspec.convert(record.get("services", ()), tuple[ServiceStatus, ...])
    except msgspec.ValidationError:
        return ()


def _timestamp(text: Any) -> datetime | None:
    try:
        return msgspec.convert(text, datetime | None)
    except msgspec.ValidationError:
        return None
