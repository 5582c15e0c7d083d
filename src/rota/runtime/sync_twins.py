"""The sync twin of an async method: the same name and ``_sync``, the same parameters, the same result.

Owns the convention, and the warning where a twin would block an event loop. Must never do anything that the
async method does not: where sync code needs another way, the class writes its twin by hand.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..errors import ConfigError, SyncCallWarning
from .portal import Portal

P = ParamSpec("P")
R = TypeVar("R")


class HasPortal(Protocol):
    @property
    def portal(self) -> Portal: ...


S = TypeVar("S", bound=HasPortal)


def sync_twin(method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[S, P], R]:
    """``job_sync = sync_twin(job)`` in the body of the class."""
    name = method.__name__

    def twin(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs.get("connection") is not None:
            return run_here(name, method(self, *args, **kwargs))
        return call_sync(self.portal, name, method, self, *args, **kwargs)

    twin.__name__ = f"{name}_sync"
    twin.__qualname__ = f"{method.__qualname__}_sync"
    twin.__doc__ = f"``{name}`` for code that is not async."
    twin.__module__ = method.__module__
    twin.__wrapped__ = method  # type: ignore[attr-defined]  # its signature and annotations
    return twin


def call_sync(
    portal: Portal, name: str, function: Callable[P, Awaitable[R]], /, *args: P.args, **kwargs: P.kwargs
) -> R:
    """Run the coroutine function, known as ``name``, on the portal; warn if an event loop waits for it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        _warn(name)
    return portal.call(function, *args, **kwargs)


def run_here(name: str, call: Coroutine[Any, Any, R]) -> R:
    """On the caller's connection, in its thread: with one that is not async the call never waits."""
    try:
        call.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    call.close()
    raise ConfigError(f"{name}_sync was given an async connection: await {name}(…) instead")


def _warn(name: str) -> None:
    if "ipykernel" in sys.modules:  # the cells of a notebook run on a loop that has nothing else to do
        return
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rota."):
        depth, frame = depth + 1, frame.f_back
    message = f"{name}_sync() blocks the event loop that runs here: in a coroutine, await {name}(…) instead"
    warnings.warn(message, SyncCallWarning, stacklevel=depth)
