"""The executions of this worker: waiting for a slot, running, finished.

Owns the slots and the three executors. Never talks to the store and decides no outcome: what an execution
ends with goes to ``ended``. How executions are stopped is in ``stops.py``.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime

from ..core.jobs.admission import LONGEST_IN_HAND_NS
from ..core.jobs.lifecycle import EXPIRED, NeverBegun, Outcome, Released, has_expired
from ..model import Job, State
from ..runtime.clock import monotonic
from ..runtime.failpoints import hit
from .context import Context
from .environment import WorkerEnvironment
from .execution import FENCE, Execution
from .executors.coroutine import CoroutineExecutor
from .executors.process import ProcessExecutor
from .executors.protocol import ExecutorHost, TaskExecutor
from .executors.thread import ThreadExecutor
from .stops import Stops

IN_HAND_S = LONGEST_IN_HAND_NS / 1e9  # after which a job that was claimed ahead begins no more
STALE_S = 1.0  # a job that has waited longer than this behind slow ones is released
MOST_JOBS_ARE_OF = "default"  # the tenant that need not be counted: it has the rest

Ended = Callable[[Execution, Outcome, datetime], None]


class Slots:
    """Runs claimed jobs, at most ``concurrency`` at once; the others wait here for a slot.

    Never decides an outcome: ``ended`` takes it.
    """

    def __init__(self, environment: WorkerEnvironment, ended: Ended) -> None:
        self.running: dict[Execution, None] = {}
        self.waiting: deque[Execution] = deque()  # claimed, not started
        self._of_tenants: dict[str, int] = {}  # how many of them are of which tenant, but of one
        self.finished = 0
        self.late = 0  # those that came too late to a slot, and were released
        self.jumps = 0  # how often the store's time ran ahead of ours: then every lease is to be renewed
        self._environment = environment
        self._clock = environment.clock
        self._metrics = environment.metrics
        self._reporter = environment.reporter
        self._concurrency = environment.options.concurrency
        self._fresh_s = environment.options.lease_s * FENCE
        self.is_sparing: Callable[[], bool] = lambda: False  # of the heartbeat thread
        self._ended = ended
        self._is_closed = False
        host = ExecutorHost(
            begin=self.begin,
            finish=self.finish,
            advance=self.advance,
            fill=self.fill,
            output_limit=environment.settings.max_payload_bytes,
        )
        self._coroutines = CoroutineExecutor(host)
        self._executors: dict[str, TaskExecutor] = {
            "async": self._coroutines,
            "thread": ThreadExecutor(host),
            "process": ProcessExecutor(host, os.cpu_count() or 1),
        }
        self.stops = Stops(self, self._executors)

    def __len__(self) -> int:
        return len(self.running) + len(self.waiting)

    def held(self) -> list[Execution]:
        """All leases to keep. Called from the heartbeat thread too: copies, never iterates."""
        return [*list(self.running), *list(self.waiting)]

    def has_keyed(self, n: int) -> bool:
        """Whether this many jobs with a concurrency key wait: they come before others of their priority."""
        return len(self.waiting) >= n and self.waiting[n - 1].job.concurrency_key is not None

    def holds(self) -> tuple[tuple[str, int], ...]:
        """How many jobs of each tenant are here, running or waiting: counted as they come and go."""
        counts = self._of_tenants
        if rest := len(self) - sum(counts.values()):
            counts = {**counts, MOST_JOBS_ARE_OF: rest}
        return tuple(sorted(counts.items()))

    def outdated(self) -> list[Execution]:
        """Those whose jobs another worker may already hold."""
        if not self._outdated():
            return []
        return [] if self.is_sparing() else self._outdated()

    def _outdated(self) -> list[Execution]:
        latest = monotonic() - self._fresh_s
        return [one for one in self.held() if one.renewed_at < latest and one.stop_reason is None]

    # --- in --------------------------------------------------------------------------------------

    def take(self, jobs: Sequence[Job], claimed_at: float) -> None:
        """Start as many as there are free slots; the rest wait for one."""
        self._metrics.claims += len(jobs)
        worker, secret_fields = self._environment.worker, self._environment.settings.secret_fields
        tasks = self._environment.registry.tasks  # a claim requests no others
        is_mixed = False
        free, begin_by = self._concurrency - len(self), claimed_at + IN_HAND_S
        for place, job in enumerate(jobs):
            context = Context(job, worker, self._clock, None, secret_fields)
            self.waiting.append(Execution(job, tasks[job.task], context, claimed_at))
            if place >= free:
                self.waiting[-1].begin_by = begin_by
            if job.tenant != MOST_JOBS_ARE_OF:
                self._of_tenants[job.tenant] = self._of_tenants.get(job.tenant, 0) + 1
            is_mixed = is_mixed or (job.concurrency_key is not None and len(self.waiting) > 1)
        if (
            is_mixed
        ):  # a job with a key may hold a slot of a limit: those without wait for it, not it for them
            self.waiting = deque(sorted(self.waiting, key=_place))
        if not self._coroutines.awake and (execution := self._next()) is not None:
            self._coroutines.start(execution)

    def fill(self) -> None:
        """Start what waits, unless a coroutine is at work that will do so when it ends or waits."""
        if not self._coroutines.awake and (execution := self._next()) is not None:
            self._coroutines.start(execution)

    def _next(self, now: datetime | None = None) -> Execution | None:
        """The next coroutine to run; executions for the other executors are started on the way to it."""
        waiting, running = self.waiting, self.running
        while waiting and len(running) < self._concurrency and not self._is_closed:
            execution = waiting[0]  # the guard looks for what it renewed among those that are held
            at = monotonic()
            is_late = at - execution.renewed_at > self._fresh_s and self._is_stale(execution)
            waiting.popleft()
            if execution.begin_by is not None and at > execution.begin_by:
                is_late = True  # a limit's units, which it took when it was claimed, are no longer of now
            if is_late:  # a late answer, or a suspended process: if the job is still ours, others may have it
                self.late += 1
                self.drop(execution, Released())
                continue
            if execution.job.expires_at is not None and self._end_expired(execution, now):
                continue
            running[execution] = None
            executor = execution.task.executor
            if executor == "async":
                self.begin(execution, now)
                return execution
            if executor == "thread":
                self.begin(execution, now)
            self._executors[executor].start(execution)  # a process begins when a child is free
        return None

    def _end_expired(self, execution: Execution, now: datetime | None) -> bool:
        """Whether the job may no longer begin; then it is cancelled."""
        if not has_expired(execution.job, now or self._clock.now()):
            return False
        self.drop(execution, NeverBegun(state=State.CANCELLED, fault=EXPIRED, action="job.expired"))
        return True

    def _is_stale(self, execution: Execution) -> bool:
        self.is_sparing()  # the guard may have renewed it; a mere hope is not enough to start it
        return monotonic() - execution.renewed_at > self._fresh_s

    def begin(self, execution: Execution, now: datetime | None = None) -> None:
        """Note that the task's code starts now, and set its timeout."""
        hit("handler.before")
        execution.started_at = now = now or self._clock.now()
        self._metrics.wait.add(now - execution.job.run_at)
        if execution.timeout is not None:
            loop = asyncio.get_running_loop()
            execution.timer = loop.call_later(execution.timeout, self.stops.stop, execution, "timeout")
        if self._reporter.wants("job.started"):
            self._reporter.emit("job.started", execution.job)

    # --- out -------------------------------------------------------------------------------------

    def advance(self, execution: Execution, outcome: Outcome) -> Execution | None:
        """Free the slot of an execution; the next coroutine, which starts the moment this one ends."""
        hit("handler.after")
        del self.running[execution]
        if execution.job.tenant != MOST_JOBS_ARE_OF:
            self._left(execution.job.tenant)
        self.finished += 1
        now = self._clock.now()
        if execution.started_at is not None:
            self._metrics.duration.add(now - execution.started_at)
        self._ended(execution, outcome, now)
        return self._next(now) if self.waiting else None

    def finish(self, execution: Execution, outcome: Outcome) -> None:
        """Free the slot of an execution that ran in a thread or process."""
        if (following := self.advance(execution, outcome)) is not None:
            self._coroutines.start(following)

    def end(self, execution: Execution, outcome: Outcome) -> None:
        """Pass on an outcome; the execution keeps its slot, if it has one, until it returns."""
        self._ended(execution, outcome, self._clock.now())

    def drop(self, execution: Execution, outcome: Outcome) -> None:
        """Pass on the outcome of an execution that no longer waits, and never had a slot."""
        if execution.job.tenant != MOST_JOBS_ARE_OF:
            self._left(execution.job.tenant)
        self.end(execution, outcome)

    def _left(self, tenant: str) -> None:
        left = self._of_tenants[tenant] - 1
        if left:
            self._of_tenants[tenant] = left
        else:
            del self._of_tenants[tenant]

    def release_waiting(self, older_than_s: float = 0.0) -> int:
        """Release what has not started, if the oldest has waited this long; how many.

        What waits behind slow jobs could run at once on another worker.
        """
        if not self.waiting or monotonic() - self.waiting[0].claimed_at < older_than_s:
            return 0
        count = len(self.waiting)
        while self.waiting:
            self.drop(self.waiting.popleft(), Released())
        return count

    def stop_accepting(self) -> None:
        """Start nothing more."""
        self._is_closed = True

    async def close(self) -> None:
        for executor in self._executors.values():
            await executor.close()


def _place(execution: Execution) -> tuple[int, bool]:
    """Among those that wait here; equal ones stay in the order of their claims."""
    return -execution.job.priority, execution.job.concurrency_key is None
