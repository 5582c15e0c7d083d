"""The loop that services share.

A service is a ``tick``: an async function that does one pass and returns the seconds until the next. Its
``ServiceRecord`` says when it last succeeded.
Nothing else in rota sleeps, except the two wake-up connections of PostgreSQL (``listener.py`` and
``waker.py``), which work below this layer; other loops end by themselves or wait for input.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from ..errors import StoreError, StoreUnavailable
from . import systemd
from .service_records import ServiceRecord

log = logging.getLogger("rota.service")

Tick = Callable[[], Awaitable[float]]


async def pause(seconds: float, until: asyncio.Event) -> bool:
    """Wait; True if the event was set meanwhile."""
    if until.is_set():
        return True
    if seconds <= 0:
        await asyncio.sleep(0)
        return until.is_set()
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()
    return until.is_set()


async def repeat(
    tick: Tick, stop: asyncio.Event, record: ServiceRecord, wake: asyncio.Event | None = None
) -> None:
    """Tick until ``stop`` is set, sooner when woken.

    An unavailable store is waited for; any other error is logged and survived.
    """
    while not stop.is_set():
        if wake is not None:
            wake.clear()
        record.began()
        try:
            delay = await tick()
            record.worked(delay)
        except StoreUnavailable as error:
            delay = record.failed(error)
        except StoreError as error:
            log.error("%s: %s", record.name, error)
            delay = record.failed(error)
        except Exception as error:
            log.exception("%s: a pass failed; continuing", record.name)
            delay = record.failed(error)
        if wake is None or delay <= 0:
            await pause(delay, stop)
        else:
            await any_of(stop.wait(), wake.wait(), timeout=delay)


async def watchdog(stop: asyncio.Event, stuck: Callable[[], Sequence[str]] = tuple) -> None:
    """Notify systemd that this process is alive: while its event loop runs and no service is stuck."""
    seconds = systemd.watchdog_s()
    while seconds is not None and not stop.is_set():
        if names := stuck():
            systemd.notify(f"STATUS=stuck: {', '.join(names)}")
        else:
            systemd.notify("WATCHDOG=1")
        await pause(seconds, stop)


class StopSignals:
    """First TERM or INT: ``drain``. Second: ``force``. Inert where signals cannot be caught."""

    def __init__(
        self,
        drain: Callable[[], None],
        force: Callable[[], None],
        *,
        first: str = "no new jobs; waiting for the running ones (send it again to release them at once)",
        second: str = "releasing running jobs now",
    ) -> None:
        self._drain, self._force = drain, force
        self._first, self._second = first, second
        self._seen = 0
        self._installed: list[int] = []

    def __enter__(self) -> StopSignals:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            # Windows, and threads other than the main one, have no signal handlers.
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, self._caught, number)
                self._installed.append(number)
        return self

    def __exit__(self, *exc: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._installed:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)

    def _caught(self, number: int) -> None:
        self._seen += 1
        if self._seen == 1:
            log.info("%s: %s", signal.Signals(number).name, self._first)
            systemd.stopping(self._first)
            self._drain()
        else:
            log.warning("%s again: %s", signal.Signals(number).name, self._second)
            self._force()


async def any_of(*waits: Coroutine[Any, Any, object], timeout: float) -> None:
    """Wait until one of them is done, or the timeout is over; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=max(timeout, 0.0), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
