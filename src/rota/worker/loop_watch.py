"""Names the task that blocks the worker's event loop, while it does.

Looks from the heartbeat thread, which a blocked loop does not stop: it asks the loop for a sign of life and,
when none comes for too long, reads the stack of the loop's thread. So it costs the loop one callback per look
and a job nothing. It only logs. Code that holds the interpreter's lock is noticed when it returns, if at all.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from types import FrameType

from ..runtime.clock import monotonic
from ..runtime.events import about
from .error_records import is_own
from .execution import Execution
from .executors.coroutine import CoroutineExecutor

log = logging.getLogger("rota.worker")

MOST_STEP_S = 2.0  # counted between two looks: a process that was suspended blocked nothing
MAX_FRAMES = 15
RUNS_A_TASK = CoroutineExecutor._run.__code__


class LoopWatch:
    """Watches one event loop; made in its thread. ``longest_s`` is 0: watches nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop, worker: str, longest_s: float) -> None:
        self._loop = loop
        self._worker = worker
        self._longest_s = longest_s
        self._thread = threading.get_ident()
        self._is_waiting = self._has_reported = False
        self._late_s = 0.0
        self._looked_at = monotonic()

    def check(self) -> None:
        """Ask for a sign of life, or note that the last one is still missing. Called every second or so."""
        if self._longest_s <= 0:
            return
        now = monotonic()
        step_s, self._looked_at = min(now - self._looked_at, MOST_STEP_S), now
        if not self._is_waiting:
            self._is_waiting, self._has_reported, self._late_s = True, False, 0.0
            try:
                self._loop.call_soon_threadsafe(self._answer)
            except RuntimeError:  # the loop has ended
                self._longest_s = 0.0
            return
        self._late_s += step_s
        if self._late_s >= self._longest_s and not self._has_reported:
            self._report(sys._current_frames().get(self._thread))

    def _answer(self) -> None:
        self._is_waiting = False

    def _report(self, frame: FrameType | None) -> None:
        execution = running_in(frame)
        if execution is None:  # it does something else than run a task, or has just returned
            return
        self._has_reported = True
        job = execution.job
        log.warning(
            "job %s (%s) blocks the event loop: for %.1f s no other async job of this worker could continue, "
            "and no timeout could be kept; await what takes time, or declare the task with def: it then "
            "runs in a thread. It is here:\n%s",
            job.id,
            job.task,
            self._late_s,
            _stack(frame),
            extra=about(job, self._worker),
        )


def running_in(frame: FrameType | None) -> Execution | None:
    """The execution whose task's code is on this stack."""
    while frame is not None:
        if frame.f_code is RUNS_A_TASK:
            found = frame.f_locals.get("execution")
            return found if isinstance(found, Execution) else None
        frame = frame.f_back
    return None


def _stack(frame: FrameType | None) -> str:
    """The innermost frames, from the task's own code on."""
    inside: list[FrameType] = []
    while frame is not None and frame.f_code is not RUNS_A_TASK:
        if not is_own(frame.f_code.co_filename):
            inside.append(frame)
        frame = frame.f_back
    innermost = [(one, one.f_lineno) for one in inside[:MAX_FRAMES][::-1]]
    return "".join(traceback.StackSummary.extract(iter(innermost)).format()).rstrip()
