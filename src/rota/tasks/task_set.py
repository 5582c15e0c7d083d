"""``TaskSet``: tasks declared in a module that does not import the app.

A set only collects. ``app.include(tasks)`` registers its tasks and schedules; until then its tasks can be
called but not enqueued.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

from ..core.jobs.options import TaskOptions, name_text, options
from ..core.schedules import draft
from .declaration import TaskDeclarations
from .registry import Registry
from .task import Task

NO_LIMIT = 2**62  # how long a payload may be is a setting of the app


class TaskSet(TaskDeclarations):
    """Tasks and schedules to be included in an app.

    ``prefix="mail"`` names the tasks ``mail.send``, ``mail.digest`` and so on. Options given here are the
    defaults of every task in the set. A set can be included in several apps; its tasks enqueue through the
    app that included it last.
    """

    def __init__(self, prefix: str | None = None, **defaults: Unpack[TaskOptions]) -> None:
        options(defaults, for_task=f"{prefix or 'TaskSet'}.*")
        self._prefix = "" if prefix is None else f"{name_text('prefix', prefix)}."
        self._defaults = defaults
        self._registry = Registry()
        self._schedules: dict[str, Mapping[str, Any]] = {}

    def __iter__(self) -> Iterator[Task[..., Any]]:
        return iter(self._registry)

    def __len__(self) -> int:
        return len(self._registry.tasks)

    def __repr__(self) -> str:
        return f"<TaskSet of {', '.join(self._registry.names) or 'no tasks'}>"

    def schedule(self, task: Task[..., Any]) -> Mapping[str, Any] | None:
        """The schedule that was declared with the task, if any."""
        return self._schedules.get(task.name)

    def _declare(self, task: Task[..., Any], schedule: Mapping[str, Any] | None) -> None:
        if schedule is not None:  # a mistake is reported where it was made, not where the set is included
            tenant = task.chosen.tenant or "default"
            draft.check(task.name, tenant, schedule, lambda _, payload: _encode(task, payload))
        self._registry.add(task)
        if schedule is not None:
            self._schedules[task.name] = schedule


def _encode(task: Task[..., Any], payload: Mapping[str, Any]) -> str:
    return task.signature.encode(payload, limit=NO_LIMIT)
