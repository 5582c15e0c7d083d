"""The tasks of one app, or of one set of tasks, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.jobs.options import NO_OPTIONS, Options, name_text
from ..core.payload import codec
from ..errors import AlreadyRegistered
from ..model import Job
from .task import Task


class Registry:
    """Owns which names are taken. Never enqueues and never runs a task."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task[..., Any]] = {}

    def __iter__(self) -> Iterator[Task[..., Any]]:
        return iter(self.tasks.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tasks)

    def get(self, name: str) -> Task[..., Any] | None:
        return self.tasks.get(name)

    def add(self, *tasks: Task[..., Any]) -> None:
        """Register all of them, or none: AlreadyRegistered if a name is taken."""
        for task in tasks:
            if task.name in self.tasks:
                raise AlreadyRegistered(
                    f"a task named {task.name!r} is already registered; choose another: @app.task(name=…). "
                    "To change it in a notebook, make the app again first"
                )
        self.tasks |= {task.name: task for task in tasks}

    def remove(self, *tasks: Task[..., Any]) -> None:
        for task in tasks:
            self.tasks.pop(task.name, None)

    def options(self, name: str) -> Options:
        """The options of the task; none are set for a task whose code is elsewhere."""
        task = self.tasks.get(name)
        return NO_OPTIONS if task is None else task.chosen

    def encode(self, name: str, payload: Mapping[str, Any], limit: int) -> str:
        """The payload as JSON; checked against the task's parameters if its code is here."""
        task = self.tasks.get(name)
        if task is not None:
            return task.signature.encode(payload, limit=limit)
        return codec.encode(payload, limit=limit)

    def output(self, job: Job) -> Any:
        """What the job's task returned: of the task's type if its code is here, else plain values."""
        task = self.tasks.get(job.task)
        if task is None or job.output_json is None:
            return job.output
        return task.signature.output(job.output_json)

    def check_name(self, name: str) -> None:
        """OptionError if no task can have this name; those registered were checked before."""
        if name not in self.tasks:
            name_text("task", name)
