"""The thread executor: plain functions, beside the loop.

Threads are started as needed and kept. A Python thread cannot be killed: a run that should stop gets
an exception raised inside it at the next bytecode, and keeps its slot until it really ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections import deque
from queue import SimpleQueue

from ...core.jobs.lifecycle import Outcome
from ...errors import PayloadError
from ..execution import Execution, Undecodable, raised, returned
from .coroutine import Finished


class Stopped(BaseException):
    """Raised inside a thread whose run should end."""


class ThreadExecutor:
    def __init__(self, finished: Finished, limit: int) -> None:
        self._finished = finished
        self._limit = limit
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[Execution | None] = SimpleQueue()
        self._ended: deque[tuple[Execution, Outcome]] = deque()
        self._told = False
        self._count = 0
        self._busy = 0
        self._lock = threading.Lock()

    def start(self, run: Execution) -> None:
        self._busy += 1
        if self._busy > self._count:
            self._count += 1
            threading.Thread(target=self._serve, name=f"rota-thread-{self._count}", daemon=True).start()
        self._work.put(run)

    def stop(self, run: Execution) -> None:
        with self._lock:  # the thread takes its handle away under the same lock before it goes on
            if run.handle is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(run.handle), ctypes.py_object(Stopped)
                )

    async def close(self) -> None:
        for _ in range(self._count):
            self._work.put(None)

    def _serve(self) -> None:
        while (run := self._work.get()) is not None:
            try:
                outcome = self._attempt(run)
            except Stopped:  # raised late, between the attempt's end and ours
                outcome = raised(run, Stopped())
            self._ended.append((run, outcome))
            if not self._told:
                self._told = True
                try:
                    self._loop.call_soon_threadsafe(self._collect)
                except RuntimeError:  # the loop is gone: the worker has ended without us
                    return

    def _attempt(self, run: Execution) -> Outcome:
        with self._lock:  # whoever stops the run now reaches us; whoever did before, left a reason
            run.handle = threading.get_ident()
        try:
            if run.stop_reason is not None:
                raise Stopped
            try:
                arguments = run.arguments()
            except PayloadError as error:
                raise Undecodable(error) from error
            return returned(run, run.enter().run(lambda: run.task.fn(**arguments)), self._limit)
        except BaseException as error:
            return raised(run, error)
        finally:
            with self._lock:
                run.handle = None

    def _collect(self) -> None:
        self._told = False
        while self._ended:
            run, outcome = self._ended.popleft()
            self._busy -= 1
            self._finished(run, outcome)
