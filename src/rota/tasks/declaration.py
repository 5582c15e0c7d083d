"""``task``, ``cron`` and ``every``: the decorators that an app and a ``TaskSet`` have in common.

Turns functions into tasks and checks what was given. What becomes of a declared task is decided by
``_declare``: an app registers it at once, a set keeps it until it is included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from ..core.jobs.options import DeclaredOptions, TaskOptions, options
from ..core.schedules.options import OF_THE_SCHEDULE, RecurringOptions
from .task import Task, choose_executor, choose_name

P = ParamSpec("P")
R = TypeVar("R")


class TaskDeclarations(ABC):
    """Base of whatever tasks can be declared on. Never stores anything and never runs a task."""

    _prefix = ""
    _defaults: TaskOptions = {}  # noqa: RUF012, never written to

    @overload
    def task(self, fn: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(self, **given: Unpack[DeclaredOptions]) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(self, *functions: Callable[..., Any], **given: Any) -> Any:
        """Make a function a task. Options: queue, priority, max_attempts, backoff, timeout, tags, …"""

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            task = self._build(function, dict(given))
            self._declare(task, None)
            return task

        return declare(*functions) if functions else declare

    def cron(
        self, expression: str, /, **given: Unpack[RecurringOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a task and the schedule that runs it: ``@app.cron("0 8 * * 1-5")``."""
        return self._recurring({"cron": expression}, dict(given))

    def every(
        self, interval: float | str | timedelta, /, **given: Unpack[RecurringOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        """Declare a task and the schedule that runs it: ``@app.every("15m")``."""
        return self._recurring({"every": interval}, dict(given))

    def _recurring(
        self, rule: Mapping[str, Any], given: dict[str, Any]
    ) -> Callable[[Callable[P, R]], Task[P, R]]:
        of_schedule = {name: given.pop(name) for name in OF_THE_SCHEDULE & given.keys()}

        def declare(function: Callable[P, R]) -> Task[P, R]:
            task = self._build(function, dict(given))
            both = {name: getattr(task.chosen, name) for name in ("queue", "priority", "max_attempts")}
            self._declare(task, {"task": task.name, **rule, **of_schedule, **both})
            return task

        return declare

    def _build(self, function: Callable[P, R], given: dict[str, Any]) -> Task[P, R]:
        name = choose_name(function, given.pop("name", None), self._prefix)
        executor = given.pop("executor", None)
        chosen = options({**self._defaults, **given}, for_task=name)
        return Task(function, name, chosen, choose_executor(function, executor, name))

    @abstractmethod
    def _declare(self, task: Task[..., Any], schedule: Mapping[str, Any] | None) -> None:
        """Keep the task, and the schedule of its name if there is one; both, or neither."""
