"""Tasks: named functions with options, and the typed ways to enqueue them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, Unpack

from ..core.jobs.options import JobOptions, Options, merge, name_text, options
from ..core.payload.codec import TaskSignature
from ..errors import ConfigError, PayloadError

if TYPE_CHECKING:
    from ..app import Rota
    from .handle import JobHandle

Executor = Literal["async", "thread", "process"]
P = ParamSpec("P")
R = TypeVar("R")


class Task(Generic[P, R]):
    """A named function that knows how to do one kind of work. Calling it just calls the function."""

    def __init__(
        self,
        app: Rota,
        fn: Callable[P, R],
        name: str,
        chosen: Options,
        executor: Executor,
    ) -> None:
        self.app = app
        self.fn = fn
        self.name = name
        self.chosen = chosen
        self.executor: Executor = executor
        self.signature = TaskSignature.of(fn, task=name)
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", name)
        self.__qualname__ = getattr(fn, "__qualname__", name)
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name!r} ({self.executor})>"

    def options(self, **given: Unpack[JobOptions]) -> BoundTask:
        """The same task with other options for the jobs enqueued through it."""
        return BoundTask(self, merge(self.chosen, options(given)))

    async def enqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Store a job that calls this task with these arguments; it is durable once this returns."""
        return await self.app.producer.enqueue(self.name, self.named(args, kwargs), self.chosen)

    def enqueue_sync(self, *args: Any, **kwargs: Any) -> JobHandle:
        """``enqueue`` for code that is not async."""
        return BoundTask(self, self.chosen).enqueue_sync(*args, **kwargs)

    async def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle]:
        """Store a job per mapping of arguments, in bulk: all of them, or none."""
        return await BoundTask(self, self.chosen).enqueue_many(payloads)

    def enqueue_many_sync(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle]:
        """``enqueue_many`` for code that is not async."""
        return BoundTask(self, self.chosen).enqueue_many_sync(payloads)

    def named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mapping[str, Any]:
        """The arguments, each under the name of its parameter."""
        if not args:
            return kwargs
        names = self.signature.names
        if len(args) > len(names):
            raise PayloadError(
                f"task {self.name!r} takes {', '.join(names) or 'nothing'}; {len(args)} were given"
            )
        named = dict(zip(names, args, strict=False))
        if twice := sorted(named.keys() & kwargs.keys()):
            raise PayloadError(f"task {self.name!r}: {', '.join(twice)} was given twice")
        return named | kwargs


class BoundTask:
    """A task together with the options of the jobs to come."""

    __slots__ = ("chosen", "task")

    def __init__(self, task: Task[..., Any], chosen: Options) -> None:
        self.task = task
        self.chosen = chosen

    def options(self, **given: Unpack[JobOptions]) -> BoundTask:
        return BoundTask(self.task, merge(self.chosen, options(given)))

    async def enqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        task = self.task
        return await task.app.producer.enqueue(task.name, task.named(args, kwargs), self.chosen)

    def enqueue_sync(self, *args: Any, **kwargs: Any) -> JobHandle:
        task = self.task
        return task.app.producer.enqueue_sync(task.name, task.named(args, kwargs), self.chosen)

    async def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle]:
        return await self.task.app.producer.enqueue_many(self.task.name, payloads, self.chosen)

    def enqueue_many_sync(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle]:
        return self.task.app.producer.enqueue_many_sync(self.task.name, payloads, self.chosen)


def choose_name(fn: Callable[..., Any], asked: str | None) -> str:
    """The name under which a function becomes a task: the one asked for, else its own."""
    if not callable(fn):
        raise ConfigError(
            f"@app.task got {fn!r} instead of a function; give options by name: @app.task(name=…)"
        )
    name = getattr(fn, "__name__", None) if asked is None else asked
    if name is None:
        raise ConfigError(f"{fn!r} has no name of its own; give it one: app.task(name=…)(…)")
    return name_text("task", name)


def choose_executor(fn: Callable[..., Any], asked: str | None, name: str) -> Executor:
    """``async def`` runs on the loop, ``def`` in a thread, unless the task asks for a process."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigError(
            f"task {name!r}: a generator cannot be a task; return the values, or enqueue a job each"
        )
    is_async = inspect.iscoroutinefunction(fn)
    match asked:
        case None:
            return "async" if is_async else "thread"
        case "async" if is_async:
            return "async"
        case "async":
            raise ConfigError(f"task {name!r}: executor='async' needs an async def function")
        case "thread" if is_async:
            raise ConfigError(f"task {name!r}: an async def function cannot run in a thread; drop executor=")
        case "thread":
            return "thread"
        case "process":
            return "process"
        case _:
            raise ConfigError(f"task {name!r}: executor={asked!r} is not one of async, thread, process")


class Registry:
    """The tasks of one app, by name."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task[..., Any]] = {}

    def __iter__(self) -> Any:
        return iter(self.tasks.values())

    def get(self, name: str) -> Task[..., Any] | None:
        return self.tasks.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.tasks)


def task_options(name: str, given: Mapping[str, Any]) -> Options:
    return options(given, for_task=name)


NO_OPTIONS = Options()
__all__ = ["NO_OPTIONS", "BoundTask", "Registry", "Task", "choose_executor", "choose_name", "task_options"]
