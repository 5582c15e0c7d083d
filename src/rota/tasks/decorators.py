"""The types of ``@app.task``, ``@app.cron`` and ``@app.every``: from a function to its task.

Typing only. A function whose first parameter is a ``Context`` is enqueued without it; one that is
``async def`` gives jobs whose ``result()`` is what it returns, not a coroutine. A context in any other
position cannot be expressed: such a task works, but type checkers ask for the context at ``enqueue``.
The parameters of a function whose first one has no type are not checked: it could be a context.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from .task import FunctionTask


class TaskContext(Protocol):
    """What marks the class of a context; ``worker.context.Context`` has it."""

    __rota_context__: bool


class Untyped:
    """No function asks for this; only a parameter without a type takes it."""


C = TypeVar("C", bound=TaskContext)
P = ParamSpec("P")
R = TypeVar("R")


class TaskDecorator(Protocol):
    """Makes a task of the function below it."""

    @overload
    def __call__(
        self, fn: Callable[Concatenate[Untyped, ...], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[..., R, ..., Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[Untyped, ...], R], /) -> FunctionTask[..., R, ..., R]: ...
    @overload
    def __call__(
        self, fn: Callable[Concatenate[C, P], Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, Concatenate[C, P], Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, fn: Callable[Concatenate[C, P], R], /) -> FunctionTask[P, R, Concatenate[C, P], R]: ...
    @overload
    def __call__(
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> FunctionTask[P, R, P, Coroutine[Any, Any, R]]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> FunctionTask[P, R, P, R]: ...
