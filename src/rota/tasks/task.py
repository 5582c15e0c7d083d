"""Tasks: named functions with options, and the typed ways to enqueue them.

A ``Task`` has the types of its jobs; a ``FunctionTask`` also those of the function it was made of.
Must never know the app or the store: a task is given the producer that stores its jobs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Generic, Never, Protocol, Unpack, get_args

from ..core.jobs.key_templates import check_placeholders
from ..core.jobs.options import JobOptions, Options, merge, name_text, options
from ..core.payload.codec import TaskSignature
from ..errors import ConfigError, PayloadError
from ..model import Executor, Limit, NewJob
from ..runtime.runtime import Runtime
from .current import RunningJob
from .handle import JobHandle
from .type_variables import P, Q, R_co, S_co


class TaskProducer(Protocol):
    """Stores the jobs of tasks; ``tasks.producer.Producer`` is the one there is."""

    @property
    def runtime(self) -> Runtime: ...

    def build(
        self, name: str, arguments: Any, chosen: Options, now: datetime, running: RunningJob
    ) -> NewJob: ...
    async def enqueue(self, name: str, arguments: Any, chosen: Options) -> JobHandle: ...
    def enqueue_sync(self, name: str, arguments: Any, chosen: Options) -> JobHandle: ...
    async def enqueue_many(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]: ...
    def enqueue_many_sync(
        self, name: str, arguments: Iterable[Mapping[str, Any]], chosen: Options
    ) -> Sequence[JobHandle]: ...


class NoProducer:
    """Stands in until the set that declares a task is included in an app."""

    @property
    def runtime(self) -> Never:
        raise ConfigError("this task belongs to no app yet: include its TaskSet, app.include(tasks)")

    def _missing(self, name: str, *_: Any) -> Never:
        raise ConfigError(
            f"task {name!r} belongs to no app yet: include its TaskSet, app.include(tasks), "
            "and import the module that does so before you enqueue"
        )

    build = enqueue = enqueue_sync = enqueue_many = enqueue_many_sync = _missing


NO_PRODUCER = NoProducer()


class Task(Generic[P, R_co]):
    """A named function that knows how to do one kind of work. Calling it just calls the function.

    ``Task[[int], str]`` is enqueued with an int, and its jobs' ``result()`` is a str.
    """

    producer: TaskProducer
    limit: Limit | None = None  # on its jobs, over all workers, unless another is set at run time
    is_shared = True  # published for other programs; False: what one tenant registers

    def __init__(
        self,
        fn: Callable[..., Any],
        name: str,
        chosen: Options,
        executor: Executor,
        producer: TaskProducer = NO_PRODUCER,
    ) -> None:
        self.fn = fn
        self.name = name
        self.chosen = chosen
        self.executor: Executor = executor
        self.producer = producer
        self.signature = TaskSignature.of(fn, task=name)
        if not self.signature.open_ended:
            for what in ("key", "concurrency_key"):
                if (template := getattr(chosen, what)) is not None:
                    check_placeholders(f"task {name!r}: {what}", template, self.signature.names)
        self.__doc__ = fn.__doc__
        self.__name__ = getattr(fn, "__name__", name)
        self.__qualname__ = getattr(fn, "__qualname__", name)
        self.__module__ = fn.__module__
        self.__wrapped__ = fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fn(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Task {self.name!r} ({self.executor})>"

    def options(self, **given: Unpack[JobOptions]) -> BoundTask[P, R_co]:
        """The same task with other options for the jobs enqueued through it."""
        return BoundTask(self, merge(self.chosen, options(given)))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Store a job that calls this task with these arguments; it is durable once this returns."""
        arguments = self.named(args, kwargs) if args else kwargs
        return await self.producer.enqueue(self.name, arguments, self.chosen)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """``enqueue`` for code that is not async."""
        return self.producer.enqueue_sync(self.name, self.named(args, kwargs), self.chosen)

    async def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle[R_co]]:
        """Store a job per mapping of arguments, in bulk: all of them, or none."""
        return await self.producer.enqueue_many(self.name, payloads, self.chosen)

    def enqueue_many_sync(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle[R_co]]:
        """``enqueue_many`` for code that is not async."""
        return self.producer.enqueue_many_sync(self.name, payloads, self.chosen)

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


