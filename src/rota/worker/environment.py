"""What the parts of one worker share, in one value. Holds no state of its own and does nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import Settings
from ..runtime.clock import Clock
from ..runtime.fleet import Fleet
from ..runtime.gate_watch import GateWatch
from ..runtime.metrics import WorkerMetrics
from ..runtime.service_records import ServiceRecords
from ..store.protocol import Store
from ..tasks.registry import Registry
from .options import WorkerOptions
from .reporting import JobReporter


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnvironment:
    """The dependencies of a worker's parts: the store, the tasks, the options, and who reports."""

    worker: str  # the id of this worker: the holder of its leases
    store: Store
    registry: Registry
    clock: Clock
    settings: Settings
    options: WorkerOptions
    gates: GateWatch
    fleet: Fleet
    metrics: WorkerMetrics
    reporter: JobReporter
    records: ServiceRecords
