"""Measures in Prometheus' text form. Nothing is counted here but the requests themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from ..core.jobs.gates import active
from ..model import PageRequest, ScheduleFilter, State
from ..operate import Operations
from ..operate.views import WorkerView
from ..operate.workers import said, worker_views

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SCHEDULES = 1000
Kind = Literal["gauge", "counter", "histogram"]


class PrometheusText:
    """Lines of measures, each family with its help and type said once."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def add(self, name: str, kind: Kind, help: str, value: float, /, **labels: str) -> None:
        self._family(name, kind, help).append(_line(name, labels, value))

    def histogram(self, name: str, help: str, told: Mapping[str, Any], /, **labels: str) -> None:
        """Of bounds and counts per bucket, which Prometheus wants summed up."""
        lines, total = self._family(name, "histogram", help), 0.0
        for bound, count in zip([*told["bounds"], "+Inf"], told["counts"], strict=True):
            total += count
            edge = bound if bound == "+Inf" else _number(bound)
            lines.append(_line(f"{name}_bucket", {**labels, "le": edge}, total))
        lines.append(_line(f"{name}_sum", labels, told["sum"]))
        lines.append(_line(f"{name}_count", labels, total))

    def __str__(self) -> str:
        return "".join(f"{line}\n" for lines in self._families.values() for line in lines)

    def _family(self, name: str, kind: Kind, help: str) -> list[str]:
        return self._families.setdefault(name, [f"# HELP {name} {help}", f"# TYPE {name} {kind}"])


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    told = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{told}}} {_number(value)}" if told else f"{name} {_number(value)}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


# --- what is measured ----------------------------------------------------------------------------


async def render(operations: Operations, requests: Mapping[str, int], listeners: int) -> str:
    """Everything, as text."""
    text = PrometheusText()
    await _jobs(text, operations)
    await _gates_and_schedules(text, operations)
    await _workers(text, operations)
    for name, value in sorted((await operations.store()).gauges.items()):
        text.add(f"rota_store_{_name(name)}", "gauge", "Of this process' own store.", value)
    for status, count in sorted(requests.items()):
        text.add("rota_http_requests_total", "counter", "HTTP requests answered.", count, status=status)
    text.add("rota_event_listeners", "gauge", "Open streams of events.", listeners)
    return str(text)


async def _jobs(text: PrometheusText, operations: Operations) -> None:
    stats = await operations.system.stats()
    for state in State:
        text.add("rota_jobs", "gauge", "Jobs by state.", getattr(stats, state), state=state)
    for queue, depth in sorted(stats.queues.items()):
        for kind in ("queued", "scheduled", "running"):
            text.add("rota_queue_jobs", "gauge", "Live jobs of a queue; queued ones are due.",
                     getattr(depth, kind), queue=queue, state=kind)  # fmt: skip
        text.add("rota_queue_oldest_due_seconds", "gauge", "Age of the oldest due job.",
                 depth.oldest_due_s or 0.0, queue=queue)  # fmt: skip


async def _gates_and_schedules(text: PrometheusText, operations: Operations) -> None:
    store, now = await operations.store(), operations.app.clock.now()
    by_scope = Counter(gate.scope for gate in active(await operations.gates.stored(), now))
    for scope in ("all", "queue", "task", "tenant", "schedule"):
        text.add("rota_gates", "gauge", "Gates that stand.", by_scope[scope], scope=scope)
    page = await store.schedules(ScheduleFilter(enabled=True), PageRequest(limit=MOST_SCHEDULES))
    late = max((_late(one.next_run_at, now) for one in page.items), default=0.0)
    text.add("rota_schedule_overdue_seconds", "gauge", "How long the latest schedule is overdue.", late)


def _late(next_run_at: datetime | None, now: datetime) -> float:
    return max((now - next_run_at).total_seconds(), 0.0) if next_run_at is not None else 0.0


async def _workers(text: PrometheusText, operations: Operations) -> None:
    store, app = await operations.store(), operations.app
    views = {view.id: view for view in await worker_views(store, app.clock, app.settings.lease_duration_s)}
    alive = [view for view in views.values() if view.state != "lost"]
    text.add("rota_workers", "gauge", "Workers that are alive.", len(alive))
    for document in await store.documents("worker"):
        if document.key in views and views[document.key].state != "lost":
            _worker(text, views[document.key], said(document).get("measures"))


HELP = {
    "claims": "Jobs claimed.",
    "runs": "Attempts that were settled, by outcome.",
    "fires": "Jobs that schedules made, by origin.",
    "outages": "Times the store went away.",
    "duration": "Seconds from the start of a task's code to its end.",
    "wait": "Seconds from the time a job was due to the start of its task's code.",
    "late": "Seconds from the time a schedule was due to its fire.",
}
BY = {"runs": "outcome", "fires": "origin"}


def _worker(text: PrometheusText, view: WorkerView, told: Any) -> None:
    """What a worker's document says under ``measures``: numbers, numbers by a label, histograms."""
    text.add("rota_worker_concurrency", "gauge", "Jobs at once.", view.concurrency, worker=view.id)
    text.add("rota_worker_running", "gauge", "Jobs that run.", view.running, worker=view.id)
    if not isinstance(told, dict):
        return
    for name, value in told.items():
        help = HELP.get(name, "As the worker tells it.")
        match value:
            case int() | float():
                text.add(f"rota_worker_{_name(name)}_total", "counter", help, value, worker=view.id)
            case {"bounds": [*bounds], "counts": [*counts], "sum": int() | float()} if (
                len(counts) == len(bounds) + 1
            ):
                text.histogram(f"rota_worker_{_name(name)}_seconds", help, value, worker=view.id)
            case dict() if "bounds" not in value:
                for label, count in _numbers(value):
                    labels = {"worker": view.id, BY.get(name, "kind"): label}
                    text.add(f"rota_worker_{_name(name)}_total", "counter", help, count, **labels)


def _numbers(told: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    return ((label, value) for label, value in told.items() if isinstance(value, int | float))


def _name(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in text.lower())
