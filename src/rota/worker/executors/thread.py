"""The thread executor: plain functions, beside the loop.

Threads are started as needed and kept. A Python thread cannot be killed: an execution that should stop
gets an exception raised inside it at the next bytecode, and keeps its slot until it really ends.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections import deque
from queue import SimpleQueue

from ...core.jobs.lifecycle import Outcome
from ..execution import Execution, outcome_of_error, outcome_of_value
from .protocol import ExecutorHost


class Stopped(BaseException):
    """Raised inside a thread whose execution should end."""


class ThreadExecutor:
    """Runs plain functions, each in a thread of its own for as long as it takes."""

    def __init__(self, host: ExecutorHost) -> None:
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[Execution | None] = SimpleQueue()
        self._ended: deque[tuple[Execution, Outcome]] = deque()
        self._is_collecting = False  # the loop was asked to collect what ended
        self._count = 0
        self._busy = 0
        self._lock = threading.Lock()

    def start(self, execution: Execution) -> None:
        self._busy += 1
        if self._busy > self._count:
            self._count += 1
            threading.Thread(target=self._serve, name=f"rota-thread-{self._count}", daemon=True).start()
        self._work.put(execution)

    def stop(self, execution: Execution) -> None:
        with self._lock:  # the thread removes its handle under the same lock before it continues
            if execution.handle is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(execution.handle), ctypes.py_object(Stopped)
                )

    async def close(self) -> None:
        for _ in range(self._count):
            self._work.put(None)

    def _serve(self) -> None:
        while (execution := self._work.get()) is not None:
            try:
                outcome = self._attempt(execution)
            except Stopped:  # raised late, between the attempt's end and ours
                outcome = outcome_of_error(execution, Stopped())
            self._ended.append((execution, outcome))
            if not self._is_collecting:
                self._is_collecting = True
                try:
                    self._loop.call_soon_threadsafe(self._collect)
                except RuntimeError:  # the loop is closed: the worker has stopped without us
                    return

    def _attempt(self, execution: Execution) -> Outcome:
        with self._lock:  # a stop from now on reaches this thread; an earlier one has left its reason
            execution.handle = threading.get_ident()
        try:
            if execution.stop_reason is not None:
                raise Stopped
            arguments = execution.arguments()
            value = execution.new_scope().run(lambda: execution.task.fn(**arguments))
            return outcome_of_value(execution, value, self._host.output_limit)
        except BaseException as error:
            return outcome_of_error(execution, error)
        finally:
            with self._lock:
                execution.handle = None

    def _collect(self) -> None:
        self._is_collecting = False
        while self._ended:
            execution, outcome = self._ended.popleft()
            self._busy -= 1
            self._host.finish(execution, outcome)
