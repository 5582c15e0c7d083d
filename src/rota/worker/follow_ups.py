"""Follow-up jobs of ``ctx.enqueue``: how they are built, and how many an attempt may have.

They are checked while the task runs, so that a mistake raises there. Never touches the store: the
settlement of a successful attempt carries them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ..core.jobs.options import Options, options
from ..errors import OptionError
from ..model import NewJob
from ..tasks.current import RunningJob
from ..tasks.task import BoundTask, Task, TaskProducer

MOST = 1000
MOST_BYTES = 16 * 1024 * 1024  # of all payloads: one settlement carries them


def follow_up(
    running: RunningJob,
    producer: TaskProducer,
    now: datetime,
    task: Task[..., Any] | BoundTask[..., Any] | str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> NewJob:
    """The job that the running one adds."""
    if isinstance(task, str):
        name, arguments, chosen = task, _payload(task, args), options(kwargs)
    elif isinstance(task, (Task, BoundTask)):
        bound = task if isinstance(task, Task) else task.task
        name, arguments, chosen = bound.name, bound.named(args, kwargs), task.chosen
        producer = bound.producer
    else:
        raise OptionError(f"ctx.enqueue got {task!r}: give it a task, task.options(…) or the name of a task")
    _check(name, chosen)
    return producer.build(name, arguments, chosen, now, running)


def check_number(gathered: Sequence[NewJob], new: NewJob) -> None:
    """OptionError if the attempt has as many follow-ups as it may have."""
    remedy = "enqueue one job that enqueues the others"
    if len(gathered) >= MOST:
        raise OptionError(f"an attempt can add at most {MOST} follow-up jobs: {remedy}")
    if sum(len(job.payload_json) for job in (*gathered, new)) > MOST_BYTES:
        limit = f"{MOST_BYTES // 1024 // 1024} MiB"
        raise OptionError(f"the payloads of an attempt's follow-up jobs are larger than {limit}: {remedy}")


def _payload(name: str, args: tuple[Any, ...]) -> Mapping[str, Any]:
    if len(args) > 1:
        raise OptionError(f"ctx.enqueue({name!r}, …) takes one payload, as {{…}}, and options by name")
    return args[0] if args and args[0] is not None else {}


def _check(name: str, chosen: Options) -> None:
    if chosen.connection is not None:
        raise OptionError(
            f"ctx.enqueue of task {name!r}: its job is stored with the outcome, so connection= has no place; "
            "to store it in your transaction use enqueue"
        )
    if chosen.key is not None and chosen.on_conflict == "raise":
        raise OptionError(
            f"ctx.enqueue of task {name!r}: its job is stored after the task has returned, where nothing can "
            "be raised; use on_conflict='return' or 'replace'"
        )
