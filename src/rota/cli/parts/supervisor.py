"""``rota worker --processes N`` and ``--reload``: starts workers, forwards signals, restarts workers.

A worker is restarted when it dies, has run its ``--max-jobs``, or its source files change.

Runs no jobs and opens no store. Each child is a plain ``rota`` command in its own session, so that
Ctrl-C reaches it once, through here. A child whose supervisor has died drains and exits.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from ...core.plurals import plural
from ...runtime import systemd
from ...runtime.clock import monotonic
from ...runtime.service import StopSignals, any_of, pause, watchdog
from .exit_codes import FAILED, RECYCLED
from .options import given_options
from .source_watch import SourceWatch, shown
from .target import URL_OVERRIDE

log = logging.getLogger("rota.supervisor")

SUPERVISED = "ROTA_SUPERVISED"
FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
SETTLED_S = 60.0  # a child that ran this long restarts with the first delay again
LONGEST_WAIT_S = 86_400.0  # for a change after a worker failed; then it is tried again
LOOK_S = 0.5  # between two looks at the source files
STOP_GRACE_S = 30.0  # on top of a worker's own time to stop; one that still runs then is stuck


def run(processes: int, flags: Mapping[str, Any], app: str, url: str | None, shutdown_s: float) -> int:
    """Run the workers until all have exited; returns the highest exit code.

    ``shutdown_s``: how long a worker lets running jobs finish.
    """
    env = {**systemd.without(os.environ), SUPERVISED: "1"}
    if url is not None:
        env[URL_OVERRIDE] = url
    supervisor = Supervisor(processes, command(flags, app), env, shutdown_s + STOP_GRACE_S)
    with watching_parent():
        return asyncio.run(supervisor.run())


def reload(shutdown_s: float) -> int:
    """Run this command without ``--reload``, and again whenever a source file of the program changes."""
    env = {**systemd.without(os.environ), SUPERVISED: "1"}
    arguments = [sys.executable, "-m", "rota", *(word for word in sys.argv[1:] if word != "--reload")]
    supervisor = Supervisor(1, arguments, env, shutdown_s + STOP_GRACE_S, SourceWatch())
    return asyncio.run(supervisor.run())


def command(flags: Mapping[str, Any], app: str) -> list[str]:
    """The command line of one worker."""
    arguments = [sys.executable, "-m", "rota", "worker", "--app", app]
    for name, value in given_options(flags).items():
        arguments.append("--" + name.replace("_", "-"))
        if value is not True:
            arguments.append(",".join(value) if isinstance(value, tuple) else str(value))
    return arguments


class Supervisor:
    def __init__(
        self,
        processes: int,
        arguments: list[str],
        env: Mapping[str, str],
        patience_s: float,
        sources: SourceWatch | None = None,
    ) -> None:
        self._sources = sources  # None: do not reload
        self._changed = asyncio.Event()
        self._patience_s = patience_s  # from the first signal until workers are killed
        self._processes = processes
        self._arguments = arguments
        self._env = env
        self._children: set[asyncio.subprocess.Process] = set()
        self._stop = asyncio.Event()

    async def run(self) -> int:
        ended = asyncio.Event()
        with StopSignals(self._end, self._end):
            ping = asyncio.create_task(watchdog(ended), name="rota-watchdog")
            watch = asyncio.create_task(self._watch(ended), name="rota-sources")
            systemd.ready(f"supervising {plural(self._processes, 'worker')}")
            try:
                codes = await asyncio.gather(*(self._keep(number + 1) for number in range(self._processes)))
            finally:
                ended.set()
                await asyncio.gather(ping, watch)
        return max(codes)

    def _end(self) -> None:
        """Forward a signal: the first makes a child drain, the second makes it release its jobs."""
        if not self._stop.is_set():
            asyncio.get_running_loop().call_later(self._patience_s, self._kill)
        self._stop.set()
        for child in self._children:
            _send(child, signal.SIGTERM)

    def _kill(self) -> None:
        for child in self._children:
            log.error(
                "worker process %d still runs %.0f s after the signal to stop and is killed; "
                "its jobs will be rescued",
                child.pid, self._patience_s,
            )  # fmt: skip
            _send(child, signal.SIGKILL)

    async def _watch(self, ended: asyncio.Event) -> None:
        """Restart the workers when a source file changes; running jobs finish first."""
        while self._sources is not None and not await pause(LOOK_S, ended):
            if self._stop.is_set() or not (changed := self._sources.changed()):
                continue
            log.info("%s changed; restarting", shown(changed))
            self._changed.set()
            for child in self._children:
                _send(child, signal.SIGTERM)

    async def _keep(self, number: int) -> int:
        """Restart worker ``number`` until it stops as intended; returns its exit code."""
        delay, started = FIRST_DELAY, 0
        while True:
            since = monotonic()
            self._changed.clear()
            code = await self._child()
            started += 1
            if code == RECYCLED and not self._stop.is_set():
                log.info("worker %d has run its --max-jobs; starting another", number)
                continue
            if self._changed.is_set() and not self._stop.is_set():
                continue
            if self._sources is not None and code > 0 and not self._stop.is_set():
                log.error("worker stopped (%s); waiting for a source file to change", _how(code))
                await any_of(self._changed.wait(), self._stop.wait(), timeout=LONGEST_WAIT_S)
                continue
            if self._stop.is_set() or code == 0 or (started == 1 and code > FAILED):
                return {RECYCLED: 0}.get(code, code) if code >= 0 else FAILED
            delay = FIRST_DELAY if monotonic() - since > SETTLED_S else delay
            log.error("worker %d died (%s); restarting in %.1f s", number, _how(code), delay)
            if await pause(delay, self._stop):
                return FAILED
            delay = min(delay * 2, LONGEST_DELAY)

    async def _child(self) -> int:
        child = await asyncio.create_subprocess_exec(
            *self._arguments,
            stdin=asyncio.subprocess.PIPE,  # closed when this process dies, which makes the child drain
            env=self._env,
            start_new_session=True,
        )
        self._children.add(child)
        if self._stop.is_set():  # the signal arrived while the child was starting
            _send(child, signal.SIGTERM)
        try:
            return await child.wait()
        finally:
            self._children.discard(child)


def _send(child: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Signal by pid: ``send_signal`` polls first, and a poll that reaps the child loses its exit code."""
    with suppress(ProcessLookupError):
        os.kill(child.pid, number)


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


# --- the child's side ----------------------------------------------------------------------------


def is_supervised() -> bool:
    return SUPERVISED in os.environ


@contextmanager
def watching_parent() -> Iterator[None]:
    """In a supervised worker: drain when the supervisor dies."""
    if is_supervised():
        os.environ.pop(SUPERVISED)  # a worker started by a task is not supervised
        threading.Thread(target=_drain_at_end_of_input, name="rota-parent", daemon=True).start()
    yield


def _drain_at_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
