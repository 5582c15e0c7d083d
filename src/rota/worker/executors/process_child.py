"""The far side of the process executor: ``python -m rota.worker.executors.process_child``.

Reads one request per line, runs it, replies in lines. What the task prints goes to standard error, since
standard output carries the replies; what it reads is empty, since standard input carries the requests.
When the worker dies, this process ends too, even in the middle of an execution: there is no one left to
take its outcome, and another worker will run the job again.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, BinaryIO

import msgspec

from ...core.jobs.lifecycle import Cancelled, Failed, Outcome, Snoozed, Succeeded
from ...errors import ConfigError
from ...model import Job
from ...runtime.clock import Clock
from ...tasks.task import Task
from ..context import Context, LogCapture
from ..error_records import error_record
from ..execution import Execution, outcome_of_error, outcome_of_value
from .process import ChildReply, ChildRequest

_modules: dict[str, Any] = {}


def main() -> None:
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    logging.getLogger().addHandler(LogCapture())
    lines: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=read_requests, args=(requests, lines), name="rota-requests", daemon=True).start()
    while True:
        serve(msgspec.json.decode(lines.get(), type=ChildRequest), replies)


def read_requests(requests: BinaryIO, lines: SimpleQueue[bytes]) -> None:
    """Pass requests on. The end of the pipe means that the worker has ended, in whatever way."""
    for line in requests:
        lines.put(line)
    with suppress(OSError, AttributeError):  # together with the processes that the task has started
        if os.getpgrp() == os.getpid():
            os.killpg(0, signal.SIGKILL)
    os._exit(1)


def serve(request: ChildRequest, replies: BinaryIO) -> None:
    job = msgspec.convert(request.job, Job, strict=False)
    sent = 0

    def reply(context: Context, **end: Any) -> None:
        nonlocal sent
        lines = context.lines
        new = list(lines[sent:]) if len(lines) >= sent else list(lines)
        sent = len(lines)
        message = ChildReply(
            progress_json=context.progress_json,
            cost_cents=context.cost_cents,
            lines=new,
            audit_entries=context.audit_entries,
            follow_ups=context.follow_ups if end else (),
            **end,
        )
        replies.write(msgspec.json.encode(message) + b"\n")

    clock = Clock()
    clock.correct(request.at, request.sent_at)
    context = Context(job, request.worker, clock, changed=reply, secret_fields=request.secret_fields)
    reply(context, done=True, **_reply_fields(attempt(request, job, context)))


def attempt(request: ChildRequest, job: Job, context: Context) -> Outcome:
    try:
        task = find(request)
    except BaseException as error:
        return Failed(fault=error_record(error, context.redact))
    execution = Execution(job, task, context, 0.0)
    try:
        value = execution.new_scope().run(_call, task, execution.arguments())
        return outcome_of_value(execution, value, request.limit)
    except BaseException as error:
        return outcome_of_error(execution, error)


def _call(task: Task[..., Any], arguments: dict[str, Any]) -> Any:
    result = task.fn(**arguments)
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def find(request: ChildRequest) -> Task[..., Any]:
    """The task by its module and name; only what is registered as a task can be run."""
    module = _modules.get(request.module)
    if module is None:
        sys.path[:] = list(dict.fromkeys([*request.path, *sys.path]))
        module = _modules[request.module] = _load(request)
    found: Any = module
    for part in request.qualname.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Task) and found.name == request.task:
        return found
    for value in vars(module).values():
        if isinstance(value, Task) and value.name == request.task:
            return value
    raise ConfigError(
        f"task {request.task!r} was not found in module {request.module!r}: "
        "a task that runs in a process must be at the top level of its module"
    )


def _load(request: ChildRequest) -> Any:
    if request.file is None:
        return importlib.import_module(request.module)
    # The program's own script, under another name so that its __main__ block does not run.
    spec = importlib.util.spec_from_file_location("__rota_main__", request.file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["__rota_main__"] = module
    spec.loader.exec_module(module)
    return module


def _reply_fields(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Succeeded(output_json=output):
            return {"outcome": "succeeded", "output_json": output}
        case Snoozed(seconds=seconds, reason=reason):
            return {"outcome": "snoozed", "seconds": seconds, "reason": reason}
        case Cancelled(reason=reason):
            return {"outcome": "cancelled", "reason": reason}
        case Failed(fault=fault, final=final, retry_in=retry_in, output_json=output):
            end = {"fault": fault, "final": final, "retry_in": retry_in, "output_json": output}
            return {"outcome": "failed", **end}
        case _:
            return {"outcome": "failed"}


if __name__ == "__main__":
    main()
