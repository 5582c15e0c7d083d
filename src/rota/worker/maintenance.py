"""What a worker does for all beside running jobs: rescue, prune, and look for jobs that nobody serves.

Each is a step of a service; any number of workers may do them at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ..config import Settings
from ..model import Job, State
from ..runtime.clock import Clock, monotonic
from ..runtime.metrics import WorkerMetrics
from ..runtime.service import Tick
from ..store.protocol import Store
from . import upkeep

log = logging.getLogger("rota.worker")

UNSERVED_S = 60.0
SWEEP_SHARE = 100  # a sweep for lost jobs takes at most one part in this many of the time

Tell = Callable[[str, Job, Any], None]  # the event, its job, its error


class Maintenance:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        worker: str,
        lease_s: float,
        sweep_s: float,
        knows: Callable[[], tuple[str, ...]],
        tell: Tell,
        measures: WorkerMetrics,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._worker = worker
        self._lease_s = lease_s
        self._sweep_s = sweep_s
        self._knows = knows
        self._tell = tell
        self._measures = measures
        self._unserved: frozenset[str] = frozenset()

    @property
    def steps(self) -> Mapping[str, Tick]:
        return {"rescue": self._rescue, "prune": self._prune, "unserved": self._look_for_unserved}

    async def _rescue(self) -> float:
        began = monotonic()
        await upkeep.rescue(self._store, self._clock, self._worker, self._lease_s, self._rescued)
        pause_s = max(self._sweep_s, SWEEP_SHARE * (monotonic() - began))
        return pause_s * (0.75 + self._clock.jitter() / 2)

    def _rescued(self, job: Job, state: State) -> None:
        self._measures.runs["rescued"] += 1
        self._tell("job.rescued", job, None)
        if state is not State.QUEUED:
            self._tell(f"job.{state}", job, job.error)

    async def _prune(self) -> float:
        await upkeep.prune(self._store, self._clock, self._settings)
        return upkeep.PRUNE_S * (0.75 + self._clock.jitter() / 2)

    async def _look_for_unserved(self) -> float:
        missing = await upkeep.unserved(self._store, self._clock, self._lease_s)
        for task in sorted(missing.keys() - self._unserved - set(self._knows())):
            log.warning(
                "no live worker knows task %r: %d or more due jobs wait for one that does",
                task,
                missing[task],
            )
        self._unserved = frozenset(missing)
        return UNSERVED_S
