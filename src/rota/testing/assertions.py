"""Assert what was enqueued: ``assert_enqueued`` and ``assert_not_enqueued``. They read, and never write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from ..core.jobs.options import FIELDS, Options
from ..model import Job, JobFilter, PageRequest
from ..tasks.task import BoundTask, Task

NEWEST = 1000


def assert_enqueued(task: Task[..., Any] | BoundTask, /, **payload: Any) -> Job:
    """Assert that the task has a job, in any state, with these payload values. Returns the newest one.

    ``task.options(queue="mail", tenant="acme", key="receipt:42", delay=60)`` in place of the task also
    compares these options. Values are compared in stored form, so pass a dataclass or a date as the task
    takes it. Only the newest thousand jobs of the task are searched.
    """
    plain, asked = (task.task, _asked(task)) if isinstance(task, BoundTask) else (task, {})
    jobs = plain.producer.runtime.portal.call(_of_task, plain)
    for job in jobs:
        if _has_payload(job, payload) and all(_COMPARE[name](job, value) for name, value in asked.items()):
            return job
    given = "".join(f", {name}={value!r}" for name, value in asked.items())
    seen = "\n".join(f"  {_line(job)}" for job in jobs[:20]) or "  none"
    raise AssertionError(
        f"no job of task {plain.name!r} has {payload!r} in its payload{given}; jobs of that task:\n{seen}"
    )


def assert_not_enqueued(task: Task[..., Any] | BoundTask, /, **payload: Any) -> None:
    """Assert that no job of the task, in any state, has these payload values and options, or none at all."""
    try:
        job = assert_enqueued(task, **payload)
    except AssertionError:
        return
    raise AssertionError(f"task {job.task!r} has job {job.id}: {_line(job)}")


async def _of_task(task: Task[..., Any]) -> list[Job]:
    store = await task.producer.runtime.stores.get()
    return list((await store.jobs(JobFilter(task=task.name), PageRequest(limit=NEWEST))).items)


def _has_payload(job: Job, payload: dict[str, Any]) -> bool:
    given = job.payload
    return all(name in given and given[name] == _stored(value) for name, value in payload.items())


def _stored(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _line(job: Job) -> str:
    key = f", key {job.key}" if job.key is not None else ""
    return (
        f"{job.payload_json}  ({job.state}, queue {job.queue}, tenant {job.tenant}, "
        f"due {job.run_at:%Y-%m-%d %H:%M:%S}{key})"
    )


def _asked(task: BoundTask) -> dict[str, Any]:
    """The options given beyond the task's own. Those that a job does not show cannot be compared."""
    own, chosen = task.task.chosen, task.chosen
    given = {name: getattr(chosen, name) for name in FIELDS if getattr(chosen, name) != getattr(own, name)}
    if unknown := sorted(given.keys() - _COMPARE.keys()):
        raise TypeError(
            f"assert_enqueued cannot compare {', '.join(unknown)}; it compares {', '.join(_COMPARE)}"
        )
    return given


def _same(name: str) -> Callable[[Job, Any], bool]:
    return lambda job, value: bool(getattr(job, name) == value)


_COMPARE: dict[str, Callable[[Job, Any], bool]] = {
    name: _same(name)
    for name in ("queue", "priority", "tenant", "run_at", "key", "max_attempts", "timeout", "auto_remove")
} | {
    "delay": lambda job, value: job.run_at == job.created_at + timedelta(seconds=value),
    "tags": lambda job, value: set(value) <= set(job.tags),
    "parent": _same("parent"),
}
assert _COMPARE.keys() <= set(Options.__struct_fields__)
