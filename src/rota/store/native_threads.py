"""Real threads, and waiting for their answers, also where gevent has replaced threads with greenlets.

There a loop in a greenlet would count as the running loop of every other greenlet. So it gets a thread of
the operating system, and a greenlet that waits for it leaves the others running. Must never import gevent
where the program has not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

R = TypeVar("R")


def start_thread(target: Callable[[], None], name: str) -> Future[None]:
    """Run it in a thread that ends with the process at the latest; the future is done when it has ended."""
    ended: Future[None] = Future()

    def run() -> None:
        try:
            target()
        finally:
            ended.set_result(None)

    if (monkey := _patched()) is None:
        Thread(target=run, name=name, daemon=True).start()
    else:
        import_module("gevent").get_hub()  # its first use imports, which two threads must not do at once
        monkey.get_original("_thread", "start_new_thread")(run, ())
    return ended


def native_lock() -> Lock:
    """For a moment's work that must not wait for anything else."""
    monkey = _patched()
    lock: Lock = Lock() if monkey is None else monkey.get_original("_thread", "allocate_lock")()
    return lock


def native_queue() -> SimpleQueue[Any]:
    """Between threads; a greenlet must not wait for it."""
    monkey = _patched()
    make = SimpleQueue if monkey is None else monkey.get_original("queue", "SimpleQueue")
    queue: SimpleQueue[Any] = make()
    return queue


def wait_for(future: Future[R], timeout: float | None = None) -> R:
    """The result, or the error; TimeoutError if neither comes in time."""
    if _patched() is not None:
        _switch_until_done(future, timeout)
        timeout = 0.0
    return future.result(timeout)


def are_greenlets() -> bool:
    """Whether a thread that blocks in the kernel would hold up all others."""
    return _patched() is not None


def _patched() -> Any:
    """gevent's module that has replaced threads in this program; None: they are real."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey if monkey is not None and monkey.is_module_patched("threading") else None


def _switch_until_done(future: Future[Any], timeout: float | None) -> None:
    gevent, hubs = import_module("gevent"), import_module("gevent.hub")
    hub = gevent.get_hub()
    waiter, watcher = hubs.Waiter(hub), hub.loop.async_()

    def wake(_: object) -> None:
        with suppress(Exception):  # the waiter was interrupted, and has closed it
            watcher.send()  # the only thing of a hub that another thread may touch

    watcher.start(waiter.switch, None)
    try:
        future.add_done_callback(wake)
        with gevent.Timeout(timeout, False):
            waiter.get()
    finally:
        watcher.stop()
        watcher.close()
