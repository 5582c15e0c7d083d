"""The process executor: tasks in child processes that can be killed.

A child is a fresh interpreter (never a fork) that imports the task's module and then serves one
execution at a time over its standard input and output, as lines of JSON: nothing is ever unpickled. An
execution that must stop is killed with its child; a child that dies takes only its own execution with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from ...core.jobs.lifecycle import Cancelled, Failed, Outcome, Snoozed, Succeeded
from ...errors import ConfigError
from ...model import AuditEntry, ErrorRecord, LogLine, NewJob
from ...runtime.clock import monotonic
from ..error_records import TaskError
from ..execution import Execution, NotStarted, ProcessDied, outcome_of_error
from .protocol import ExecutorHost

LONGEST_LINE = 128 * 1024 * 1024
ROOT = str(Path(__file__).resolve().parents[3])  # so that the child imports the same rota
RECYCLE_AFTER = 1000  # executions, so that a leaking task cannot grow for ever
CLOSE_S = 2.0


class ChildRequest(msgspec.Struct, kw_only=True):
    """Parent to child: the task to run. Sent as one line of JSON."""

    module: str
    file: str | None
    path: list[str]
    task: str
    qualname: str
    job: Any
    worker: str
    limit: int
    secret_fields: tuple[str, ...] = ()
    at: datetime  # the worker's time, at sent_at (monotonic)
    sent_at: float


class ChildReply(msgspec.Struct, kw_only=True):
    """Child to parent: progress so far (``done`` false), or the end of the execution."""

    done: bool = False
    outcome: str = ""
    output_json: str | None = None
    fault: ErrorRecord | None = None
    final: bool = False
    retry_in: float | None = None
    seconds: float = 0.0
    reason: str | None = None
    progress_json: str | None = None
    cost_cents: float | None = None
    lines: list[LogLine] = msgspec.field(default_factory=list)
    audit_entries: tuple[AuditEntry, ...] = ()  # all so far
    follow_ups: tuple[NewJob, ...] = ()  # only at the end


class Child:
    """One interpreter, serving one execution at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.served = 0
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

    async def serve(self, request: bytes, execution: Execution) -> ChildReply | None:
        """The last reply; None if the child died."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.served += 1
        try:
            self.process.stdin.write(request + b"\n")
            await self.process.stdin.drain()
            while line := await self.process.stdout.readline():
                reply = msgspec.json.decode(line, type=ChildReply)
                _update_context(execution, reply)
                if reply.done:
                    return reply
        except (BrokenPipeError, ConnectionResetError, ValueError, msgspec.DecodeError):
            self.kill()
        return None

    @property
    def is_usable(self) -> bool:
        return self.process.returncode is None and not self._killed and self.served < RECYCLE_AFTER

    def kill(self) -> None:
        self._killed = True  # known here before the operating system reports it
        if not hasattr(os, "killpg"):  # Windows has no groups
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            return
        # The whole group: a task may have started processes of its own. Never process.kill() as well: it
        # would reap the dead child, and asyncio would then warn that it cannot find it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    async def end(self) -> None:
        self.kill()
        with contextlib.suppress(TimeoutError):  # a hung disk or driver delays even a killed process
            async with asyncio.timeout(CLOSE_S):
                await self.process.wait()


class ProcessExecutor:
    """Runs tasks in at most ``size`` children at once. Waiting for a child does not count as running."""

    def __init__(self, host: ExecutorHost, size: int) -> None:
        self._host = host
        self._free = asyncio.Semaphore(size)
        self._idle: list[Child] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, execution: Execution) -> None:
        task = asyncio.create_task(self._serve(execution), name="rota-process-execution")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self, execution: Execution) -> None:
        child: Child | None = execution.handle
        if child is not None:
            child.kill()

    async def close(self) -> None:
        if self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks, timeout=CLOSE_S)
        while self._idle:
            await self._idle.pop().end()

    async def _serve(self, execution: Execution) -> None:
        async with self._free:
            try:
                outcome = await self._attempt(execution)
            except Exception as error:
                outcome = outcome_of_error(execution, error)
        self._host.finish(execution, outcome)

    async def _attempt(self, execution: Execution) -> Outcome:
        request = child_request(execution, self._host.output_limit)
        child = await self._take_child()
        try:
            if execution.stop_reason is not None:
                raise NotStarted
            execution.handle = child
            self._host.begin(execution)
            reply = await child.serve(request, execution)
            if reply is None:
                raise ProcessDied(await _end_of(child))
            return _outcome(execution, reply)
        except asyncio.CancelledError:
            child.kill()
            raise
        finally:
            execution.handle = None
            await self._put_back(child)

    async def _take_child(self) -> Child:
        while self._idle:
            child = self._idle.pop()
            if child.is_usable:
                return child
            await child.end()  # it died while it was idle
        return await Child.spawn()

    async def _put_back(self, child: Child) -> None:
        if child.is_usable:
            self._idle.append(child)
        else:
            await child.end()


async def _end_of(child: Child) -> str:
    code = await child.process.wait()
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
    return f"its process {how}"


def child_request(execution: Execution, limit: int) -> bytes:
    fn = execution.task.fn
    file = None
    if fn.__module__ == "__main__":
        file = getattr(sys.modules["__main__"], "__file__", None)
        if file is None:
            raise ConfigError(
                f"task {execution.task.name!r} runs in a process, so it must live in a file, not in a prompt"
            )
    request = ChildRequest(
        module=fn.__module__,
        file=file,
        path=[p for p in sys.path if p] + [os.getcwd()],
        task=execution.task.name,
        qualname=fn.__qualname__,
        job=execution.job,
        worker=execution.context.worker,
        limit=limit,
        secret_fields=execution.context.secret_fields,
        at=execution.context.now(),
        sent_at=monotonic(),
    )
    return msgspec.json.encode(request)


def _update_context(execution: Execution, reply: ChildReply) -> None:
    context = execution.context
    context.cost_cents = reply.cost_cents
    context.extend(reply.lines)
    context.audit_entries = reply.audit_entries
    if reply.follow_ups:
        context.gather(reply.follow_ups)
    if reply.progress_json is not None:
        context.progress_json = reply.progress_json


def _outcome(execution: Execution, reply: ChildReply) -> Outcome:
    match reply.outcome:
        case "succeeded":
            return Succeeded(output_json=reply.output_json)
        case "snoozed":
            return Snoozed(seconds=reply.seconds, reason=reply.reason)
        case "cancelled":
            return Cancelled(reason=reply.reason or "cancelled by the task")
        case _:
            fault = reply.fault or ErrorRecord(type="Unknown", message="")
            execution.exception = TaskError.of(fault)
            return Failed(
                fault=fault, final=reply.final, retry_in=reply.retry_in, output_json=reply.output_json
            )
