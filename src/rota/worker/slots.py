"""The jobs in this worker's hands: waiting to begin, running, told to stop, ended.

Owns the three executors and the decision that ends each run. Never talks to the store: what is
decided goes to ``decided``, and the worker carries it out.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

from ..core.jobs.lifecycle import Outcome, Released, decide
from ..model import Job, Settlement
from ..runtime.clock import Clock, monotonic
from ..runtime.events import about
from ..runtime.failpoints import hit
from ..runtime.metrics import WorkerMetrics
from ..tasks.registry import Registry
from .context import Context
from .execution import FENCE, Execution, StopReason, raised
from .executors.coroutine import CoroutineExecutor
from .executors.process import ProcessExecutor
from .executors.thread import ThreadExecutor

log = logging.getLogger("rota.worker")

STALE_S = 1.0  # what waited longer than this behind slow jobs goes back to the queue
STOP_GRACE_S = 5.0  # for a run that was told to stop, before its job is settled without it


class Slots:
    def __init__(
        self,
        worker: str,
        registry: Registry,
        clock: Clock,
        concurrency: int,
        lease_s: float,
        output_limit: int,
        secret_fields: tuple[str, ...],
        measures: WorkerMetrics,
        began: Callable[[Execution], None],
        decided: Callable[[Execution, Settlement | None], None],
    ) -> None:
        # By run, not by job: a run that would not stop may still be here when its job comes again.
        self.running: dict[Execution, None] = {}
        self.waiting: deque[Execution] = deque()  # claimed, not begun
        self.ended = 0
        self._worker = worker
        self._registry = registry
        self._clock = clock
        self._concurrency = concurrency
        self._fresh_s = lease_s * FENCE
        self._secret_fields = secret_fields
        self._measures = measures
        self._tell_began = began
        self._decided = decided
        self._closed = False
        self._lanes = CoroutineExecutor(self._follow, self._fill_slots, output_limit)
        self._threads = ThreadExecutor(self._end, output_limit)
        self._processes = ProcessExecutor(self._end, self._begin, output_limit, worker, os.cpu_count() or 1)

    # --- in --------------------------------------------------------------------------------------

    def take(self, jobs: Sequence[Job], asked_at: float) -> None:
        """Begin as many as there is room for; the rest wait for a slot."""
        for job in jobs:
            task = self._registry.get(job.task)
            assert task is not None, job.task  # a claim asks only for tasks we know
            context = Context(job, self._worker, self._clock, None, self._secret_fields)
            self.waiting.append(Execution(job, task, context, asked_at))
        self._fill_slots()

    def _fill_slots(self) -> None:
        """See to it that a lane takes what waits; it goes on to the next by itself."""
        if not self._lanes.awake and (run := self._next()) is not None:
            self._lanes.start(run)

    def _next(self, now: datetime | None = None) -> Execution | None:
        """The next coroutine run; runs for the other executors are started on the way to it."""
        waiting, running = self.waiting, self.running
        while waiting and len(running) < self._concurrency and not self._closed:
            run = waiting.popleft()
            if monotonic() - run.renewed_at > self._fresh_s:  # the claim was answered late, or we stood still
                run.context.stop_reason = "lost"
                self._conclude(run, Released())
                continue
            running[run] = None
            executor = run.task.executor
            if executor == "process":
                self._processes.start(run)  # begins when a child is free
                continue
            self._begin(run, now)
            if executor == "async":
                return run
            self._threads.start(run)
        return None

    def _begin(self, run: Execution, now: datetime | None = None) -> None:
        hit("handler.before")
        run.started_at = now = now or self._clock.now()
        self._measures.wait.add(now - run.job.run_at)
        if run.timeout is not None:
            run.timer = asyncio.get_running_loop().call_later(run.timeout, self.stop, run, "timeout")
        self._tell_began(run)

    # --- out -------------------------------------------------------------------------------------

    def _end(self, run: Execution, outcome: Outcome) -> None:
        """A thread or process is through with a run: its slot is free."""
        if (following := self._follow(run, outcome)) is not None:
            self._lanes.start(following)

    def _follow(self, run: Execution, outcome: Outcome) -> Execution | None:
        """A lane is through with a run: its next one, which begins the moment this one ends."""
        hit("handler.after")
        del self.running[run]
        self.ended += 1
        now = self._clock.now()
        if run.started_at is not None:
            self._measures.duration.add(now - run.started_at)
        self._conclude(run, outcome, now)
        return self._next(now)

    def _conclude(self, run: Execution, outcome: Outcome, now: datetime | None = None) -> None:
        """The first end of a run counts; a later one, of a run that would not stop, is ignored."""
        if run.ended:
            return
        run.ended = True
        if run.timer is not None:
            run.timer.cancel()
        if run.context.stop_reason == "lost":
            self._decided(run, None)
            return
        change = decide(
            run.job,
            outcome,
            now or self._clock.now(),
            self._clock.jitter(),
            run.task.chosen.backoff,
            run.report(self._worker),
        )
        self._decided(run, change)

    # --- stopping --------------------------------------------------------------------------------

    def stop(self, run: Execution, reason: StopReason) -> None:
        """Tell a run to end; if it does not, its job is settled without it after a while."""
        if run.ended or run.told_to_stop:
            return
        run.told_to_stop = True
        run.context.stop_reason = reason
        match run.task.executor:
            case "async":
                self._lanes.stop(run)
            case "thread":
                self._threads.stop(run)
            case "process":
                self._processes.stop(run)
        asyncio.get_running_loop().call_later(STOP_GRACE_S, self._abandon, run)

    def _abandon(self, run: Execution) -> None:
        if run.ended:
            return
        log.error(
            "job %s (%s) does not stop (%s): it is settled without it; its slot stays taken until it ends",
            run.job.id,
            run.job.task,
            run.stop_reason,
            extra=about(run.job, self._worker),
        )
        self._conclude(run, raised(run, RuntimeError("it did not stop")))

    def lost(self, runs: Sequence[Execution]) -> None:
        """Another worker may own these: stop them, and drop what they say."""
        self._stop_held(runs, "lost")

    def cancel(self, runs: Sequence[Execution]) -> None:
        self._stop_held(runs, "cancelled")

    def _stop_held(self, runs: Sequence[Execution], reason: StopReason) -> None:
        for run in runs:
            if run in self.running:
                self.stop(run, reason)
            elif run in self.waiting:
                self.waiting.remove(run)
                run.context.stop_reason = reason
                self._conclude(run, raised(run, RuntimeError("stopped before it began")))

    def release_waiting(self) -> int:
        """Give back what has not begun; how many."""
        count = len(self.waiting)
        while self.waiting:
            self._conclude(self.waiting.popleft(), Released())
        return count

    def release_stale(self) -> int:
        """Give back what waits behind slow jobs, so that a free worker can take it; how many."""
        if self.waiting and monotonic() - self.waiting[0].taken_at > STALE_S:
            return self.release_waiting()
        return 0

    def release_running(self) -> None:
        """Stop everything: what does not finish meanwhile is given back."""
        for run in list(self.running):
            self.stop(run, "released")

    def abandon_all(self) -> None:
        """Give back what still has not ended."""
        for run in list(self.running):
            self._conclude(run, Released())

    # --- the rest --------------------------------------------------------------------------------

    def held(self) -> list[Execution]:
        """All leases that must be kept. Called from the heartbeat thread too: copies, never iterates."""
        return [*list(self.running), *list(self.waiting)]

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting)

    def stop_accepting(self) -> None:
        """Begin nothing more."""
        self._closed = True

    async def close(self) -> None:
        await self._lanes.close()
        await self._threads.close()
        await self._processes.close()
