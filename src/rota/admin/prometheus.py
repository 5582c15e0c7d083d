"""Metrics in the Prometheus text format. Reads what others counted, and counts nothing itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, get_args

from ..model import DepthByTenant, PageRequest, ScheduleFilter, Scope, State
from ..operate import Operations
from ..operate.views import WorkerView
from ..operate.views.limits import fullness
from ..operate.workers import worker_record, worker_views

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_SCHEDULES = 1000
MOST_LIMITS = 100
MOST_TENANTS = 100
MOST_COUNTED = 100_000  # live jobs
Kind = Literal["gauge", "counter", "histogram"]


class PrometheusText:
    """Lines of metrics, each family with its help and type once."""

    def __init__(self) -> None:
        self._families: dict[str, list[str]] = {}

    def add(self, name: str, kind: Kind, help: str, value: float, /, **labels: str) -> None:
        self._family(name, kind, help).append(_line(name, labels, value))

    def histogram(self, name: str, help: str, buckets: Mapping[str, Any], /, **labels: str) -> None:
        """From bounds and counts per bucket; Prometheus expects cumulative counts."""
        lines, total = self._family(name, "histogram", help), 0.0
        for bound, count in zip([*buckets["bounds"], "+Inf"], buckets["counts"], strict=True):
            total += count
            edge = bound if bound == "+Inf" else _number(bound)
            lines.append(_line(f"{name}_bucket", {**labels, "le": edge}, total))
        lines.append(_line(f"{name}_sum", labels, buckets["sum"]))
        lines.append(_line(f"{name}_count", labels, total))

    def __str__(self) -> str:
        return "".join(f"{line}\n" for lines in self._families.values() for line in lines)

    def _family(self, name: str, kind: Kind, help: str) -> list[str]:
        return self._families.setdefault(name, [f"# HELP {name} {help}", f"# TYPE {name} {kind}"])


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))


# --- metrics -------------------------------------------------------------------------------------


async def render(operations: Operations, requests: Mapping[str, int], listeners: int) -> str:
    """All metrics, as text."""
    text = PrometheusText()
    await _jobs(text, operations)
    await _tenants(text, operations)
    await _gates_and_schedules(text, operations)
    await _limits(text, operations)
    await _workers(text, operations)
    for name, value in sorted((await operations.store()).gauges.items()):
        text.add(f"rota_store_{_name(name)}", "gauge", "Of this process's own store object.", value)
    text.add("rota_store_event_loops", "gauge", "Event loops of this process with connections of their own.",
             operations.services.stores.loops)  # fmt: skip
    for status, count in sorted(requests.items()):
        text.add("rota_http_requests_total", "counter", "HTTP responses sent.", count, status=status)
    text.add("rota_event_listeners", "gauge", "Open streams of events.", listeners)
    return str(text)


async def _jobs(text: PrometheusText, operations: Operations) -> None:
    stats = await operations.system.stats()
    for state in State:
        text.add("rota_jobs", "gauge", "Jobs by state.", getattr(stats, state), state=state)
    for queue, depth in sorted(stats.queues.items()):
        for kind in ("due", "due_later", "running"):
            text.add("rota_queue_jobs", "gauge", "Live jobs of a queue.",
                     getattr(depth, kind), queue=queue, state=kind)  # fmt: skip
        text.add("rota_queue_oldest_due_seconds", "gauge", "Age of the oldest due job.",
                 depth.oldest_due_s or 0.0, queue=queue)  # fmt: skip


async def _tenants(text: PrometheusText, operations: Operations) -> None:
    """The fullest ones: a metric must not have as many series as there are tenants."""
    store, now = await operations.store(), operations.services.clock.now()
    depths = await store.survey(DepthByTenant(now, MOST_COUNTED))
    waiting = Counter({tenant: depth.due + depth.due_later for tenant, depth in depths.items()})
    for tenant, count in waiting.most_common(MOST_TENANTS):
        if count:
            help = f"Queued jobs of a tenant: the {MOST_TENANTS} tenants with the most."
            text.add("rota_tenant_waiting", "gauge", help, count, tenant=tenant)


async def _gates_and_schedules(text: PrometheusText, operations: Operations) -> None:
    store, now = await operations.store(), operations.services.clock.now()
    by_scope = Counter(gate.scope for gate in await operations.active_gates())
    for scope in get_args(Scope):
        text.add("rota_gates", "gauge", "Active pauses.", by_scope[scope], scope=scope)
    page = await store.schedules(ScheduleFilter(enabled=True), PageRequest(limit=MOST_SCHEDULES))
    late = max((_late(one.next_run_at, now) for one in page.items), default=0.0)
    text.add("rota_schedule_overdue_seconds", "gauge", "How long the latest schedule is overdue.", late)


def _late(next_run_at: datetime | None, now: datetime) -> float:
    return max((now - next_run_at).total_seconds(), 0.0) if next_run_at is not None else 0.0


async def _limits(text: PrometheusText, operations: Operations) -> None:
    """Of the fullest only: there may be a limit for each customer."""
    found = [key for limit in (await operations.limits.list()).items for key in (limit.keys or (limit,))]
    for limit in sorted(found, key=fullness, reverse=True)[:MOST_LIMITS]:
        text.add(
            "rota_limit_running", "gauge", "Running jobs under a limit.", limit.running, limit=limit.name
        )
        if limit.most is not None:
            text.add("rota_limit_most", "gauge", "Jobs that a limit lets run at once.",
                     limit.most, limit=limit.name)  # fmt: skip
        if limit.tokens is not None:
            text.add("rota_limit_tokens", "gauge", "Units of a limit's rate that could begin now.",
                     limit.tokens, limit=limit.name)  # fmt: skip


async def _workers(text: PrometheusText, operations: Operations) -> None:
    store, app = await operations.store(), operations.services
    views = {view.id: view for view in await worker_views(store, app.clock, app.settings.lease_duration_s)}
    running = [view for view in views.values() if view.state != "lost"]
    text.add("rota_workers", "gauge", "Running workers.", len(running))
    for document in await store.documents("worker"):
        if document.key in views and views[document.key].state != "lost":
            _worker(text, views[document.key], worker_record(document).get("measures"))


HELP = {
    "claims": "Jobs claimed.",
    "runs": "Attempts settled, by outcome.",
    "fires": "Jobs created by schedules, by origin.",
    "outages": "Times the store became unavailable.",
    "duration": "Seconds that a task ran.",
    "wait": "Seconds from the time a job was due to the start of its task.",
    "late": "Seconds from a fire time to the creation of its job.",
}
BY = {"runs": "outcome", "fires": "origin"}


def _worker(text: PrometheusText, view: WorkerView, metrics: Any) -> None:
    """The metrics in a worker's document: numbers, numbers by a label, histograms."""
    text.add("rota_worker_concurrency", "gauge", "Slots of the worker.", view.concurrency, worker=view.id)
    text.add("rota_worker_running", "gauge", "Running jobs.", view.running, worker=view.id)
    for service in view.services:
        labels = {"worker": view.id, "service": service.name}
        if service.succeeded_at is not None:
            name, at = "rota_worker_service_succeeded_timestamp_seconds", service.succeeded_at.timestamp()
            text.add(name, "gauge", "When the service last succeeded.", at, **labels)
        help, late = "1 if the service has not succeeded for too long.", int(service.state != "ok")
        text.add("rota_worker_service_late", "gauge", help, late, **labels)
    if not isinstance(metrics, dict):
        return
    for name, value in metrics.items():
        help = HELP.get(name, "As reported by the worker.")
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


def _numbers(counts: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    return ((label, value) for label, value in counts.items() if isinstance(value, int | float))


def _name(text: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in text.lower())
