"""Strays: jobs that a claim brought whose answer was lost. The store counts them as running here.

Owns the doubt after a turn without an answer, and how it ends: ask the store what this worker holds, and
release what it does not know, so that a lost answer costs neither an attempt nor the rest of a lease.
Must never release a job that this worker knows: the caller says which those are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..core.jobs.lifecycle import Released, decide
from ..core.plurals import plural
from ..model import Job, JobFilter, JobId, PageRequest, State
from ..runtime.clock import monotonic
from ..store.calls import settle
from .environment import WorkerEnvironment

log = logging.getLogger("rota.worker")

MOST = 1000  # released at once
MARGIN_S = 1.0  # how far this clock may be from the store's

Known = Callable[[], set[tuple[JobId, int]] | None]


class Strays:
    """Looks at once after a lost answer, and again when the lost statement can no longer claim anything."""

    def __init__(self, environment: WorkerEnvironment) -> None:
        self._environment = environment
        self._doubt_until: float | None = None  # monotonic; None: nothing is in doubt
        self._look_at = 0.0

    def suspect(self, until: float) -> None:
        """A claim got no answer; the store may carry it out until then (monotonic)."""
        self._doubt_until = max(until + MARGIN_S, self._doubt_until or 0.0)
        self._look_at = 0.0

    @property
    def is_due(self) -> bool:
        return self._doubt_until is not None and monotonic() >= self._look_at

    async def release(self, known: Known) -> None:
        """Ask, and release what is not ``known``: lease tokens by id, or None while that is not certain."""
        asked_at, doubt_until = monotonic(), self._doubt_until
        environment = self._environment
        where = JobFilter(worker=environment.worker, states=(State.RUNNING,))
        held = (await environment.store.jobs(where, PageRequest(limit=MOST, brief=True))).items
        ours = known()
        if ours is None:
            return
        strays = [job for job in held if (job.id, job.lease_token) not in ours]
        if strays:
            await self._settle(strays)
        if doubt_until == self._doubt_until and doubt_until is not None and len(held) < MOST:
            self._look_at = doubt_until
            if asked_at > doubt_until:
                self._doubt_until = None

    async def _settle(self, strays: Sequence[Job]) -> None:
        environment, clock = self._environment, self._environment.clock
        settlements = [decide(job, Released(), clock.now(), clock.jitter()) for job in strays]
        refused = await settle(environment.store, settlements, clock.store_now)
        released = len(strays) - len(refused)
        environment.metrics.runs["released"] += released
        log.warning(
            "worker %s: released %s of a claim whose answer was lost",
            environment.worker,
            plural(released, "job"),
        )
