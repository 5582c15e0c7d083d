"""``task``, ``cron`` and ``every``: the decorators that an app and a ``TaskSet`` have in common.

Turns functions into tasks and checks what was given. What becomes of a declared task is decided by
``_declare``: an app registers it at once, a set keeps it until it is included.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Concatenate, Unpack, overload

from ..core.jobs.limits import check_task_limit
from ..core.jobs.options import DeclaredOptions, TaskOptions, options
from ..core.schedules.options import OF_THE_SCHEDULE, RecurringOptions
from ..durations import Duration
from .decorators import C, P, R, TaskDecorator, Untyped
from .task import FunctionTask, Task, choose_executor, choose_name


class TaskDeclarations(ABC):
    """Base of whatever tasks can be declared on. Never stores anything and never runs a task."""

    _prefix = ""
    _defaults: TaskOptions = {}  # noqa: RUF012, never written to

    @overload  # as ``TaskDecorator`` has them
    def task(
        self, fn: Callable[Concatenate[Untyped, ...], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[..., R, ..., Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, fn: Callable[Concatenate[Untyped, ...], R], /) -> FunctionTask[..., R, ..., R]: ...
    @overload
    def task(
        self, fn: Callable[Concatenate[C, P], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, Concatenate[C, P], Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, fn: Callable[Concatenate[C, P], R], /) -> FunctionTask[P, R, Concatenate[C, P], R]: ...
    @overload
    def task(
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, P, Coroutine[Any, Any, R]]: ...
    @overload
    def task(self, fn: Callable[P, R], /) -> FunctionTask[P, R, P, R]: ...
    @overload
    def task(self, **given: Unpack[DeclaredOptions]) -> TaskDecorator: ...
    def task(self, *functions: Callable[..., Any], **given: Any) -> Any:
        """Make a function a task. Options: queue, priority, max_attempts, backoff, timeout, tags, …"""

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            task = self._build(function, dict(given))
            self._declare(task, None)
            return task

        return declare(*functions) if functions else declare

    def cron(self, expression: str, /, **given: Unpack[RecurringOptions]) -> TaskDecorator:
        """Declare a task and the schedule that runs it: ``@app.cron("0 8 * * 1-5")``."""
        declare: TaskDecorator = self._recurring({"cron": expression}, dict(given))
        return declare

    def every(self, interval: Duration, /, **given: Unpack[RecurringOptions]) -> TaskDecorator:
        """Declare a task and the schedule that runs it: ``@app.every("15m")``."""
        declare: TaskDecorator = self._recurring({"every": interval}, dict(given))
        return declare

    def _recurring(self, rule: Mapping[str, Any], given: dict[str, Any]) -> Any:
        of_schedule = {name: given.pop(name) for name in OF_THE_SCHEDULE & given.keys()}

        def declare(function: Callable[..., Any]) -> Task[..., Any]:
            task = self._build(function, dict(given))
            both = {name: getattr(task.chosen, name) for name in ("queue", "priority", "max_attempts")}
            self._declare(task, {"task": task.name, **rule, **of_schedule, **both})
            return task

        return declare

    def _build(self, function: Callable[..., Any], given: dict[str, Any]) -> Task[..., Any]:
        name = choose_name(function, given.pop("name", None), self._prefix)
        executor, limit = given.pop("executor", None), given.pop("limit", None)
        chosen = options({**self._defaults, **given}, for_task=name)
        task = FunctionTask(function, name, chosen, choose_executor(function, executor, name))
        task.limit = None if limit is None else check_task_limit(name, limit)
        return task

    @abstractmethod
    def _declare(self, task: Task[..., Any], schedule: Mapping[str, Any] | None) -> None:
        """Keep the task, and the schedule of its name if there is one; both, or neither."""
