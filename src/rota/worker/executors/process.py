"""The process executor: tasks in child processes that can be killed.

A child is a fresh interpreter (never a fork) that imports the task's module and then serves one run
at a time over its standard input and output, as lines of JSON: nothing is ever unpickled. A run
that must stop is killed with its child; a child that dies takes only its own run with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ...core.jobs.lifecycle import Cancelled, Failed, Outcome, Snoozed, Succeeded
from ...errors import ConfigError
from ...model import AuditEntry, ErrorRecord, LogLine
from ..execution import Execution, raised
from .coroutine import Finished

LONGEST_LINE = 128 * 1024 * 1024
ROOT = str(Path(__file__).resolve().parents[2])  # so that the child finds rota where we did
RECYCLE_AFTER = 1000  # runs, so that a leaking task cannot grow for ever


class ChildRequest(msgspec.Struct, kw_only=True):
    """Parent to child: run this. Sent as one line of JSON."""

    module: str
    file: str | None
    path: list[str]
    task: str
    qualname: str
    job: Any
    worker: str
    limit: int
    secret_fields: tuple[str, ...] = ()


class ChildReply(msgspec.Struct, kw_only=True):
    """Child to parent: progress so far (``done`` false), or the end of the run."""

    done: bool = False
    outcome: str = ""
    output_json: str | None = None
    fault: ErrorRecord | None = None
    final: bool = False
    seconds: float = 0.0
    reason: str | None = None
    progress_json: str | None = None
    cost_cents: float = 0.0
    lines: list[LogLine] = msgspec.field(default_factory=list)
    audited: tuple[AuditEntry, ...] = ()  # all so far


class Child:
    """One interpreter, serving one run at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.runs = 0
        self._killed = False

    @classmethod
    async def spawn(cls) -> Child:
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH")))),
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "rota.worker.executors.process_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LONGEST_LINE,
            env=env,
            start_new_session=True,  # Ctrl-C goes to the worker, which decides
        )
        return cls(process)

    async def serve(self, request: bytes, run: Execution) -> ChildReply | None:
        """The last answer; None if the child died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.runs += 1
        try:
            self.process.stdin.write(request + b"\n")
            await self.process.stdin.drain()
            while line := await self.process.stdout.readline():
                answer = msgspec.json.decode(line, type=ChildReply)
                _take_over(run, answer)
                if answer.done:
                    return answer
        except (BrokenPipeError, ConnectionResetError, ValueError, msgspec.DecodeError):
            self.kill()
        return None

    @property
    def is_sound(self) -> bool:
        return self.process.returncode is None and not self._killed and self.runs < RECYCLE_AFTER

    def kill(self) -> None:
        self._killed = True  # before the operating system has told us of its end
        if not hasattr(os, "killpg"):  # Windows has no groups
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            return
        # The whole group: a task may have started processes of its own. Never process.kill() as well:
        # it would look at the dead child, and asyncio would wonder where it went.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        self.kill()
        await self.process.wait()


class ProcessExecutor:
    """At most ``size`` children at once; a run that has to wait for one does not run out of time."""

    def __init__(
        self, finished: Finished, began: Callable[[Execution], None], limit: int, worker: str, size: int
    ) -> None:
        self._finished = finished
        self._began = began
        self._free = asyncio.Semaphore(size)
        self._limit = limit
        self._worker = worker
        self._idle: list[Child] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, run: Execution) -> None:
        task = asyncio.create_task(self._serve(run), name="rota-process-run")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self, run: Execution) -> None:
        child: Child | None = run.handle
        if child is not None:
            child.kill()

    async def close(self) -> None:
        if self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=2.0)
        while self._idle:
            await self._idle.pop().end()

    async def _serve(self, run: Execution) -> None:
        async with self._free:
            try:
                outcome = await self._attempt(run)
            except Exception as error:
                outcome = raised(run, error)
        self._finished(run, outcome)

    async def _attempt(self, run: Execution) -> Outcome:
        request = request_for(run, self._worker, self._limit)
        child = await self._take()
        try:
            if run.stop_reason is not None:
                return raised(run, RuntimeError("stopped before it began"))
            run.handle = child
            self._began(run)
            answer = await child.serve(request, run)
            return await self._read(run, child, answer)
        except asyncio.CancelledError:
            child.kill()
            raise
        finally:
            run.handle = None
            await self._put_back(child)

    async def _read(self, run: Execution, child: Child, answer: ChildReply | None) -> Outcome:
        if answer is not None:
            return _outcome(answer)
        code = await child.process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        return raised(run, ProcessDied(f"its process {how}"))

    async def _take(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if child.is_sound:
                return child
            await child.end()  # it died while nobody needed it
        return await Child.spawn()

    async def _put_back(self, child: Child) -> None:
        if child.is_sound:
            self._idle.append(child)
        else:
            await child.end()


class ProcessDied(Exception):
    """The child process ended before its task did."""

    __module__ = "rota"


def request_for(run: Execution, worker: str, limit: int) -> bytes:
    fn = run.task.fn
    if "<locals>" in fn.__qualname__:
        raise ConfigError(
            f"task {run.task.name!r} runs in a process, so its function must be at the top level of a module"
        )
    file = None
    if fn.__module__ == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        if file is None:
            raise ConfigError(
                f"task {run.task.name!r} runs in a process, so it must live in a file, not in a prompt"
            )
    request = ChildRequest(
        module=fn.__module__,
        file=file,
        path=[p for p in sys.path if p] + [os.getcwd()],
        task=run.task.name,
        qualname=fn.__qualname__,
        job=run.job,
        worker=worker,
        limit=limit,
        secret_fields=run.context.secret_fields,
    )
    return msgspec.json.encode(request)


def _take_over(run: Execution, answer: ChildReply) -> None:
    context = run.context
    context.cost_cents = answer.cost_cents
    context.extend(answer.lines)
    context.audited = answer.audited
    if answer.progress_json is not None:
        context.progress_json = answer.progress_json


def _outcome(answer: ChildReply) -> Outcome:
    match answer.outcome:
        case "succeeded":
            return Succeeded(output_json=answer.output_json)
        case "snoozed":
            return Snoozed(seconds=answer.seconds, reason=answer.reason)
        case "cancelled":
            return Cancelled(reason=answer.reason or "cancelled by the task")
        case _:
            return Failed(fault=answer.fault or ErrorRecord(type="Unknown", message=""), final=answer.final)