class FunctionTask(Task[P, R_co], Generic[P, R_co, Q, S_co]):
    """A task as its declaration makes it, which is called like the function it was made of."""

    fn: Callable[Q, S_co]

    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> S_co:
        return self.fn(*args, **kwargs)


class BoundTask(Generic[P, R_co]):
    """A task together with the options of the jobs to come."""

    __slots__ = ("chosen", "task")

    def __init__(self, task: Task[P, R_co], chosen: Options) -> None:
        self.task = task
        self.chosen = chosen

    def options(self, **given: Unpack[JobOptions]) -> BoundTask[P, R_co]:
        return BoundTask(self.task, merge(self.chosen, options(given)))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """Store a job that calls the task with these arguments and options."""
        task = self.task
        return await task.producer.enqueue(task.name, task.named(args, kwargs), self.chosen)

    def enqueue_sync(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R_co]:
        """``enqueue`` for code that is not async."""
        task = self.task
        return task.producer.enqueue_sync(task.name, task.named(args, kwargs), self.chosen)

    async def enqueue_many(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle[R_co]]:
        """Store a job per mapping of arguments, in bulk: all of them, or none."""
        return await self.task.producer.enqueue_many(self.task.name, payloads, self.chosen)

    def enqueue_many_sync(self, payloads: Iterable[Mapping[str, Any]]) -> Sequence[JobHandle[R_co]]:
        """``enqueue_many`` for code that is not async."""
        return self.task.producer.enqueue_many_sync(self.task.name, payloads, self.chosen)


def choose_name(fn: Callable[..., Any], asked: str | None, prefix: str = "") -> str:
    """The name under which a function becomes a task: the one asked for, else its own."""
    if not callable(fn):
        raise ConfigError(
            f"@app.task got {fn!r} instead of a function; give options by name: @app.task(name=…)"
        )
    name = getattr(fn, "__name__", None) if asked is None else asked
    if name is None or name == "<lambda>":
        what = "a lambda" if name == "<lambda>" else repr(fn)
        raise ConfigError(f"{what} has no name of its own; give it one: app.task(name=…)(…)")
    return name_text("task", f"{prefix}{name}" if isinstance(name, str) else name)


def refuse_method(fn: Callable[..., Any], name: str) -> None:
    """A function in the body of a class that takes ``self``: no job has an object to call it on."""
    owner = getattr(fn, "__qualname__", "").rpartition(".")[0]
    if not inspect.isfunction(fn) or not owner or owner.endswith("<locals>"):
        return
    if next(iter(inspect.signature(fn).parameters), None) in ("self", "cls"):
        raise ConfigError(
            f"task {name!r}: {fn.__qualname__} is a method, and a job has no object to call it on; declare a "
            "function that creates the object, or app.task(object.method)"
        )


def refuse_unimportable(fn: Callable[..., Any], name: str) -> None:
    """A process finds its task by module and name, which only top-level functions have."""
    where = getattr(fn, "__qualname__", None)
    if where is None or "<" in where or not inspect.isfunction(inspect.unwrap(fn)):
        kind = "a lambda" if where is not None and "<lambda>" in where else "not at the top level of a module"
        raise ConfigError(
            f"task {name!r} runs in a process, which imports it by name, but {where or repr(fn)} is {kind}: "
            "move it to the top level of a module, as a def"
        )


def choose_executor(fn: Callable[..., Any], asked: str | None, name: str) -> Executor:
    """``async def`` runs on the loop, ``def`` in a thread, unless the task asks for a process."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise ConfigError(
            f"task {name!r}: a generator cannot be a task; return the values, or enqueue a job each"
        )
    refuse_method(fn, name)
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
            refuse_unimportable(fn, name)
            return "process"
        case _:
            choices = ", ".join(get_args(Executor))
            raise ConfigError(f"task {name!r}: executor={asked!r} is not one of {choices}")
